"""Jobs of many kinds, from a seed: the program of each, and its expected end."""

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from orchestrator.model.states import Status

CAPPED_POOL, POOL_CAP = "capped", 3
LIMITED_NAME, NAME_LIMIT = "limited", 2
_POOL_SHARE, _NAME_SHARE, _NEW_POOL_SHARE = 0.25, 0.12, 0.06
_REUSED_IDS = 3
_TURNS = 4  # accept, running, an attempt in it, its end
_RETRY = {"attempts": 3, "delay": "200ms"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job; `weight` is its relative frequency."""

    name: str
    weight: int
    program: str
    ends: Collection[Status]
    fields: dict[str, Any] = field(default_factory=dict)
    is_killed: bool = False
    is_raced: bool = False  # a request to stop follows one of its turns immediately
    is_reused: bool = False  # its id is one of a few: the earlier job of that id is removed first


@dataclass(frozen=True, slots=True)
class Planned:
    """One job: its time of submission, and the seconds, or turns, after which it is killed; None = never."""

    at: float
    id: str
    kind: Kind
    delay: float
    fields: dict[str, Any]
    kill_after: float | None
    kill_turn: int | None = None


KINDS = (
    Kind("short", 30, "sleep({seconds})", {Status.SUCCESS}),
    Kind("late", 6, "pass", {Status.SUCCESS}),
    Kind(
        "third-time-lucky", 10, "attempt > 2 or fail('not yet')", {Status.SUCCESS}, fields={"retry": _RETRY}
    ),
    Kind("fails", 8, "sleep(0.1)\nfail('no rows today')", {Status.ERROR_FAIL}, fields={"retry": _RETRY}),
    Kind("no-outcome", 6, "leave(3)", {Status.ERROR_FAIL}),
    Kind("vanishes", 8, "attempt > 1 or vanish()", {Status.SUCCESS}, fields={"retry": _RETRY}),
    Kind("too-long", 5, "hang()", {Status.ERROR_FAIL}, fields={"timeout": {"run": 1}}),
    # A job killed before its driver starts is cancelled.
    Kind("killed", 8, "hang()", {Status.KILL, Status.CANCEL}, is_killed=True),
    Kind("raced", 8, "sleep(0.1)", {Status.SUCCESS, Status.KILL, Status.CANCEL}, is_raced=True),
    Kind("reused", 12, "sleep(0.05)", {Status.SUCCESS}, is_reused=True),
)


def mix(seed: int, jobs: int, seconds: float) -> list[Planned]:
    """Jobs at random times within these seconds; the same seed gives the same jobs."""
    rng = random.Random(seed)  # noqa: S311 - repeatable
    planned = []
    for number in range(jobs):
        (kind,) = rng.choices(KINDS, [kind.weight for kind in KINDS])
        fields: dict[str, Any] = dict(kind.fields)
        if rng.random() < _POOL_SHARE:
            fields["pool"] = CAPPED_POOL
        elif rng.random() < _NEW_POOL_SHARE:
            fields["pool"] = f"new-{number}"  # the pool appears while the others are in use
        # Only short jobs have a limited name: long ones would delay the run.
        if not kind.is_killed and kind.name != "too-long" and rng.random() < _NAME_SHARE:
            fields |= {"name": LIMITED_NAME, "concurrency": NAME_LIMIT}
        planned.append(
            Planned(
                at=rng.uniform(0, seconds),
                id=f"{kind.name}-{number % _REUSED_IDS if kind.is_reused else number:04}",
                kind=kind,
                delay=rng.uniform(1, 5) if kind.name == "late" else 0.0,
                fields={**fields, "python": kind.program.format(seconds=round(rng.uniform(0, 1), 2))},
                kill_after=rng.uniform(0, 3) if kind.is_killed else None,
                kill_turn=rng.randint(1, _TURNS) if kind.is_raced else None,
            )
        )
    return sorted(planned, key=lambda job: job.at)
