"""How far pushes are delivered: what comes after them goes on from there."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from spark_runner.protocol.untrusted import mapping
from spark_runner.push.control.budget import TaskId
from spark_runner.push.errors import PushError

MAX_CHARACTERS = 4096
"""Of a position as JSON."""
OF_ATTEMPT, OF_NAME = "attempt", "name"
"""Who goes on: a further attempt of the job, or the next run of any job of its name."""
MAX_DEPTH = 20
"""Of lists and objects within each other in a position: each reader of JSON has a limit of its own."""
_MAX_PARTITIONS = 10_000


class BadPosition(PushError):
    """The position is no value that a node can keep."""


def check_position(position: Any) -> None:
    """Raise BadPosition for what no node can keep: large, deep, or with half of a pair of surrogates."""
    try:
        text = json.dumps(position, allow_nan=False)
        if "\\u" in text:
            json.dumps(position, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadPosition(f"it is no value for JSON: {error}") from error
    if len(text) > MAX_CHARACTERS:
        raise BadPosition(f"it has {len(text)} characters; at most {MAX_CHARACTERS} are kept")
    if not is_shallow(position):
        raise BadPosition(f"it is nested more than {MAX_DEPTH} times")


def is_shallow(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value of JSON is nested at most so many times."""
    if not isinstance(value, dict | list | tuple):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(is_shallow(each, depth - 1) for each in inner)


def can_be_kept(position: Any) -> bool:
    """Whether it is a position that a node can keep; None is none."""
    try:
        check_position(position)
    except BadPosition:
        return False
    return position is not None


class Positions:
    """The positions of one push by partition: those of the latest attempts of its tasks."""

    def __init__(self, reached: Mapping[int, Any] | None = None) -> None:
        self.reached = dict(reached or {})
        """Those at the start, up to which each row is delivered."""
        self._acknowledged = {partition: (-1, position) for partition, position in self.reached.items()}
        self._read = dict(self._acknowledged)

    def add(self, reports: Iterable[tuple[TaskId, Mapping[str, Any]]]) -> None:
        """Take what tasks report."""
        for task, report in reports:
            for known, name in ((self._acknowledged, "position"), (self._read, "read_position")):
                position, last = report.get(name), known.get(task.partition)
                is_latest = last is None or task.attempt >= last[0]
                if not is_latest or not can_be_kept(position):
                    continue
                if last is not None or len(known) < _MAX_PARTITIONS:
                    known[task.partition] = task.attempt, position

    def acknowledged(self) -> dict[str, Any]:
        """The position of each partition, for JSON."""
        return {str(partition): position for partition, (_, position) in sorted(self._acknowledged.items())}

    def of_source(self) -> dict[str, Any]:
        """The positions of the only partition: up to which it is delivered, and up to which it is read."""
        found = {"acknowledged": self._acknowledged.get(0), "read": self._read.get(0)}
        return {name: known[1] for name, known in found.items() if known is not None}


class KeptPositions:
    """The positions of the pushes of a driver, and of those before them; not safe for threads.

    A document has `attempt`, the positions of each push by partition, and `name`, those of pushes that read
    their source themselves.
    """

    def __init__(self) -> None:
        self._before: dict[str, dict[str, Any]] = {OF_ATTEMPT: {}, OF_NAME: {}}
        self._now: dict[str, dict[str, Positions]] = {OF_ATTEMPT: {}, OF_NAME: {}}
        self._ended = dict[str, Any]()  # after all rows of pushes that have ended, dead ones too

    def follow(self, document: Mapping[str, Any]) -> None:
        """Go on after the positions in a document; what is none is left out: rows are delivered again."""
        for kind, known in self._before.items():
            known.update(mapping(document.get(kind)))

    def start(self, kind: str, name: str) -> Positions:
        """Those of a push that starts under this name, which no other one of this kind has."""
        if kind == OF_NAME and name in self._ended:
            # Who pushes on has dealt with the dead letters of the push before.
            reached = {0: self._ended.pop(name)}
        elif kind == OF_NAME:
            known = self._now[kind].get(name)
            found = mapping(self._before[kind].get(name)) if known is None else known.of_source()
            reached = {0: found["acknowledged"]} if "acknowledged" in found else {}
        else:
            found = mapping(self._before[kind].get(name))
            reached = {int(part): each for part, each in found.items() if part.isdecimal() and len(part) < 9}  # noqa: PLR2004 - digits of a partition
        made = self._now[kind][name] = Positions(reached)
        return made

    def reached(self, name: str, position: Any) -> None:
        """A push for the next run of the name has delivered all before this position, but for dead letters.

        The program has these, and may still fail: then the next run meets them again.
        """
        self._ended[name] = position

    def forget(self, name: str) -> None:
        """Let the next push of this name begin with its first row, also in a further attempt."""
        self._before[OF_ATTEMPT].pop(name, None)
        self._now[OF_ATTEMPT].pop(name, None)

    def document(self, *, is_done: bool) -> dict[str, Any]:
        """All positions; after the job is done, those for the next one of its name."""
        of_attempt = {name: each.acknowledged() for name, each in self._now[OF_ATTEMPT].items()}
        of_name = {name: each.of_source() for name, each in self._now[OF_NAME].items()}
        for name, position in self._ended.items() if is_done else ():
            of_name[name] = {**of_name.get(name, {}), "acknowledged": position}
        found = {OF_ATTEMPT: {} if is_done else {**self._before[OF_ATTEMPT], **of_attempt}, OF_NAME: of_name}
        return {kind: each for kind, each in found.items() if each}
