"""The times of the faults, from a seed, so that a run can be repeated."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from tests.chaos.faults import (
    CloseSession,
    Corrupt,
    CutDownstream,
    CutUpstream,
    DropReply,
    Fault,
    KillLeader,
    Refuse,
    Restart,
    RestartServers,
    ShiftClock,
    SigCont,
    SigKill,
    SigStop,
)

_CLOCK_SHIFTS_S = (-30.0, 30.0)
_RESTART_AFTER_S = (0.2, 2.0)
_SERVER_AWAY_S = (3.0, 8.0)  # longer than an election of three servers on a busy machine
_CORRUPT_ITEMS = (1, 3)
_STOP_SESSIONS = (1.3, 2.0)  # times the session timeout: the actor has lost its session
_CUT_SESSIONS = (0.2, 1.8)  # some shorter than the session timeout, some longer


class Trouble(StrEnum):
    """A kind of fault in a schedule; the fault that undoes it is added."""

    SIGKILL = SigKill.name
    SIGSTOP = SigStop.name
    CLOSE_SESSION = CloseSession.name
    DROP_REPLY = DropReply.name
    REFUSE = Refuse.name
    CUT_UPSTREAM = CutUpstream.name
    CUT_DOWNSTREAM = CutDownstream.name
    CLOCK = ShiftClock.name
    KILL_LEADER = KillLeader.name
    CORRUPT = Corrupt.name


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault and its time in seconds after the start."""

    at: float
    fault: Fault


def plan(
    seed: int,
    actors: Sequence[str],
    faults: int,
    *,
    interval_s: float,
    session_s: float,
    kinds: Sequence[Trouble] = tuple(Trouble),
) -> tuple[Planned, ...]:
    """This many faults, at least `interval_s` apart on average, in the order of their times.

    Each kind occurs once before one occurs again. An actor has one fault at a time, to separate the effects;
    several actors may have faults at the same time. Faults that undo others are not counted in `faults`.
    """
    rng = random.Random(seed)  # noqa: S311 - chosen to be repeatable
    busy_until = dict.fromkeys(actors, 0.0)
    leader_back_at = at = 0.0
    planned, deck = list[Planned](), list[Trouble]()
    for _ in range(faults):
        deck = deck or rng.sample(kinds, len(kinds))
        kind = deck.pop()
        at += interval_s * rng.uniform(0.5, 1.5)
        at = max(at, leader_back_at if kind is Trouble.KILL_LEADER else min(busy_until.values()))
        actor = rng.choice([name for name in actors if busy_until[name] <= at] or list(actors))
        fault, seconds, undo = _deal(kind, actor, rng, session_s)
        planned.append(Planned(at, fault))
        if undo is not None:
            planned.append(Planned(at + seconds, undo))
        if kind is Trouble.KILL_LEADER:
            leader_back_at = at + seconds
        else:
            busy_until[actor] = max(busy_until[actor], at + seconds)
    return tuple(sorted(planned, key=lambda one: one.at))


def _deal(  # noqa: C901, PLR0911 - one line for each kind of trouble
    kind: Trouble, actor: str, rng: random.Random, session_s: float
) -> tuple[Fault, float, Fault | None]:
    """The fault, its duration, and the fault that ends it, if needed."""
    cut_s = session_s * rng.uniform(*_CUT_SESSIONS)
    match kind:
        case Trouble.SIGKILL:
            return SigKill(actor), rng.uniform(*_RESTART_AFTER_S), Restart(actor)
        case Trouble.SIGSTOP:
            return SigStop(actor), session_s * rng.uniform(*_STOP_SESSIONS), SigCont(actor)
        case Trouble.CLOSE_SESSION:
            return CloseSession(actor), 0.0, None
        case Trouble.DROP_REPLY:
            return DropReply(actor), 0.0, None
        case Trouble.REFUSE:
            return Refuse(actor, cut_s), cut_s, None
        case Trouble.CUT_UPSTREAM:
            return CutUpstream(actor, cut_s), cut_s, None
        case Trouble.CUT_DOWNSTREAM:
            return CutDownstream(actor, cut_s), cut_s, None
        case Trouble.CLOCK:
            return ShiftClock(actor, rng.choice(_CLOCK_SHIFTS_S)), 0.0, None
        case Trouble.KILL_LEADER:
            return KillLeader(), rng.uniform(*_SERVER_AWAY_S), RestartServers()
        case Trouble.CORRUPT:
            return Corrupt(rng.randint(*_CORRUPT_ITEMS)), 0.0, None
        case _:
            assert_never(kind)
