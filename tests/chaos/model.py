"""A queue in memory whose actors write histories as real ones do; it tests the checker.

Actors are killed at every point of a request, lose their sessions and act on old listings. Each protection
of the server can be taken out by its name: the checker must then find the violations.
"""

import random
from dataclasses import dataclass, field
from typing import Self

from tests.chaos.events import Event, Fields, Kind
from tests.chaos.model_server import POOL, Broken, Held, Item, Server, TokenKey
from tests.chaos.rules import Rules
from tests.chaos.snapshot import Snapshot

RULES = Rules(
    transitions=frozenset({("accept", "running"), ("running", "accept"), ("running", "finish")}),
    max_attempts=3,
)

_ACTORS = 4
_IDS = 6  # few, so that ids are reused after their removal
_TICK_MS = 20
_LONGEST_DELAY_MS = 400


@dataclass(slots=True)
class Actor:
    """A process; after a kill, its next incarnation starts without state."""

    name: str
    incarnation: int = 0
    session: int = 0
    held: Held | None = None
    listing: list[TokenKey] = field(default_factory=list)


class Model:
    """One run; `events` and `snapshot()` are for the checker."""

    def __init__(self, seed: int, broken: Broken = Broken.NOTHING) -> None:
        self.events: list[Event] = []
        self._rng = random.Random(seed)  # noqa: S311 - a simulation
        self._broken = broken
        self._server = Server(broken)
        self._now_ms = 1_000_000
        self._count = 0
        self._actors = [Actor(f"a{number}") for number in range(_ACTORS)]
        for actor in self._actors:
            self._connect(actor)

    def run(self, ticks: int) -> Self:
        """Do this many random acts; then end every session."""
        for _ in range(ticks):
            self._now_ms += self._rng.randrange(_TICK_MS)
            actor = self._rng.choice(self._actors)
            if self._rng.random() < 0.1:
                self._put(actor)
            elif actor.held is None:
                self._claim(actor)
            elif self._rng.random() < 0.15:
                self._connect(actor)  # the actor still has its claims, which are no longer held
            else:
                self._step(actor, actor.held)
        for actor in self._actors:
            self._connect(actor)
        return self

    def snapshot(self) -> Snapshot:
        """The state of the server."""
        return self._server.snapshot()

    # ------------------------------------------------------------------ acts
    def _put(self, actor: Actor) -> None:
        item_id, run_key = f"i{self._rng.randrange(_IDS)}", self._new("run")
        item = Item(run_key, "accept", self._now_ms + self._rng.randrange(_LONGEST_DELAY_MS), self._new("n"))
        about: Fields = {"id": item_id, "run_key": run_key, "queue": "accept", "pool": POOL}
        self._record(actor, Kind.PUT_SENT, about)
        if self._dies(actor):
            return
        dropped = self._broken is Broken.STORED and self._rng.random() < 0.5
        accepted = dropped or self._server.put(item_id, item)
        if self._dies(actor):
            return
        if accepted:
            self._record(actor, Kind.PUT_ACKED, {**about, "version": 0, "due": item.due, "nonce": item.nonce})
        else:
            self._record(actor, Kind.PUT_REFUSED, about)

    def _claim(self, actor: Actor) -> None:
        if not actor.listing or self._rng.random() < 0.5:
            actor.listing = sorted(self._server.tokens)
        early = self._broken is Broken.DUE
        tokens = [token for token in actor.listing if early or token[2] <= self._now_ms]
        if not tokens:
            return
        item_id, queue, due = token = self._rng.choice(tokens)
        item = self._server.claim(token, actor.session, self._new("n"))
        if item is None or self._dies(actor):
            return
        actor.held = Held(item_id, item.run_key, item.version, actor.session)
        about: Fields = {**_about(actor.held), "queue": queue, "pool": POOL}
        self._record(actor, Kind.CLAIM_ACKED, {**about, "due": due, "nonce": item.nonce})
        if queue == "accept":
            about["attempt"] = item.attempt
        self._record(actor, Kind.HANDLER_STARTED, {**about, "wall_ms": self._now_ms})

    def _step(self, actor: Actor, held: Held) -> None:
        item = self._server.items.get(held.id)
        queue = "accept" if item is None else item.queue
        if queue == "finish":
            self._remove(actor, held)
            return
        to_queue, release = self._way(queue, item), self._rng.random() < 0.7
        due = self._now_ms + self._rng.choice([0, self._rng.randrange(_LONGEST_DELAY_MS)])
        about: Fields = {**_about(held), "queue": queue, "pool": POOL, "to_queue": to_queue, "due": due}
        self._record(actor, Kind.STEP_SENT, about)
        if self._dies(actor):
            return
        nonce = self._new("n")
        accepted = self._server.move(held, to_queue, due, nonce, release=release)
        if self._dies(actor):
            return
        if not accepted:
            self._refused(actor, held)
            return
        held.fence += 1
        done: Fields = {**about, "version": held.fence, "nonce": nonce, "released": release}
        self._record(actor, Kind.STEP_ACKED, done)
        actor.held = None if release else held

    def _remove(self, actor: Actor, held: Held) -> None:
        self._record(actor, Kind.REMOVED_SENT, _about(held))
        if self._dies(actor):
            return
        accepted = self._server.remove(held)
        if self._dies(actor):
            return
        if accepted:
            self._record(actor, Kind.REMOVED_ACKED, _about(held))
            actor.held = None
        else:
            self._refused(actor, held)

    def _refused(self, actor: Actor, held: Held) -> None:
        same = actor.session == held.session
        self._record(actor, Kind.STEP_REFUSED, _about(held))
        self._record(actor, Kind.LOST, {**_about(held), "extra": {"same_session": same}})
        actor.held = None

    def _way(self, queue: str, item: Item | None) -> str:
        if self._broken is Broken.GRAPH:
            return self._rng.choice(["accept", "running", "finish"])
        if queue == "accept":
            return "running"
        last = item is not None and item.attempt >= RULES.max_attempts and self._broken is not Broken.LIMIT
        return "finish" if last else self._rng.choice(["running", "accept", "accept", "finish"])

    # ------------------------------------------------------------------ life of an actor
    def _connect(self, actor: Actor) -> None:
        """Give the actor a new session."""
        self._server.end_session(actor.session)
        self._count += 1
        actor.session = self._count

    def _dies(self, actor: Actor) -> bool:
        if self._rng.random() >= 0.05:
            return False
        self._connect(actor)
        actor.incarnation, actor.held, actor.listing = actor.incarnation + 1, None, []
        return True

    def _record(self, actor: Actor, kind: Kind, fields: Fields) -> None:
        event = Event(kind, actor.name, t=len(self.events), incarnation=actor.incarnation, **fields)
        self.events.append(event)

    def _new(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}"


def _about(held: Held) -> Fields:
    return {"id": held.id, "run_key": held.run_key, "version": held.fence}
