"""The events of one item from its put to its removal, sorted for the checker."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.chaos.events import Event, Kind

_CHANGES = {Kind.CLAIM_ACKED, Kind.STEP_ACKED, Kind.DEAD, Kind.CORRUPTED}
"""Events that make a new version of the record."""

_PUT_ANSWERS = {Kind.PUT_ACKED, Kind.PUT_FAILED, Kind.PUT_REFUSED}


class Location(NamedTuple):
    """Queue, pool and due time of an item; an empty field or None is unknown and equals anything."""

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
    """Location of an item after a put, claim or step."""
    return Location(event.to_queue or event.queue, event.to_pool or event.pool, event.due)


class ItemHistory:
    """All events of one run key."""

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
                    if event.version is not None  # moved to dead without writing its record: no version
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
        """Whether the item may exist: a put that was certainly refused was not applied."""
        return len(self.of(Kind.PUT_SENT)) > len(self.of(Kind.PUT_REFUSED))

    @property
    def put(self) -> Event | None:
        """The event with the most precise location of the put."""
        return next(iter(self.of(Kind.PUT_ACKED, Kind.PUT_SENT)), None)

    # ------------------------------------------------------------------ removal
    @property
    def removed(self) -> Event | None:
        """The acknowledged removal."""
        return next(iter(self.of(Kind.REMOVED_ACKED)), None)

    @property
    def removable_since(self) -> int | None:
        """The earliest possible time of its removal; None when it cannot have been removed."""
        acked = self.of(Kind.REMOVED_ACKED)
        # A record that changed later was not removed with that fence.
        sent = [
            event
            for event in self._without_refused(self.of(Kind.REMOVED_SENT))
            if _version(event) >= self.last_version
        ]
        if not acked and not sent:
            return None
        # An acknowledgement without the event of its request has no time of sending.
        known = {(event.who, event.version) for event in sent}
        unsent = [event for event in acked if (event.who, event.version) not in known]
        return 0 if unsent else min(event.t for event in sent)

    # ------------------------------------------------------------------ changes
    @property
    def is_spoiled(self) -> bool:
        """Whether the nemesis may have overwritten the record."""
        return len(self.of(Kind.CORRUPT_SENT)) > len(self.of(Kind.CORRUPT_REFUSED)) or bool(
            self.of(Kind.CORRUPTED)
        )

    @property
    def last_version(self) -> int:
        """The highest known version; -1 when even the put is unknown."""
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
        """When the request of an accepted step or removal was sent; None when unknown."""
        removal = step.kind is Kind.REMOVED_ACKED
        fence = _version(step) if removal else _version(step) - 1
        sent = self.of(Kind.REMOVED_SENT if removal else Kind.STEP_SENT)
        # It may have been sent twice: refused with the rest of its multi, then sent without it.
        return max(
            (event.t for event in sent if event.who == step.who and event.version == fence), default=None
        )

    def possible_locations(self, version: int) -> list[Location]:
        """The possible locations of the item when the record had this version.

        They are the target of the last known change, and the targets of the steps sent since then.
        """
        base = max(
            (change for change in self.changes if _version(change) <= version), key=_version, default=None
        )
        known = 0 if base is None else _version(base)
        event = self.put if base is None else base
        locations = [] if event is None else [location_after(event)]
        # A step with fence f makes version f + 1: count those above the known version, up to the given one.
        unanswered = self.unanswered_steps()
        locations += [location_after(sent) for sent in unanswered if known <= _version(sent) < version]
        locations += [location_after(dead) for dead in self.of(Kind.DEAD) if dead.version is None]
        return locations

    @property
    def unanswered(self) -> int:
        """How many requests may have been applied without an answer."""
        removals = self._without_refused(self.of(Kind.REMOVED_SENT)) if self.removed is None else []
        return len(self.unanswered_steps()) + len(removals) + (self.possible and not self.acknowledged)

    def unanswered_steps(self) -> Sequence[Event]:
        """Steps that may have been applied without an answer."""
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
    """Without duplicates: an actor records a step to `dead` as a step and as DEAD."""
    seen: dict[object, Event] = {}
    for event in events:
        key = (event.who, event.version, event.nonce) if event.nonce else object()
        seen.setdefault(key, event)
    return list(seen.values())
