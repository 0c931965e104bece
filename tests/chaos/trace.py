"""Synthetic histories for tests of the checker: one call per event."""

from typing import Self, Unpack

from tests.chaos.checker import check
from tests.chaos.events import Event, Fields, Kind
from tests.chaos.report import Report
from tests.chaos.rules import Rules
from tests.chaos.snapshot import Record, Snapshot, Token

POOL = "p"

RULES = Rules(frozenset({("accept", "running"), ("running", "accept"), ("accept", "dead")}), max_attempts=3)


class Trace:
    """The history of item `i`, unless a call names another; events are one millisecond apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.records: dict[str, Record] = {}
        self.tokens: list[Token] = []
        self.locks: list[str] = []

    def add(self, kind: Kind, actor: str, incarnation: int = 0, **fields: Unpack[Fields]) -> Self:
        """Any event."""
        return self._append(kind, actor, fields, incarnation)

    def put(self, key: str = "r", *, acked: bool = True, due: int = 0) -> Self:
        """A put by `p` into accept."""
        about: Fields = {"run_key": key, "queue": "accept", "pool": POOL}
        self._append(Kind.PUT_SENT, "p", about)
        if acked:
            self._append(Kind.PUT_ACKED, "p", {**about, "due": due, "version": 0})
        return self

    def claim(self, actor: str, version: int, queue: str = "accept", /, **fields: Unpack[Fields]) -> Self:
        """A claim that was accepted, as its actor records it."""
        about: Fields = {"version": version, "queue": queue, "pool": POOL, "due": 0}
        return self._append(Kind.CLAIM_ACKED, actor, about | fields)

    def start(self, actor: str, version: int, wall_ms: int = 0, /, **fields: Unpack[Fields]) -> Self:
        """A handler begins to work on a claim."""
        about: Fields = {"version": version, "wall_ms": wall_ms, "queue": "accept"}
        return self._append(Kind.HANDLER_STARTED, actor, about | fields)

    def step(
        self,
        actor: str,
        version: int,
        way: str = "accept->running",
        /,
        *,
        acked: bool = True,
        **fields: Unpack[Fields],
    ) -> Self:
        """A step to `version`; it releases the claim unless `released` is False."""
        queue, _, to_queue = way.partition("->")
        about: Fields = {"queue": queue, "pool": POOL, "to_queue": to_queue, "due": 0, "released": True}
        self._append(Kind.STEP_SENT, actor, {**(about | fields), "version": version - 1})
        if acked:
            self._append(Kind.STEP_ACKED, actor, {**(about | fields), "version": version})
        return self

    def remove(self, actor: str, version: int, *, acked: bool = True, key: str = "r") -> Self:
        """A removal from the fence `version`."""
        self.add(Kind.REMOVED_SENT, actor, version=version, run_key=key)
        if acked:
            self.add(Kind.REMOVED_ACKED, actor, version=version, run_key=key)
        return self

    def left(self, version: int, queue: str, *, key: str = "r", due: int = 0, nonce: str = "") -> Self:
        """The record and the token at the end of the run."""
        self.records["i"] = Record(version, key, queue, POOL, due, nonce)
        self.tokens.append(Token(queue, POOL, "i", due))
        return self

    def snapshot(self) -> Snapshot:
        """What is left."""
        return Snapshot(self.records, tuple(self.tokens), tuple(self.locks))

    def _append(self, kind: Kind, actor: str, fields: Fields, incarnation: int = 0) -> Self:
        t = (len(self.events) + 1) * 1_000_000
        about: Fields = {"id": "i", "run_key": "r"}
        self.events.append(Event(kind, actor, t=t, incarnation=incarnation, **(about | fields)))
        return self


def spoilt(kind: Kind) -> Trace:
    """An item whose record the nemesis has, or may have, overwritten."""
    trace = Trace().put().add(kind, "nemesis", version=0 if kind is Kind.CORRUPT_SENT else 1)
    trace.add(Kind.DEAD, "a", run_key="", queue="accept", to_queue="dead")
    trace.records["i"] = Record(1, readable=False)
    trace.tokens.append(Token("dead", POOL, "i", 0))
    return trace


def judge(trace: Trace, rules: Rules = RULES) -> Report:
    """The report of the checker."""
    return check(trace.events, trace.snapshot(), rules)
