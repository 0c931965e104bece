"""Writes synthetic histories, an event a line, as a test wants them told."""

from typing import Self, Unpack

from tests.chaos.checker import check
from tests.chaos.events import Event, Fields, Kind
from tests.chaos.report import Report
from tests.chaos.rules import Rules
from tests.chaos.snapshot import Record, Snapshot, Token

POOL = "p"

RULES = Rules(frozenset({("accept", "running"), ("running", "accept"), ("accept", "dead")}), max_attempts=3)


class Story:
    """One item `i` unless said otherwise; time goes on by a millisecond with each event."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.records: dict[str, Record] = {}
        self.tokens: list[Token] = []
        self.locks: list[str] = []

    def tell(self, kind: Kind, actor: str, incarnation: int = 0, **told: Unpack[Fields]) -> Self:
        """Any event."""
        return self._tell(kind, actor, told, incarnation)

    def put(self, key: str = "r", *, acked: bool = True, due: int = 0) -> Self:
        """A put by `p` into accept."""
        about: Fields = {"run_key": key, "queue": "accept", "pool": POOL}
        self._tell(Kind.PUT_SENT, "p", about)
        if acked:
            self._tell(Kind.PUT_ACKED, "p", {**about, "due": due, "version": 0})
        return self

    def claim(self, actor: str, version: int, queue: str = "accept", /, **told: Unpack[Fields]) -> Self:
        """A claim that was accepted, told of by its actor."""
        about: Fields = {"version": version, "queue": queue, "pool": POOL, "due": 0}
        return self._tell(Kind.CLAIM_ACKED, actor, about | told)

    def start(self, actor: str, version: int, wall_ms: int = 0, /, **told: Unpack[Fields]) -> Self:
        """A handler begins to work on a claim."""
        about: Fields = {"version": version, "wall_ms": wall_ms, "queue": "accept"}
        return self._tell(Kind.HANDLER_STARTED, actor, about | told)

    def step(
        self,
        actor: str,
        version: int,
        way: str = "accept->running",
        /,
        *,
        acked: bool = True,
        **told: Unpack[Fields],
    ) -> Self:
        """A step to `version`, let go afterwards unless `released` says otherwise."""
        queue, _, to_queue = way.partition("->")
        about: Fields = {"queue": queue, "pool": POOL, "to_queue": to_queue, "due": 0, "released": True}
        self._tell(Kind.STEP_SENT, actor, {**(about | told), "version": version - 1})
        if acked:
            self._tell(Kind.STEP_ACKED, actor, {**(about | told), "version": version})
        return self

    def remove(self, actor: str, version: int, *, acked: bool = True, key: str = "r") -> Self:
        """A removal from the fence `version`."""
        self.tell(Kind.REMOVED_SENT, actor, version=version, run_key=key)
        if acked:
            self.tell(Kind.REMOVED_ACKED, actor, version=version, run_key=key)
        return self

    def left(self, version: int, queue: str, *, key: str = "r", due: int = 0, nonce: str = "") -> Self:
        """In the end, record and token stand here."""
        self.records["i"] = Record(version, key, queue, POOL, due, nonce)
        self.tokens.append(Token(queue, POOL, "i", due))
        return self

    def snapshot(self) -> Snapshot:
        """What is left."""
        return Snapshot(self.records, tuple(self.tokens), tuple(self.locks))

    def _tell(self, kind: Kind, actor: str, told: Fields, incarnation: int = 0) -> Self:
        t = (len(self.events) + 1) * 1_000_000
        about: Fields = {"id": "i", "run_key": "r"}
        self.events.append(Event(kind, actor, t=t, incarnation=incarnation, **(about | told)))
        return self


def spoilt(kind: Kind) -> Story:
    """An item whose record the nemesis has, or may have, written over."""
    story = Story().put().tell(kind, "nemesis", version=0 if kind is Kind.CORRUPT_SENT else 1)
    story.tell(Kind.DEAD, "a", run_key="", queue="accept", to_queue="dead")
    story.records["i"] = Record(1, readable=False)
    story.tokens.append(Token("dead", POOL, "i", 0))
    return story


def judge(story: Story, rules: Rules = RULES) -> Report:
    """What the checker says to it."""
    return check(story.events, story.snapshot(), rules)
