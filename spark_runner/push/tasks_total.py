"""The numbers of all tasks of a push together, from their reports."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from spark_runner.protocol.untrusted import mapping, number
from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.server import TaskState
from spark_runner.push.measures import WINDOWS_S, Counts, Delay, Latencies, Speed
from spark_runner.push.monitor import OTHERS
from spark_runner.push.settings import Limits

MAX_LANES = 50  # that are shown
_MAX_KEPT = 1000  # lanes with counts of their own; the tasks of a stream may name others without end
_NAME_CHARS = 60  # of a name in a report
NOW_S = WINDOWS_S[0]
"""The window of the speed of a lane."""
_LANES, _LATENCIES = "lanes", "latencies"
_ADDRESS = re.compile(r"https?://(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}/rows")
_TOTALS = ("recovered", "read_seconds", "push_seconds", "stopped_seconds")
_GAUGES = ("in_flight", "buffered", "buffered_bytes", "threads", "core_threads", "active")
_Sums = Counter[tuple[str, ...]]


class TasksTotal:
    """Adds up the reports of tasks, taking numbers and an address alone: their machines are not trusted."""

    def __init__(self, now: float) -> None:
        self._ended, self._all = _Sums(), _Sums()
        self._names = set[str]()  # of lanes with counts of their own
        self._gauges = dict[str, float]()
        self._available: float | None = None  # records of the source
        self._address = ""  # at which clients fetch rows
        self._read, self._settled, self._delay = Speed(now), Speed(now), Delay()
        self._looks, self._stops = Speed(now, NOW_S), Speed(now, NOW_S)  # at tasks, and at those that stop
        self._speeds, self._began = dict[str, Speed](), now  # of lanes

    def add(
        self,
        ended: Iterable[tuple[TaskId, Mapping[str, Any]]],
        running: Mapping[TaskId, TaskState],
        now: float,
    ) -> None:
        """Take the last reports of the tasks that run, and of those that have ended since the last call."""
        before = self._lanes()
        for _, report in ended:
            self._ended += self._sums(report)
        self._all = self._ended.copy()
        for state in running.values():
            self._all += self._sums(state.counts)
        reports = [state.counts for state in running.values()]
        latest = sorted(running, key=lambda task: task.attempt, reverse=True)
        self._gauges = {
            "tasks": len(running),
            "stale": sum(state.is_stale for state in running.values()),
            "stopped": sum(report.get("is_full") is True for report in reports),
            "oldest": max((number(report.get("oldest")) for report in reports), default=0.0),
            **{name: sum(number(report.get(name)) for report in reports) for name in _GAUGES},
        }
        self._looks.add(len(running), now)
        self._stops.add(int(self._gauges["stopped"]), now)
        available = [report["available"] for report in reports if report.get("available") is not None]
        self._available = sum(map(number, available)) if available else None
        self._address = next(filter(None, (_address(running[task].counts) for task in latest)), "")
        after = self._lanes()
        was, now_is = _total(before), _total(after)
        self._read.add(max(0, now_is.read - was.read), now)
        settled = now_is.settled - was.settled
        self._settled.add(max(0, settled), now)
        if settled > 0:
            self._delay.add(now)
        for name, counts in after.items():
            settled = counts.settled - (before[name].settled if name in before else 0)
            if settled > 0:
                self._speeds.setdefault(name, Speed(self._began, NOW_S)).add(settled, now)

    def document(
        self, limits: Limits, now: float, most: int = MAX_LANES, *, pushes: int = 1
    ) -> dict[str, Any]:
        """All numbers: times in seconds, speeds in records per second, over the windows in seconds.

        Of the lanes, the `most` with the most records, and the others together. Each of so many `pushes` that
        run has the limits.
        """
        records, size = self._gauges.get("buffered", 0.0), self._gauges.get("buffered_bytes", 0.0)
        behind = {}
        if self._available is not None:
            behind = {"available": self._available, "lag": self._available + records}
        # A task may hold less than its share, such as two parts of many rows, and stop nevertheless.
        looks = self._looks.over(NOW_S, now)
        stops = self._stops.over(NOW_S, now) / looks if looks else 0.0
        used = max(records / limits.buffer_records, size / limits.buffer_bytes) / max(1, pushes)
        water_line = min(1.0, max(used, stops))
        latencies = Latencies({int(key[1]): n for key, n in self._all.items() if key[0] == _LATENCIES})
        lanes, speeds = self._lanes(), Counter[str]()
        total = _total(lanes)
        shown = sorted(lanes, key=lambda name: -lanes[name].read)
        others = Counts()
        for place, name in enumerate(shown):
            is_shown = place < most
            speed = self._speeds[name].over(NOW_S, now) if name in self._speeds else 0.0
            speeds[name if is_shown else OTHERS] += speed  # type: ignore[assignment]  # a Counter of floats works
            if not is_shown:
                others += lanes.pop(name)
        if others.read:
            lanes[OTHERS] = lanes.get(OTHERS, Counts())
            lanes[OTHERS] += others
        return {
            **self._gauges,
            "water_line": round(water_line, 3),
            **behind,
            **total.document(),
            **{name: round(self._all[(name,)], 3) for name in _TOTALS},
            "delay": round(self._delay.seconds(), 3),
            "p50": round(latencies.quantile(0.5), 4),
            "p99": round(latencies.quantile(0.99), 4),
            "speed_in": {str(window): round(self._read.over(window, now), 1) for window in WINDOWS_S},
            "speed_out": {str(window): round(self._settled.over(window, now), 1) for window in WINDOWS_S},
            "lanes": {
                name: {**counts.document(), "speed": round(speeds[name], 1)} for name, counts in lanes.items()
            },
            "limits": limits.document(),
            **({"address": self._address} if self._address else {}),
        }

    def _lanes(self) -> dict[str, Counts]:
        found = dict[str, Counts]()
        for (kind, *rest), count in self._all.items():
            if kind == _LANES:
                lane, name = rest
                counts = found.setdefault(lane, Counts())
                setattr(counts, name, int(count))
        return found

    def _sums(self, report: Mapping[str, Any]) -> _Sums:
        found = _Sums()
        for lane, counts in mapping(report.get(_LANES)).items():
            shown = self._name(lane)
            for name in Counts.NAMES:
                found[_LANES, shown, name] += int(number(mapping(counts).get(name)))
        for bucket, count in mapping(report.get(_LATENCIES)).items():
            if bucket.isdecimal() and len(bucket) <= 3:  # noqa: PLR2004 - digits; a bucket is far below 1000
                found[_LATENCIES, bucket] += int(number(count))
        for name in _TOTALS:
            found[name,] += number(report.get(name))  # type: ignore[assignment]  # a Counter of floats works
        return found

    def _name(self, lane: str) -> str:
        """That under which a lane is counted, always the same."""
        name = lane[:_NAME_CHARS]
        if name not in self._names and len(self._names) >= _MAX_KEPT:
            return OTHERS
        self._names.add(name)
        return name


def _total(lanes: Mapping[str, Counts]) -> Counts:
    found = Counts()
    for counts in lanes.values():
        found += counts
    return found


def _address(report: Mapping[str, Any]) -> str:
    """The URL of the rows that a task serves; empty without one, or for another text."""
    found = report.get("address")
    return found if isinstance(found, str) and _ADDRESS.fullmatch(found) else ""
