"""The entries of a running stream in the history: one for each full hour, and the rest in that of its run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.history.key import Key
from orchestrator.model.times import seconds_between, stored_time
from queues import timestamp
from spark_runner.protocol.attempt import Attempt, application_in

HOUR_SECONDS = 3_600.0
MAX_HOURS = 24  # in a ring, which has room for runs besides

Run = Mapping[str, Any]

_LARGEST = 2**63 - 1  # a number of rows is that of Spark, a long
_COUNTS = ("rows", "batches")


@dataclass(frozen=True, slots=True)
class StreamTotals:
    """What all queries of an attempt have written since its start."""

    rows: int
    batches: int

    @classmethod
    def of(cls, document: Mapping[str, Any] | None) -> "StreamTotals | None":
        """The totals that a driver reports, in its progress or its outcome; None without valid ones."""
        written = (document or {}).get("streamed")
        if not isinstance(written, Mapping):
            return None
        counts = [written.get(name) for name in _COUNTS]
        if not all(type(count) is int and 0 <= count <= _LARGEST for count in counts):
            return None
        return cls(written["rows"], written["batches"])

    def to_json(self) -> dict[str, int]:
        """The fields of an entry."""
        return {"total_rows": self.rows, "total_batches": self.batches}


def hour_of(
    attempt: Attempt,
    hour: int,
    totals: StreamTotals,
    *,
    job_id: str,
    sample: Mapping[str, Any],
    key: Key,
) -> dict[str, Any]:
    """The entry after so many full hours of a started attempt; the ring adds what is new in the last one.

    `sample`: its measurements so far, from samples.py, and what was asked for.
    """
    document = attempt.document
    return {
        "run": attempt.run,
        "hour": hour,
        "job": job_id,
        "attempt": attempt.number,
        "state": "running",
        "class": None,
        "started": stored_time(document.get("started")),
        "ended": timestamp(),
        "application_id": application_in(document),
        **totals.to_json(),
        "code": key.code,
        "parameters": key.parameters,
        **sample,
    }


def key_of(run: Run) -> tuple[object, object]:
    """What the ring holds once: a run, or an hour of it."""
    return run["run"], run.get("hour")


def with_news(run: Run, earlier: Iterable[Run]) -> Run | None:
    """The entry with its rows and batches since the last hour in the ring; None for an hour before that.

    An hour covers the time since the last one, also where no worker has recorded hours for a while.
    """
    hours = [each for each in earlier if each["run"] == run["run"] and isinstance(each.get("hour"), int)]
    last = max(hours, key=lambda each: each["hour"], default={})
    hour = run.get("hour")
    if hour is not None and last and hour <= last["hour"]:
        return None
    news: dict[str, Any] = {}
    if hour is not None:
        news["started"] = last.get("ended", run.get("started"))
        news["seconds"] = seconds_between(news["started"], run.get("ended"))
    for name in _COUNTS:
        if isinstance(total := run.get(f"total_{name}"), int):
            before = last.get(f"total_{name}", 0)
            news[name] = max(0, total - (before if isinstance(before, int) else 0))
    return {**run, **news}


def without_old_hours(runs: Sequence[Run]) -> list[Run]:
    """The entries, of which the last MAX_HOURS may be hours of streams."""
    surplus = sum(isinstance(each.get("hour"), int) for each in runs) - MAX_HOURS
    kept = list[Run]()
    for run in runs:
        if isinstance(run.get("hour"), int) and surplus > 0:
            surplus -= 1
        else:
            kept.append(run)
    return kept
