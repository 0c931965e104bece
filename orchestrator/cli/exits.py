"""The exit codes, and the errors that lead to each."""

from contextlib import suppress
from enum import IntEnum

from orchestrator.cli.folding import say
from orchestrator.logs.console import configure_loguru
from orchestrator.logs.errors import LogsError
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.errors import (
    AlreadyEnded,
    AlreadyExists,
    CheckpointNotFound,
    ConnectionNotFound,
    DefinitionError,
    HistoryNotFound,
    InvalidConnection,
    InvalidTuning,
    NoSuchAttempt,
    NoSuchPool,
    NoSuchWorker,
    NotConfirmed,
    NotRunning,
    OrchestratorError,
    ScheduleNotFound,
    SettingsError,
    StateConflict,
    WaitTimeout,
)
from queues import (
    AccessDenied,
    ClaimLost,
    Conflict,
    CorruptRecord,
    DataDirectoryInUse,
    IdTaken,
    InvalidEnsemble,
    InvalidLimit,
    InvalidName,
    ItemHeld,
    ItemNotFound,
    NotClaimed,
    OutcomeUnknown,
    PoolInUse,
    QueueError,
    QueueFull,
    SessionLost,
    TooLarge,
    TooManyPools,
    Unreachable,
    UnsafeDirectory,
)
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import shortened
from spark_runner.sql.text.errors import SqlError


class Exit(IntEnum):
    """The exit codes that scripts may rely on."""

    OK = 0  # the command, or the job that it ran, succeeded
    FAILED = 1  # the job or the operation failed
    USAGE = 2  # the command line, a definition or a script was refused; nothing was enqueued
    UNREACHABLE = 3  # ZooKeeper cannot be reached, or refuses access
    NOT_FOUND = 4  # no job, pool, schedule, connection or the like has this name
    CONFLICT = 5  # the id is taken, or the state does not allow the operation; nothing was changed
    TIMEOUT = 6  # the job did not end in time
    INTERRUPTED = 130  # stopped by Ctrl-C; another signal gives 128 plus its number, a closed pipe 141


_MAX_CHARACTERS = 20_000  # of an error message, which may quote a text of any size
_CODES: tuple[tuple[tuple[type[Exception], ...], Exit], ...] = (
    ((Unreachable, AccessDenied, OutcomeUnknown, SessionLost, NotRunning), Exit.UNREACHABLE),
    (
        (
            ItemNotFound,
            NoSuchAttempt,
            NoSuchPool,
            NoSuchWorker,
            ScheduleNotFound,
            HistoryNotFound,
            ConnectionNotFound,
            CheckpointNotFound,
        ),
        Exit.NOT_FOUND,
    ),
    (
        (
            IdTaken,
            AlreadyEnded,
            AlreadyExists,
            StateConflict,
            ItemHeld,
            NotClaimed,
            ClaimLost,
            Conflict,
            PoolInUse,
            QueueFull,
            TooManyPools,
            DataDirectoryInUse,
        ),
        Exit.CONFLICT,
    ),
    ((WaitTimeout,), Exit.TIMEOUT),
    (
        (
            DefinitionError,
            InvalidConnection,
            InvalidTuning,
            SettingsError,
            UnsafeDirectory,
            NotConfirmed,
            SqlError,
            InvalidName,
            InvalidEnsemble,
            InvalidLimit,
            TooLarge,
        ),
        Exit.USAGE,
    ),
    ((CorruptRecord, QueueError, SparkRunnerError, OrchestratorError, LogsError), Exit.FAILED),
)


def explain_error(error: Exception, *, verbose: bool) -> Exit:
    """Report an error on stderr, with its traceback if `verbose`; returns the exit code."""
    if verbose:
        from loguru import logger  # noqa: PLC0415 - slow to load, and seldom used

        configure_loguru()
        logger.opt(exception=error).error("{}", type(error).__name__)
    for types, code in _CODES:
        if isinstance(error, types):
            _say(f"error: {_words(error)}")
            return code
    _say(f"error: unexpected {type(error).__name__}: {_words(error)} (-v shows the traceback)")
    return Exit.FAILED


def _say(message: str) -> None:
    with suppress(OSError):  # stderr is closed: the exit code is the same
        say(message)


def _words(error: Exception) -> str:
    words = str(error)
    if isinstance(error, ItemNotFound):  # a queue has items; for users these are jobs
        words = f"no job has the id {error.item_id!r}; `orchestrator job list` shows all"
    return shortened(REDACTOR.mask(words), _MAX_CHARACTERS)
