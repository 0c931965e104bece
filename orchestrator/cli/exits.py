"""Which error ends with which exit code."""

import typer

from orchestrator.cli.exit_codes import Exit
from orchestrator.errors import (
    AlreadyEnded,
    DefinitionError,
    HistoryNotFound,
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
from orchestrator.logs.console import configure_loguru
from orchestrator.logs.errors import LogsError
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
from queues.embedded.errors import DataDirectoryInUse
from queues.errors import (
    AccessDenied,
    ClaimLost,
    Conflict,
    CorruptRecord,
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
)
from queues.private_directory import UnsafeDirectory
from spark_runner.errors import SparkRunnerError
from spark_runner.shortened import shortened
from spark_runner.sql.errors import SqlError

_MAX_CHARACTERS = 20_000  # of an error: it may quote what has no end
_CODES: tuple[tuple[tuple[type[Exception], ...], Exit], ...] = (
    ((Unreachable, AccessDenied, OutcomeUnknown, SessionLost, NotRunning), Exit.UNREACHABLE),
    ((ItemNotFound, NoSuchAttempt, NoSuchPool, ScheduleNotFound, HistoryNotFound), Exit.NOT_FOUND),
    (
        (
            IdTaken,
            AlreadyEnded,
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
            SettingsError,
            UnsafeDirectory,
            NotConfirmed,
            SqlError,
            InvalidName,
            InvalidLimit,
            TooLarge,
        ),
        Exit.USAGE,
    ),
    ((CorruptRecord, QueueError, SparkRunnerError, OrchestratorError, LogsError), Exit.FAILED),
)


def explain_error(error: Exception, *, verbose: bool) -> Exit:
    """Say on stderr what happened; the traceback only when asked for. Returns the exit code."""
    if verbose:
        from loguru import logger  # noqa: PLC0415 - slow to load, and seldom asked for

        configure_loguru()
        logger.opt(exception=error).error("{}", type(error).__name__)
    for types, code in _CODES:
        if isinstance(error, types):
            typer.echo(visible(f"error: {_words(error)}"), err=True)
            return code
    message = f"error: unexpected {type(error).__name__}: {_words(error)} (-v shows where)"
    typer.echo(visible(message), err=True)
    return Exit.FAILED


def _words(error: Exception) -> str:
    return shortened(REDACTOR.mask(str(error)), _MAX_CHARACTERS)
