"""Items that this worker leaves where they are for now: others may take them, or nobody can yet."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_LOOK_SECONDS = 1.0  # how often it is asked whether a name has room again
_LAST_SECONDS = 60.0  # then an item is claimed and looked at anew, whatever is known of it


@dataclass(slots=True)
class _Name:
    """Jobs of one name that wait for the running ones."""

    room: int  # how many may be let through before it is asked again
    asked_at: float


class Declined:
    """What was claimed and could not be begun; asked by the consumer before it claims again. Thread-safe."""

    def __init__(self, name_room: Callable[[str, int], int]) -> None:
        self._name_room = name_room
        self._guard = threading.Lock()
        self._until: dict[str, float] = {}
        self._named: dict[str, tuple[str, int, float]] = {}  # id -> name, its limit, until when
        self._names: dict[str, _Name] = {}

    def add(self, item_id: str, seconds: float) -> None:
        """Leave an item for so long."""
        with self._guard:
            self._until[item_id] = time.monotonic() + seconds

    def add_named(self, item_id: str, name: str, limit: int) -> None:
        """Leave an item until fewer than `limit` jobs of its name run."""
        with self._guard:
            now = time.monotonic()
            self._named[item_id] = (name, limit, now + _LAST_SECONDS)
            self._names[name] = _Name(0, now)

    def ended(self, name: str) -> None:
        """A job of this name has ended here: ask at once."""
        with self._guard:
            self._names.pop(name, None)

    def accepts(self, item_id: str) -> bool:
        """Whether an item may be claimed here; may ask ZooKeeper, once a second for a name."""
        now = time.monotonic()
        with self._guard:
            if (until := self._until.get(item_id)) is not None:
                if now < until:
                    return False
                del self._until[item_id]
            if (waiting := self._named.get(item_id)) is None:
                return True
            name, limit, last = waiting
            known = self._names.get(name)
        if known is None or now - known.asked_at > _LOOK_SECONDS:
            known = _Name(self._name_room(name, limit), now)
        with self._guard:
            self._names[name] = known
            if known.room <= 0 and now < last:
                return False
            known.room -= 1
            self._named.pop(item_id, None)
            return True
