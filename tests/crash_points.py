"""Named steps of a job, and the death of a process just before or just after one of them.

A step has the name of its multi: `claim accept`, `intent`, `killed` (the attempt is closed as killed),
`running>success` (the token moves between queues), `history` (the run is recorded), `mark` (for the archive),
`removal`, `decide` (a run after other jobs is written into its schedule), `fire` (a leader enqueues a run);
or the name of a call: `submit` (of the runner), `call` (of the callback), `archive` (the write).
"""

import json
import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from queues.model.operations import Check, Create, Delete, Operation, Set
from queues.session import Posted, Session
from spark_runner.runners.base import Runner

Matcher = Callable[[Sequence[Operation]], bool]

_RECORD = re.compile(r".*/jobs/[0-9a-f]{2}/[^/]+")
_ATTEMPT = re.compile(r".*/jobs/[0-9a-f]{2}/[^/]+/attempt-\d+-[^/]+")
_HISTORY = re.compile(r".*/history/[^/]+")
_SCHEDULE = re.compile(r".*/schedules/[^/]+")
_TOKEN = re.compile(r".*/queues/(\w+)/[^/]+/queue-\|.*")


@dataclass(frozen=True, slots=True)
class Point:
    """Just before this step, or just after it."""

    step: str
    after: bool

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} {self.step}"


def points(*steps: str) -> list[Point]:
    """Both sides of each step."""
    return [Point(step, after) for step in steps for after in (False, True)]


def arm(point: Point, runner: Runner) -> None:
    """Make this process kill itself by SIGKILL when it first reaches the point."""
    match point.step:
        case "submit":
            _arm_call(type(runner), "submit", point)
        case "call":
            _arm_call(import_module("orchestrator.callbacks.callback").Callbacks, "call_reserved", point)
        case "archive":
            _arm_call(import_module("orchestrator.archive.jsonl").JsonlArchive, "write", point)
        case step:
            _arm_commit(matcher(step), point)


def matcher(step: str) -> Matcher:
    """A condition: a multi does this step, possibly among others."""
    if step.startswith("claim "):
        queue = step.removeprefix("claim ")
        return lambda operations: (
            any(isinstance(o, Create) and o.ephemeral and "/locks/" in o.path for o in operations)
            and queue in {found[1] for o in operations if (found := _TOKEN.fullmatch(o.path))}
        )
    if ">" in step:
        source, target = step.split(">")
        return lambda operations: (
            _in_queue(operations, Delete, source) and _in_queue(operations, Create, target)
        )
    return {
        "intent": _makes_attempt,
        "killed": _kills,
        "history": _notes,
        "mark": _marks,
        "removal": _removes,
        "decide": _decides,
        "fire": _fires,
    }[step]


def die() -> None:
    """As `kill -9` from outside: without cleanup."""
    os.kill(os.getpid(), signal.SIGKILL)


def _in_queue(operations: Sequence[Operation], kind: type[Operation], queue: str) -> bool:
    found = [_TOKEN.fullmatch(o.path) for o in operations if isinstance(o, kind)]
    return any(match is not None and match[1] == queue for match in found)


def _makes_attempt(operations: Sequence[Operation]) -> bool:
    return any(isinstance(o, Create) and _ATTEMPT.fullmatch(o.path) for o in operations)


def _kills(operations: Sequence[Operation]) -> bool:
    attempts = [json.loads(o.data) for o in operations if isinstance(o, Set) and _ATTEMPT.fullmatch(o.path)]
    return any(attempt["state"] == "killed" for attempt in attempts)


def _notes(operations: Sequence[Operation]) -> bool:
    return any(isinstance(o, Create | Set) and _HISTORY.fullmatch(o.path) for o in operations)


def _marks(operations: Sequence[Operation]) -> bool:
    records = [json.loads(o.data) for o in operations if isinstance(o, Set) and _RECORD.fullmatch(o.path)]
    is_claim = any(isinstance(o, Create) for o in operations)
    return not is_claim and any(record["payload"].get("archive") for record in records)


def _removes(operations: Sequence[Operation]) -> bool:
    return any(isinstance(o, Delete) and _RECORD.fullmatch(o.path) for o in operations)


def _decides(operations: Sequence[Operation]) -> bool:
    return any(
        isinstance(o, Set) and _SCHEDULE.fullmatch(o.path) and json.loads(o.data).get("armed")
        for o in operations
    )


def _fires(operations: Sequence[Operation]) -> bool:
    is_of_schedule = any(isinstance(o, Check) and _SCHEDULE.fullmatch(o.path) for o in operations)
    return is_of_schedule and _in_queue(operations, Create, "accept")


def _arm_commit(matches: Matcher, point: Point) -> None:
    post = Session.post

    def fatal(session: Session, operations: Sequence[Operation]) -> Posted:
        if not matches(operations):
            return post(session, operations)
        if not point.after:
            die()
        return _Last(post(session, operations))

    setattr(Session, "post", fatal)  # noqa: B010 - a replacement that mypy would refuse


class _Last(Posted):
    """A multi whose process dies when its answer arrives, if it was applied."""

    def __init__(self, posted: Posted) -> None:
        super().__init__(None)
        self._posted = posted

    def results(self, timeout: float) -> list[Any]:
        results = self._posted.results(timeout)
        if not any(isinstance(result, Exception) for result in results):
            die()
        return results


def _arm_call(owner: type, name: str, point: Point) -> None:
    call = getattr(owner, name)

    def fatal(*arguments: Any, **named: Any) -> Any:
        if not point.after:
            die()
        result = call(*arguments, **named)
        die()
        return result

    setattr(owner, name, fatal)
