"""Limits of pools, in nodes that operators can change at run time."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from queues.model.codec import decode, encode
from queues.model.errors import Conflict, InvalidLimit
from queues.model.names import LOW_LANE_SUFFIX, Layout, Token, check_pool, is_pool
from queues.model.operations import Operation, Set
from queues.session import Session, Stat
from queues.store.commit import commit

log = logging.getLogger(__name__)

DEFAULT_BOUND = 10_000
# Names with their lengths in one reply: Java clients refuse a larger one (jute.maxbuffer).
_LS_BYTES = 1_048_575
_LENGTH_BYTES = 4
USUAL_ID_CHARACTERS = 36  # a UUID
LONGEST_ID_CHARACTERS = 128
_KEPT_CHANGES = 10  # some 200 bytes each, in a node that every consumer reads
_LOOK_AGAIN_SECONDS = 15.0  # longest delay by a lost watch; claims check the version in any case


def ls_limit(id_characters: int) -> int:
    """The number of items with such ids that `ls` of ZooKeeper's own tools can list in one folder."""
    return _LS_BYTES // (len(Token(0, 0, "x" * id_characters).name) + _LENGTH_BYTES)


def fits_ls(names: Iterable[str]) -> bool:
    """Whether `ls` of ZooKeeper's own tools can list a folder with these names."""
    return sum(len(name) + _LENGTH_BYTES for name in names) <= _LS_BYTES


LS_LIMITS = (
    "`ls` of ZooKeeper's own tools reads 1 MB of names, which is "
    f"{ls_limit(USUAL_ID_CHARACTERS):,} items with ids of {USUAL_ID_CHARACTERS} characters, "
    f"or {ls_limit(LONGEST_ID_CHARACTERS):,} of {LONGEST_ID_CHARACTERS}"
)


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """The limits of one pool. All can be changed at any time; the next claim uses the new values."""

    weight: int = 1  # turns per turn of a pool with weight 1
    bound: int = DEFAULT_BOUND  # items in one queue of the pool, for puts; moves are never refused
    cap: int = 0  # items of the pool held at a time, by all consumers together; 0 = no limit
    paused: bool = False  # nothing is claimed; puts and moves continue
    low_share: float = 0.1  # minimum share of the pool's turns for its low lane
    high_water: float = 0.0  # for the users of the queues: fill at which nothing new begins; 0 = no limit

    def __post_init__(self) -> None:
        for name, low, high in (("weight", 1, 1000), ("bound", 1, 1_000_000), ("cap", 0, 100_000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidLimit(name, value, f"a whole number from {low:,} to {high:,}")
        if not isinstance(self.paused, bool):
            raise InvalidLimit("paused", self.paused, "true or false")
        for name, zero in (("low_share", ""), ("high_water", "; 0 = no limit")):
            share = getattr(self, name)
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise InvalidLimit(name, share, f"a number from 0 to 1{zero}")

    @classmethod
    def decode(cls, pool: str, data: bytes, last_good: "PoolLimits | None" = None) -> "PoolLimits":
        """The limits in these bytes, defaults for missing names; the last good ones for invalid bytes."""
        if not data:
            return cls()
        try:
            document = decode(data)
            return cls(**{name: value for name, value in document.items() if name in LIMIT_NAMES})
        except (ValueError, InvalidLimit) as error:
            stay = cls() if last_good is None else last_good
            log.warning("the limits of pool %s cannot be read, %s apply: %s", pool, stay, error)
            return stay


LIMIT_NAMES = tuple(field.name for field in fields(PoolLimits))

VersionedLimits = tuple[PoolLimits, int]
"""Limits and the version of their node; -1 if there was no node."""


LimitsChangeOperations = Callable[
    [Mapping[str, Any], Mapping[str, Any]], tuple[dict[str, Any], Sequence[Operation]]
]
"""Gets the old and the new values of the changed limits.

Returns the entry that the node keeps of the change, and operations for the same multi.
"""


class Pools:
    """Reads limits, cached until their node changes, and changes them."""

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._layout = layout
        self._seen: dict[str, tuple[VersionedLimits, float]] = {}
        self._last_good: dict[str, PoolLimits] = {}
        self._wakes: dict[str, list[Callable[[], None]]] = {}
        session.on_change(self.forget)  # watches are lost with the connection

    def forget(self, pool: str | None = None) -> None:
        """Read the limits again at their next use."""
        if pool is None:
            self._seen = {}
        else:
            self._seen.pop(pool, None)

    def limits(self, pool: str, wake: Callable[[], None] | None = None) -> VersionedLimits:
        """The limits of a pool, at most some seconds old; `wake` is called when they change.

        A pool without a node is read each time: no watch would report its creation.
        """
        if wake is not None and wake not in (wakes := self._wakes.setdefault(pool, [])):
            wakes.append(wake)  # also if the node is already watched for another caller
        known = self._seen.get(pool)
        now = time.monotonic()
        if known is not None and now - known[1] < _LOOK_AGAIN_SECONDS:
            return known[0]
        seen = self.read(pool, _LimitsWatcher(self, pool))
        if seen[1] >= 0:
            self._seen[pool] = (seen, now)
        return seen

    def on_change(self, pool: str) -> None:
        """Forget the limits of a pool that have changed; called on kazoo's thread."""
        self.forget(pool)
        for wake in self._wakes.get(pool, ()):
            wake()

    def learn(self, pool: str, found: tuple[bytes, Stat] | None) -> None:
        """Update the cached and watched limits of a pool from a node that was just read."""
        if found is not None and pool in self._seen:
            self._seen[pool] = ((self._decode(pool, found[0]), found[1].version), time.monotonic())

    def read(self, pool: str, wake: Callable[[], None] | None = None) -> VersionedLimits:
        """The limits of a pool, read from ZooKeeper."""
        found = self._session.get(self._layout.pool(check_pool(pool)), wake, await_creation=False)
        if found is None:
            return PoolLimits(), -1
        return self._decode(pool, found[0]), found[1].version

    def last_good(self, pool: str) -> PoolLimits | None:
        """The limits of a pool as last read by this client; None if it never read them."""
        return self._last_good.get(pool)

    def _decode(self, pool: str, data: bytes) -> PoolLimits:
        limits = self._last_good[pool] = PoolLimits.decode(pool, data, self._last_good.get(pool))
        return limits

    def changed(self, pool: str) -> Sequence[Mapping[str, Any]]:
        """The entries of the last changes in the node of a pool, oldest first."""
        found = self._session.get(self._layout.pool(check_pool(pool)), await_creation=False)
        try:
            kept = decode(found[0]).get("changed") if found is not None and found[0] else None
        except ValueError:
            return []
        entries = kept if isinstance(kept, list) else []
        return [entry for entry in entries if isinstance(entry, dict)][-_KEPT_CHANGES:]

    def change(self, pool: str, hook: LimitsChangeOperations | None = None, **changes: Any) -> PoolLimits:
        """Change some limits of a pool; raises InvalidLimit. The folders of the pool must exist."""
        path = self._layout.pool(check_pool(pool))
        while True:
            before, version = self.read(pool)
            unknown = changes.keys() - set(LIMIT_NAMES)
            if unknown:
                name = min(unknown)
                raise InvalidLimit(name, changes[name], f"a limit: {', '.join(LIMIT_NAMES)}")
            after = PoolLimits(**{**asdict(before), **changes})
            self._session.ensure_path(path)
            was, will_be = _difference(before, after)
            kept = self.changed(pool)  # read at this version, or the change is refused
            extra_operations: Sequence[Operation] = ()
            if hook is not None and will_be:
                entry, extra_operations = hook(was, will_be)
                kept = [*kept, entry][-_KEPT_CHANGES:]
            document = {**asdict(after), "changed": kept} if kept else asdict(after)
            try:
                commit(self._session, [Set(path, encode(document), max(version, 0)), *extra_operations])
            except Conflict:
                continue  # changed concurrently: apply this change to the new limits
            self.forget(pool)
            return after

    def names(self, *, low: bool = False) -> list[str]:
        """The names of the existing pools, with low lanes if `low`; foreign nodes are omitted."""
        names = self._session.children(self._layout.pools) or []
        return sorted(name for name in names if is_pool(name) and (low or not name.endswith(LOW_LANE_SUFFIX)))


def _difference(before: PoolLimits, after: PoolLimits) -> tuple[dict[str, Any], dict[str, Any]]:
    old, new = asdict(before), asdict(after)
    names = [name for name in new if new[name] != old[name]]
    return {name: old[name] for name in names}, {name: new[name] for name in names}


@dataclass(frozen=True, slots=True)
class _LimitsWatcher:
    # Equal for equal pools: sessions keep watchers in a set per path.
    pools: Pools
    pool: str

    def __call__(self) -> None:
        self.pools.on_change(self.pool)
