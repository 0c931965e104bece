"""The attempts of a job as tables. Their nodes are untrusted: each value may have any type."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.cli.grid import Grid
from orchestrator.cli.output import duration, elapsed, short_path, table
from orchestrator.model.times import local_time
from orchestrator.model.web_address import application_ui
from spark_runner.protocol.attempt import application_in
from spark_runner.runners.base import SubmissionPlace

_DROP = ("where", "application", "exit", "started", "took")
_LONGEST_SECONDS = 1e12


def attempts_table(attempts: Sequence[Mapping[str, Any]], progress: Mapping[str, Any]) -> Grid:
    """A row for each attempt, the oldest first."""
    rows = [
        [
            str(item.get("attempt", "")),
            str(item.get("state") or f"cannot be read: {item.get('unreadable')!r}"),
            local_time(item.get("started")),
            elapsed(item.get("started"), item.get("ended")),
            "" if item.get("exit_code") is None else str(item["exit_code"]),
            str(item.get("application_id") or _application_of_running(item, progress)),
            _where(item.get("place")),
        ]
        for item in attempts
    ]
    return table(["attempt", "state", "started", "took", "exit", "application", "where"], rows, _DROP)


def written(attempt: Mapping[str, Any]) -> Grid | None:
    """The tables that an attempt wrote, a row each; None if it has recorded none."""
    recorded = attempt.get("tables")
    rows = [
        [
            item.get("target"),
            item.get("connector"),
            item.get("rows"),
            _took(item.get("seconds")),
            short_path(str(item.get("location", ""))),
        ]
        for item in (recorded if isinstance(recorded, list) else ())
        if isinstance(item, Mapping)
    ]
    return table(["wrote", "as", "rows", "took", "to"], rows, ("as", "took")) if rows else None


def set_aside(attempt: Mapping[str, Any]) -> Grid | None:
    """The tables with rows that did not fit, a row each; None if there are none."""
    recorded = attempt.get("bad_rows")
    rows = [
        [
            *(item.get(name) for name in ("table", "rows", "quarantined", "dropped")),
            short_path(str(item.get("place", "")).removeprefix("file:")),
        ]
        for item in (recorded if isinstance(recorded, list) else ())
        if isinstance(item, Mapping) and (item.get("quarantined") or item.get("dropped"))
    ]
    return table(["did not fit", "of", "quarantined", "dropped", "in"], rows, ("in", "of")) if rows else None


def ui_of(attempts: Sequence[Mapping[str, Any]], progress: Mapping[str, Any]) -> str | None:
    """The page of the application of the last attempt: at its master, else of its running driver."""
    last = attempts[-1] if attempts else {}
    application_id = application_in(last) or application_in(progress)
    return application_ui(
        SubmissionPlace.of(last.get("place")) or SubmissionPlace(""), application_id, progress
    )


def application(progress: Mapping[str, Any], ui: str | None) -> Iterator[str]:
    """The facts about the running application that the driver reports, with its page."""
    named = (application_in(progress), ui if progress else None)
    yield from filter(None, named)
    executors = progress.get("executors")
    if isinstance(executors, Mapping):
        yield f"executors: {executors.get('number')}, tasks: {executors.get('active_tasks')} running"
        if failed := executors.get("failed_tasks"):
            yield f"{failed} failed"


def _application_of_running(attempt: Mapping[str, Any], progress: Mapping[str, Any]) -> object:
    return progress.get("application_id", "") if attempt.get("state") == "started" else ""


def _where(document: object) -> str:
    place = SubmissionPlace.of(document)
    if place is None:
        return ""
    words = ("" if place.backend == "local" else place.backend, place.host)
    return " ".join(str(word) for word in words if word)


def _took(seconds: object) -> str:
    is_number = isinstance(seconds, int | float) and abs(seconds) < _LONGEST_SECONDS
    return duration(seconds) if is_number else ""  # type: ignore[arg-type]  # checked by is_number
