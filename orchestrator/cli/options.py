"""Options that commands share; each has the same meaning everywhere."""

import math
import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from orchestrator.logs.console import log_to_stderr
from orchestrator.model.errors import DefinitionError, SettingsError
from orchestrator.model.fields import parse_seconds
from orchestrator.model.states import Status
from queues import check_pool
from spark_runner.protocol.text import did_you_mean, shortened

_MAX_WEIGHT = 1000  # the maximum of pools
_WEIGHT = re.compile(r"[0-9]{0,4}")
_MAX_WATCH_SECONDS = 86_400.0


class OutputFormat(StrEnum):
    """The format of the data on stdout."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


class Verbosity:
    """The effect of -v and --quiet; set while the command line is parsed."""

    verbose = False
    quiet = False


def a_number(value: float | None) -> float | None:
    """The value itself, unless it is NaN, which passes the range check of click."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


def _verbose(count: int) -> int:
    if count:
        Verbosity.verbose = True
        log_to_stderr("DEBUG" if count > 1 else "INFO", verbose=True)
    return count


def _quiet(value: bool) -> bool:  # typer passes the value of a flag by position
    Verbosity.quiet = value
    if value:
        log_to_stderr("ERROR")
    return value


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        callback=_verbose,
        show_default=False,
        help="Show more messages, and tracebacks.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_quiet, help="Show only errors.")]
Output = Annotated[OutputFormat, typer.Option("--output", "-o", help="Format of the data on stdout.")]
LogOutput = Annotated[
    OutputFormat,
    typer.Option(
        "--output",
        "-o",
        help="Format of the data on stdout; json is the same as jsonl here, a document per line.",
    ),
]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The id of the job.")]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- ARGUMENT",
        show_default=False,
        help="Arguments of a program, instead of those of its definition.",
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a variable: ${NAME} in the script."),
]
MetricsAddress = Annotated[
    str | None,
    typer.Option(metavar="[HOST:]PORT", help="Serve /metrics, /livez and /readyz; default: not served."),
]
Slots = Annotated[
    int | None,
    typer.Option(
        min=1, max=20_000, help="The number of jobs that run at once; default: half the processors."
    ),
]
Watch = Annotated[
    float | None,
    typer.Option(
        "--watch",
        "-w",
        metavar="SECONDS",
        min=0.2,
        max=_MAX_WATCH_SECONDS,
        callback=a_number,
        help="Repeat at this interval.",
    ),
]


def parse_variables(assignments: list[str] | None) -> dict[str, Any]:
    """The variables of `--set`; raises DefinitionError for an assignment without `=`."""
    variables = {}
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise DefinitionError(f"--set {assignment!r}: write NAME=VALUE")
        variables[name] = value
    return variables


def parse_pools(assignments: list[str] | None) -> dict[str, int] | None:
    """The weights of the pools of `--pool`, None without it; raises SettingsError, InvalidName."""
    if not assignments:
        return None
    pools = {}
    for assignment in assignments:
        name, _, weight = assignment.partition("=")
        if not _WEIGHT.fullmatch(weight) or not 1 <= int(weight or "1") <= _MAX_WEIGHT:
            raise SettingsError(
                f"--pool {assignment!r}: write NAME or NAME=WEIGHT, from 1 to {_MAX_WEIGHT:,}"
            )
        pools[check_pool(name)] = int(weight or "1")
    return pools


def parse_seconds_of(option: str, text: str | None) -> float | None:
    """The value of a duration option in seconds, None without it; raises DefinitionError."""
    if text is None:
        return None
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise DefinitionError(f"{option}: {error}") from error


def parse_since(text: str | None) -> datetime | None:
    """The time of --since in UTC, None without one; one without a zone is local. Raises DefinitionError."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        seconds = parse_seconds_of("--since", text) or 0.0
        moment = datetime.now(UTC) - timedelta(seconds=seconds)
    try:
        return moment.astimezone(UTC)
    except (OverflowError, ValueError) as error:  # the first and the last days that datetime has
        raise DefinitionError(f"--since {text!r}: this time is out of range") from error


def parse_labels(assignments: list[str] | None) -> dict[str, str]:
    """The labels of `--label`; raises DefinitionError for one without `=`, or with two values."""
    labels = dict[str, str]()
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise DefinitionError(f"--label {assignment!r}: write NAME=VALUE")
        if labels.setdefault(name, value) != value:
            raise DefinitionError(
                f"--label: {name!r} cannot be {labels[name]!r} and {value!r}; all must match"
            )
    return labels


def parse_statuses(texts: list[str] | None) -> list[Status]:
    """The statuses of `--status`, each option with one or several; raises DefinitionError."""
    names = [name.strip().upper() for text in texts or [] for name in text.split(",")]
    known = [status.value for status in Status]
    for name in names:
        if name not in known:
            near = did_you_mean(name, known) or f"; expected {', '.join(known)}"
            raise DefinitionError(f"--status {shortened(name, 100)!r} is unknown{near}")
    return [Status(name) for name in names]


def parse_checkpoint(*, resume: bool, fresh: bool, positions: list[str] | None) -> dict[str, Any] | None:
    """The field `checkpoint` for the options --resume, --fresh and --from; raises DefinitionError.

    A position may contain `=`, so the name of its table is what precedes the first one.
    """
    given = [
        name for name, value in (("--resume", resume), ("--fresh", fresh), ("--from", positions)) if value
    ]
    if len(given) > 1:
        raise DefinitionError(f"give only one of {' and '.join(given)}")
    if not given:
        return None
    found = dict[str, str]()
    for each in positions or []:
        table, equals, position = each.partition("=")
        name, value = (table, position) if equals else ("*", each)
        if not (name and value):
            raise DefinitionError(f"--from {each!r}: write POSITION or TABLE=POSITION")
        if name in found:
            whose = "all tables" if name == "*" else f"table {name!r}"
            raise DefinitionError(f"--from is given twice for {whose}")
        found[name] = value
    return {"start": "resume" if resume else "fresh", **({"positions": found} if found else {})}
