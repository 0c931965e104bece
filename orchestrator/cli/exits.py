"""The exit codes, and the errors that lead to each."""

from enum import IntEnum

import typer

from orchestrator.logs.console import configure_loguru
from orchestrator.logs.errors import LogsError
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
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
    InvalidLimit,
    InvalidName,
    ItemHeld,
    ItemNotFound,
    NotClaimed,
    OutcomeUnknown,
    PoolInUse,
    QueueError,
    SessionLost,
    TooLarge,
    Unreachable,
    UnsafeDirectory,
)
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import shortened
from spark_runner.sql.text.errors import SqlError


class Exit(IntEnum):
    """The exit codes that scripts may rely on."""

    OK = 0
    FAILED = 1  # the job, or the operation
    USAGE = 2  # the command line, a definition or a script was refused; nothing was enqueued
    UNREACHABLE = 3  # ZooKeeper cannot be reached, or refuses access
    NOT_FOUND = 4
    CONFLICT = 5
    TIMEOUT = 6
    INTERRUPTED = 130


_MAX_CHARACTERS = 20_000  # of an error message, which may quote a text of any size
_CODES: tuple[tuple[tuple[type[Exception], ...], Exit], ...] = (
    ((Unreachable, AccessDenied, OutcomeUnknown, SessionLost, NotRunning), Exit.UNREACHABLE),
    (
        (
            ItemNotFound,
            NoSuchAttempt,
            NoSuchPool,
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
            InvalidLimit,
            InvalidTuning,
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
            typer.echo(visible(f"error: {_words(error)}"), err=True)
            return code
    message = f"error: unexpected {type(error).__name__}: {_words(error)} (-v shows the traceback)"
    typer.echo(visible(message), err=True)
    return Exit.FAILED


def _words(error: Exception) -> str:
    return shortened(REDACTOR.mask(str(error)), _MAX_CHARACTERS)
