"""Options that say which log records are looked for."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from orchestrator.cli.options import parse_seconds_of
from orchestrator.errors import DefinitionError
from orchestrator.logs.reading.grep import Grep as Expression
from orchestrator.logs.reading.query import LEVELS
from spark_runner.shortened import shortened

Level = Annotated[str | None, typer.Option(help=f"This and above: {', '.join(LEVELS)}.")]
Grep = Annotated[
    str | None, typer.Option(metavar="RE", help="Only records whose message or trace this matches.")
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Not older: 10m, 2h, or a time such as 2026-11-22T10:00.")
]


def level_of(text: str | None) -> str:
    """A level as documents have it, empty without one; raises DefinitionError."""
    level = (text or "").lower()
    if level and level not in LEVELS:
        raise DefinitionError(f"--level {text!r}: one of {', '.join(LEVELS)}")
    return level


def pattern_of(text: str | None) -> Expression | None:
    """A regular expression; raises DefinitionError."""
    try:
        return None if text is None else Expression(text)
    except ValueError as error:
        message = f"--grep {shortened(text or '', 200)!r} is no regular expression of RE2: {error}"
        raise DefinitionError(message) from error


def since_of(text: str | None) -> str:
    """ISO 8601 in UTC, empty without one; a time without a zone is local. Raises DefinitionError."""
    if text is None:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        seconds = parse_seconds_of("--since", text) or 0.0
        moment = datetime.now(UTC) - timedelta(seconds=seconds)
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    except (OverflowError, ValueError) as error:  # the first and the last days of all calendars
        raise DefinitionError(f"--since {text!r}: no clock of this world shows that time") from error
