"""The history of one item, from its put to its removal: its events, sorted for the checker."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.chaos.events import Event, Kind

_CHANGES = {Kind.CLAIM_ACKED, Kind.STEP_ACKED, Kind.DEAD, Kind.CORRUPTED}
"""What leaves a new version of the record behind."""

_PUT_ANSWERS = {Kind.PUT_ACKED, Kind.PUT_FAILED, Kind.PUT_REFUSED}


class Location(NamedTuple):
    """Where an item stands; what is empty or None is not known and equal to anything."""

    queue: str
    pool: str = ""
    due: int | None = None

    def agrees(self, other: "Location") -> bool:
        """Whether both can be the same location."""
        return (
            (not self.queue or not other.queue or self.queue == other.queue)
            and (not self.pool or not other.pool or self.pool == other.pool)
            and (self.due is None or other.due is None or self.due == other.due)
        )


def location_after(event: Event) -> Location:
    """Where an item stands after a put, claim or step."""
    return Location(event.to_queue or event.queue, event.to_pool or event.pool, event.due)


class ItemHistory:
    """All that is known of one run key."""

    def __init__(self, item_id: str, run_key: str, events: Iterable[Event]) -> None:
        self.id = item_id
        self.run_key = run_key
        self._by_kind: defaultdict[Kind, list[Event]] = defaultdict(list)
        for event in sorted(events, key=lambda event: event.t):
            self._by_kind[event.kind].append(event)
        self.changes = tuple(
            sorted(
                _once(
                    event
                    for event in self.of(*_CHANGES)
                    if event.version is not None  # a burial writes no record
                ),
                key=_version,
            )
        )

    def of(self, *kinds: Kind) -> list[Event]:
        """The events of these kinds, by time within each kind."""
        return [event for kind in kinds for event in self._by_kind[kind]]

    # ------------------------------------------------------------------ put
    @property
    def acknowledged(self) -> bool:
        """Whether the put was acknowledged: the item must be there."""
        return bool(self.of(Kind.PUT_ACKED))

    @property
    def possible(self) -> bool:
        """Whether the item may be there: each put of a run key that was refused for certain was not done."""
        return len(self.of(Kind.PUT_SENT)) > len(self.of(Kind.PUT_REFUSED))

    @property
    def put(self) -> Event | None:
        """What tells best where the item was put."""
        return next(iter(self.of(Kind.PUT_ACKED, Kind.PUT_SENT)), None)

    # ------------------------------------------------------------------ removal
    @property
    def removed(self) -> Event | None:
        """The acknowledged removal."""
        return next(iter(self.of(Kind.REMOVED_ACKED)), None)

    @property
    def removable_since(self) -> int | None:
        """The earliest time at which it may have been removed, None when nobody can have done it."""
        acked = self.of(Kind.REMOVED_ACKED)
        # A record that has changed since was not removed from that fence.
        sent = [
            event
            for event in self._without_refused(self.of(Kind.REMOVED_SENT))
            if _version(event) >= self.last_version
        ]
        if not acked and not sent:
            return None
        # An acknowledgement without its sending says nothing of when the request left.
        known = {(event.who, event.version) for event in sent}
        unsent = [event for event in acked if (event.who, event.version) not in known]
        return 0 if unsent else min(event.t for event in sent)

    # ------------------------------------------------------------------ changes
    @property
    def is_spoiled(self) -> bool:
        """Whether the nemesis may have written garbage into the record."""
        return len(self.of(Kind.CORRUPT_SENT)) > len(self.of(Kind.CORRUPT_REFUSED)) or bool(
            self.of(Kind.CORRUPTED)
        )

    @property
    def last_version(self) -> int:
        """The highest version that is known of; -1 when not even the put is."""
        known = [0] if self.acknowledged or self.changes else [-1]
        return max([*known, *(_version(change) for change in self.changes)])

    def governing_claim(self, version: int) -> Event | None:
        """The last claim before a change that made this version."""
        claims = [
            change
            for change in self.changes
            if change.kind is Kind.CLAIM_ACKED and _version(change) < version
        ]
        return claims[-1] if claims else None

    def sent_at(self, step: Event) -> int | None:
        """When the request of an accepted step or removal left, None when that is not known."""
        removal = step.kind is Kind.REMOVED_ACKED
        fence = _version(step) if removal else _version(step) - 1
        sent = self.of(Kind.REMOVED_SENT if removal else Kind.STEP_SENT)
        # It may have been sent more than once: refused for its companions, then sent without them.
        return max(
            (event.t for event in sent if event.who == step.who and event.version == fence), default=None
        )

    def possible_locations(self, version: int) -> list[Location]:
        """Where the item may have stood when the record had this version.

        That is where the last known change brought it, or where a step sent since then was to bring it.
        """
        base = max(
            (change for change in self.changes if _version(change) <= version), key=_version, default=None
        )
        known = 0 if base is None else _version(base)
        event = self.put if base is None else base
        locations = [] if event is None else [location_after(event)]
        # Step number f makes version f + 1: one that is above what is known, and not above what is asked for.
        unanswered = self.unanswered_steps()
        locations += [location_after(sent) for sent in unanswered if known <= _version(sent) < version]
        locations += [location_after(burial) for burial in self.of(Kind.DEAD) if burial.version is None]
        return locations

    @property
    def unanswered(self) -> int:
        """How many requests may have been done without anybody saying so."""
        removals = self._without_refused(self.of(Kind.REMOVED_SENT)) if self.removed is None else []
        return len(self.unanswered_steps()) + len(removals) + (self.possible and not self.acknowledged)

    def unanswered_steps(self) -> Sequence[Event]:
        """Steps that may have been done without anybody saying so."""
        acked = {
            (event.who, _version(event) - 1) for event in self.of(Kind.STEP_ACKED, Kind.DEAD) if event.version
        }
        sent = self._without_refused(self.of(Kind.STEP_SENT))
        return [event for event in sent if (event.who, event.version) not in acked]

    def _without_refused(self, sent: Sequence[Event]) -> list[Event]:
        refused = Counter((event.who, event.version) for event in self.of(Kind.STEP_REFUSED))
        times = Counter((event.who, event.version) for event in self.of(Kind.STEP_SENT, Kind.REMOVED_SENT))
        return [
            event for event in sent if times[event.who, event.version] > refused[event.who, event.version]
        ]


def _version(event: Event) -> int:
    return -1 if event.version is None else event.version


def _once(events: Iterable[Event]) -> list[Event]:
    """Without what one actor has told twice of one change: as a step, and as one that led to `dead`."""
    seen: dict[object, Event] = {}
    for event in events:
        key = (event.who, event.version, event.nonce) if event.nonce else object()
        seen.setdefault(key, event)
    return list(seen.values())
