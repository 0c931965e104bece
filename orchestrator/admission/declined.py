"""Items that this worker has declined for now: other workers may claim them, or none can yet."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_LOOK_SECONDS = 1.0  # interval of the questions for free capacity
# After that an item is claimed and examined anew in any case: it may be another one of the same id. Each
# claim costs two writes, and there may be ten thousand items.
_LAST_SECONDS = 600.0
_PRUNE_SECONDS = 60.0


@dataclass(slots=True)
class _Capacity:
    """The capacity for items that need the same."""

    ask: Callable[[], int]  # returns how many of them may start
    asked_at: float
    free: int = 0  # how many may pass before the next question


@dataclass(frozen=True, slots=True)
class _DeclinedItem:
    need: str  # the key of its capacity
    until: float


class Declined:
    """Items that were claimed and could not start; the consumer asks before it claims again. Thread-safe."""

    def __init__(
        self, name_capacity: Callable[[str, int], int], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name_capacity = name_capacity
        self._clock = clock
        self._guard = threading.Lock()
        self._items: dict[str, _DeclinedItem] = {}
        self._capacities: dict[str, _Capacity] = {}
        self._pruned_at = clock()

    def __len__(self) -> int:
        """The number of items and needs in memory."""
        with self._guard:
            return len(self._items) + len(self._capacities)

    def add(self, item_id: str, need: str, capacity: Callable[[], int]) -> None:
        """Decline an item until `capacity` returns how many with its need may start; called once a second."""
        self._add(item_id, f"need {need}", capacity)

    def add_named(self, item_id: str, name: str, limit: int) -> None:
        """Decline an item until fewer than `limit` jobs of its name run."""
        # Jobs of one name may have different limits, as those of a backfill and of its schedule.
        self._add(item_id, f"{_of_name(name)}{limit}", lambda: self._name_capacity(name, limit))

    def _add(self, item_id: str, need: str, ask: Callable[[], int]) -> None:
        now = self._clock()
        with self._guard:
            if now - self._pruned_at >= _PRUNE_SECONDS:
                self._prune(now)
            self._items[item_id] = _DeclinedItem(need, now + _LAST_SECONDS)
            self._capacities[need] = _Capacity(ask, now)

    def _prune(self, now: float) -> None:
        """Remove items that the consumer no longer asks for: other workers have claimed them."""
        self._pruned_at = now
        self._items = {item_id: item for item_id, item in self._items.items() if now < item.until}
        needs = {item.need for item in self._items.values()}
        self._capacities = {need: each for need, each in self._capacities.items() if need in needs}

    def ended(self, name: str) -> None:
        """Ask at once again, because a job of this name has ended here."""
        with self._guard:
            for need, capacity in self._capacities.items():
                if need.startswith(_of_name(name)):
                    capacity.asked_at = -math.inf

    def accepts(self, item_id: str) -> bool:
        """Whether an item may be claimed here; may ask ZooKeeper, once a second for a name."""
        now = self._clock()
        with self._guard:
            if (item := self._items.get(item_id)) is None:
                return True
            capacity = self._capacities[item.need]
            is_old = now - capacity.asked_at > _LOOK_SECONDS
            if is_old:
                capacity.asked_at = now
        free = capacity.ask() if is_old else None
        with self._guard:
            capacity.free = capacity.free if free is None else free
            if capacity.free <= 0 and now < item.until:
                return False
            capacity.free -= 1
            self._items.pop(item_id, None)
            return True


def _of_name(name: str) -> str:
    """What the needs of all jobs of a name begin with."""
    return f"name {name} "
