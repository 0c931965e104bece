"""The pushes of a running job as tables. What a driver reports is untrusted: each value may have any type."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from orchestrator.cli.grid import Grid
from orchestrator.cli.output import duration, table
from orchestrator.logs.visible import visible
from spark_runner.protocol.text import shortened

_MAX_PUSHES, _MAX_LANES = 10, 60  # a driver names 50 lanes, and paused ones
_MAX_NAME, _MAX_ADDRESS = 60, 300  # characters
_MAX_NUMBER = 1e15
_MANY = 2  # as many rows as all requests that may be in flight have: some wait
_COLUMNS = ("read", "waiting", "delivered", "rows/s", "dead", "retried", "errors", "timeouts")


def pushes(progress: Mapping[str, Any]) -> Iterator[tuple[list[str], Grid]]:
    """Lines with the numbers of each push, and a table of its lanes."""
    found = _mapping(progress.get("pushes"))
    for number, (target, push) in enumerate(found.items(), 1):
        if number > _MAX_PUSHES:
            return
        if isinstance(push, Mapping):
            which = f"push {number} of {len(found):,}" if len(found) > _MAX_PUSHES else "push"
            lanes = _lanes(push)
            yield [f"{which} into {_name(target)}", *_lines(push, lanes)], _table(push, lanes)


def _lines(push: Mapping[str, Any], lanes: Collection[str]) -> list[str]:
    limits, stale = _mapping(push.get("limits")), _number(push.get("stale"))
    speeds = [
        f"{name} {_speed(push, key, '10')} rows/s (1 min: {_speed(push, key, '60')},"
        f" 5 min: {_speed(push, key, '300')})"
        for name, key in (("in", "speed_in"), ("out", "speed_out"))
    ]
    in_flight = f"{_count(push, 'in_flight')} of {_count(limits, 'concurrency')} requests in flight"
    rate = _number(limits.get("rate"))
    address = push.get("address")
    return [
        *([f"clients fetch its rows at {_name(address, _MAX_ADDRESS)}"] if isinstance(address, str) else []),
        " · ".join(speeds),
        " · ".join(
            [
                in_flight + (f", at most {rate:g} a second" if rate else ""),
                f"{_count(push, 'buffered')} of {_count(limits, 'buffer')} rows buffered",
                f"the oldest for {duration(_number(push.get('oldest')))}",
            ]
        ),
        " · ".join(
            [
                f"latency {_milliseconds(push, 'p50')}, p99 {_milliseconds(push, 'p99')}",
                f"{_count(push, 'tasks')} tasks" + (f", {stale:.0f} without contact" if stale else ""),
                f"{_count(push, 'active')} of {_count(push, 'threads')} threads busy",
            ]
        ),
        _bottleneck(push, limits),
        _times(push),
        *_behind(push),
        *([f"{len(lanes):,} lanes, the first {_MAX_LANES} by name:"] if len(lanes) > _MAX_LANES else []),
    ]


def _behind(push: Mapping[str, Any]) -> Iterator[str]:
    """How far it is behind its source, and what went wrong in the order of its answers."""
    if "lag" in push:
        yield f"{_count(push, 'lag')} rows behind its source, which has {_count(push, 'available')} more"
    recovered, late = _number(push.get("recovered")), _number(push.get("late"))
    if recovered or late:
        yield f"scheduling: {late:,.0f} answers after a rollback, {recovered:,.0f} order groups recovered"


def _times(push: Mapping[str, Any]) -> str:
    """The profile: where its tasks and requests spent their time."""
    read, pushed, stopped = (
        duration(_number(push.get(name))) for name in ("read_seconds", "push_seconds", "stopped_seconds")
    )
    return f"time: {read} to read and transform, {pushed} in requests, {stopped} stopped by a full buffer"


def _bottleneck(push: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
    """Which stage the others wait for."""
    if limits.get("is_suspended") is True:
        return "an operator has suspended it"
    if not _number(push.get("tasks")):
        return "no task of it runs now"
    causes = ["its target"]
    causes += ["its rate limit"] if _number(limits.get("rate")) else []
    causes += ["a paused lane"] if _paused(push) else []
    if _number(push.get("stopped")):
        return f"{' or '.join(causes)} sets the pace: the buffer is full, and reading waits"
    concurrency = _number(limits.get("concurrency"))
    if 0 < concurrency <= _number(push.get("in_flight")):
        return "its target sets the pace: all requests that it may have are in flight"
    requests, delivered = (_number(push.get(name)) for name in ("requests", "delivered"))
    if (
        requests
        and concurrency
        and _number(push.get("buffered")) > _MANY * concurrency * delivered / requests
    ):
        return f"{' or '.join(causes)} sets the pace: rows wait for it"
    return "its source sets the pace: rows are sent as they come"


def _paused(push: Mapping[str, Any]) -> frozenset[str]:
    names = _mapping(push.get("limits")).get("paused")
    return (
        frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
    )


def _lanes(push: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The counts of each lane, and of paused ones before their first row."""
    counts = _mapping(push.get("lanes"))
    return {name: _mapping(counts.get(name)) for name in sorted({*counts, *_paused(push)})}


def _table(push: Mapping[str, Any], lanes: Mapping[str, Mapping[str, Any]]) -> Grid:
    paused = _paused(push)
    rows = [
        [_name(name) or "(no lane)", *_counts(counts), "paused" if name in paused else ""]
        for name, counts in islice(lanes.items(), _MAX_LANES)
    ]
    total = ["all", *_counts({**push, "speed": _mapping(push.get("speed_out")).get("10")}), ""]
    return table(["lane", *_COLUMNS, ""], rows if len(rows) == 1 else [*rows, total])


def _name(text: str, most: int = _MAX_NAME) -> str:
    return visible(shortened(text, most)).replace("\n", r"\n")


def _speed(push: Mapping[str, Any], name: str, window: str) -> str:
    return f"{_number(_mapping(push.get(name)).get(window)):,.0f}"


def _counts(values: Mapping[str, Any]) -> list[int]:
    read, delivered, dead = (_number(values.get(name)) for name in ("read", "delivered", "dead"))
    own = {"waiting": max(0.0, read - delivered - dead), "rows/s": _number(values.get("speed"))}
    return [int(own[column] if column in own else _number(values.get(column))) for column in _COLUMNS]


def _milliseconds(push: Mapping[str, Any], name: str) -> str:
    return f"{1000 * _number(push.get(name)):,.0f} ms"


def _count(values: Mapping[str, Any], name: str) -> str:
    return f"{_number(values.get(name)):,.0f}"


def _number(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER
    return float(value) if is_number else 0.0  # type: ignore[arg-type]  # checked by is_number


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
