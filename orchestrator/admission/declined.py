"""Items that this worker leaves where they are for now: others may take them, or nobody can yet."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_LOOK_SECONDS = 1.0  # how often it is asked whether there is room again
# Then an item is claimed and looked at anew, whatever is known of it: it may be another one of the same id.
# Each costs two writes, and there may be ten thousand.
_LAST_SECONDS = 600.0
_PRUNE_SECONDS = 60.0


@dataclass(slots=True)
class _Room:
    """For items that need the same."""

    ask: Callable[[], int]  # for how many of them there is room
    asked_at: float
    free: int = 0  # how many may be let through before it is asked again


@dataclass(frozen=True, slots=True)
class _Left:
    need: str  # what those that share a room have in common
    until: float


class Declined:
    """What was claimed and could not be begun; asked by the consumer before it claims again. Thread-safe."""

    def __init__(
        self, name_room: Callable[[str, int], int], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name_room = name_room
        self._clock = clock
        self._guard = threading.Lock()
        self._left: dict[str, _Left] = {}
        self._rooms: dict[str, _Room] = {}
        self._pruned_at = clock()

    def __len__(self) -> int:
        """How many items and needs are remembered."""
        with self._guard:
            return len(self._left) + len(self._rooms)

    def add(self, item_id: str, need: str, room: Callable[[], int]) -> None:
        """Leave an item until `room` says for how many with its need there is some; asked once a second."""
        self._add(item_id, f"need {need}", room)

    def add_named(self, item_id: str, name: str, limit: int) -> None:
        """Leave an item until fewer than `limit` jobs of its name run."""
        self._add(item_id, f"name {name}", lambda: self._name_room(name, limit))

    def _add(self, item_id: str, need: str, ask: Callable[[], int]) -> None:
        now = self._clock()
        with self._guard:
            if now - self._pruned_at >= _PRUNE_SECONDS:
                self._prune(now)
            self._left[item_id] = _Left(need, now + _LAST_SECONDS)
            self._rooms[need] = _Room(ask, now)

    def _prune(self, now: float) -> None:
        """Forget what nobody asks for any more: others have taken it."""
        self._pruned_at = now
        self._left = {item_id: left for item_id, left in self._left.items() if now < left.until}
        needs = {left.need for left in self._left.values()}
        self._rooms = {need: room for need, room in self._rooms.items() if need in needs}

    def ended(self, name: str) -> None:
        """A job of this name has ended here: ask at once."""
        with self._guard:
            if (room := self._rooms.get(f"name {name}")) is not None:
                room.asked_at = -math.inf

    def accepts(self, item_id: str) -> bool:
        """Whether an item may be claimed here; may ask ZooKeeper, once a second for a name."""
        now = self._clock()
        with self._guard:
            if (left := self._left.get(item_id)) is None:
                return True
            room = self._rooms[left.need]
            is_old = now - room.asked_at > _LOOK_SECONDS
            if is_old:
                room.asked_at = now
        free = room.ask() if is_old else None
        with self._guard:
            room.free = room.free if free is None else free
            if room.free <= 0 and now < left.until:
                return False
            room.free -= 1
            self._left.pop(item_id, None)
            return True
