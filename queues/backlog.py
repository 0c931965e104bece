"""The tokens of one folder that may be free, in the order in which they are due."""

import math
import random
import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass

from queues.folder import WatchedFolder
from queues.names import Token, due_of, id_of, is_token, order_of

_FEW = 64  # names; to put so many in their places takes less than to sort all


@dataclass(frozen=True, slots=True)
class Share:
    """Which items a consumer takes first: those whose id falls to its place among `of` consumers.

    So consumers do not race for the same head. What the others leave lying is taken as well, a little later.
    """

    place: int | None = 0
    of: int = 1

    def contains(self, item_id: str) -> bool:
        """Whether the item falls to this consumer."""
        return self.of == 1 or zlib.crc32(item_id.encode()) % self.of == self.place


class Backlog:
    """Names of tokens, soonest last, so that taking one costs nothing; names only: 200,000 fit well."""

    def __init__(
        self, queue: str, pool: str, folder: WatchedFolder, foreign: Callable[[str, str], None]
    ) -> None:
        self.queue = queue
        self.pool = pool
        self.folder = folder
        self._foreign = foreign
        self._mine: list[str] = []
        self._others: list[str] = []
        self._deferred: list[str] = []
        self._share = Share()
        self._listed_at = ""  # the ensemble's time at the last listing, as due times are written

    def refresh(self, now: str, *, force: bool = False) -> bool:
        """List the folder when that is needed, or wanted by `force`; True when there is something new.

        While the next token was due before the last listing, nothing that was put since with a due time of
        its own can precede it. `now` is the ensemble's time as eleven hex digits, as everywhere here.
        """
        has_come = self._learn(now)
        if not (force or self._needs_listing(now)):
            return has_come
        if not self.folder.refresh(urgent=self._is_due(now)):
            return has_come
        self._listed_at = now
        self._sort()
        self._learn(now)
        return True

    def _learn(self, now: str) -> bool:
        """Take over what a large folder tells of itself; True when something has come."""
        if not self.folder.is_followed:
            return False
        has_come = False
        for name, there in self.folder.take_news():
            if Token.parse(name) is None:
                if there:
                    self._foreign(self.queue, name)
            elif there:
                self._insert(name)
                has_come = True
            else:
                self._drop(name)
        self._listed_at = now  # nothing that is not known can precede
        return has_come

    def rest_left(self, now: str) -> float:
        """Seconds until `refresh` will list the folder; infinite when nothing has changed or matters."""
        if self.folder.has_news:
            return 0.0
        return self.folder.rest_left(urgent=self._is_due(now)) if self._needs_listing(now) else math.inf

    def _is_due(self, now: str) -> bool:
        return bool(self._mine) and due_of(self._mine[-1]) <= now

    def _needs_listing(self, now: str) -> bool:
        return not (self._is_due(now) and due_of(self._mine[-1]) <= self._listed_at)

    def divide(self, share: Share) -> None:
        """Go by this share from now on."""
        if share != self._share:
            self._share = share
            self.folder.readers = share.of
            self._divide(self._mine + self._others)

    def _sort(self) -> None:
        names = []
        for name in self.folder.names:
            if is_token(name):
                names.append(name)
            else:
                self._foreign(self.queue, name)
        self.folder.names = []  # they are here now
        self._deferred = []
        self._divide(names)

    def _divide(self, names: list[str]) -> None:
        names.sort(key=order_of, reverse=True)
        if self._share.of == 1:
            self._mine, self._others = names, []
        else:
            self._mine = [name for name in names if self._share.contains(id_of(name))]
            self._others = [name for name in names if not self._share.contains(id_of(name))]

    def _share_of(self, name: str) -> list[str]:
        return self._mine if self._share.contains(id_of(name)) else self._others

    def _insert(self, name: str) -> None:
        """Add one name where it belongs: to sort 200,000 names takes a tenth of a second."""
        names = self._share_of(name)
        place, is_there = _find(name, names)
        if not is_there:
            names.insert(place, name)

    def _drop(self, name: str) -> None:
        names = self._share_of(name)
        place, is_there = _find(name, names)
        if is_there:
            del names[place]
        elif name in self._deferred:
            self._deferred.remove(name)

    # ------------------------------------------------------------------ take
    def take(self, now: str, is_free: Callable[[str], bool]) -> str | None:
        """The next token of our share that is due and free; None when there is none for now."""
        while self._mine and (due := due_of(self._mine[-1])) <= now:
            if self.folder.changed and due > self._listed_at:
                return None  # something put since may precede it: list first
            name = self._mine.pop()
            if is_free(id_of(name)):
                return name
            self._deferred.append(name)
        return None

    def take_over(self, due_before: str, limit: int, is_free: Callable[[str], bool]) -> list[str]:
        """Some tokens of other consumers' shares that have been due for a while, from a random place on."""
        others = self._others
        first = bisect_left(others, True, key=lambda name: due_of(name) <= due_before)
        count = len(others) - first
        size = max(1, min(limit, count // (2 * self._share.of)))
        if count == 0:
            return []
        start = first + random.randrange(max(1, count - size + 1))  # noqa: S311 - not for security
        names = others[start : start + size]
        del others[start : start + size]
        free = [name for name in names if is_free(id_of(name))]
        self._deferred += [name for name in names if name not in free]
        return free

    def find(self, ids: Collection[str]) -> list[str]:
        """The tokens of these items, due or not, which are taken out."""
        found = []
        for names in (self._mine, self._others, self._deferred):
            mine = [name for name in names if id_of(name) in ids]
            for name in mine:
                names.remove(name)
            found += mine
        return found

    def invalidate(self) -> None:
        """What was listed turns out to be stale: take nothing more before the next listing."""
        if not self.folder.is_followed:  # else it is told what is gone
            self.folder.changed = True
            self._listed_at = ""

    # ------------------------------------------------------------------ give back
    def defer(self, name: str) -> None:
        """Somebody seems to hold it: until the locks have changed."""
        self._deferred.append(name)

    def put_back(self, name: str) -> None:
        """It may be free still."""
        self._insert(name)

    def has_deferred(self) -> bool:
        """Whether something waits for the locks to change."""
        return bool(self._deferred)

    def restore_deferred(self, is_free: Callable[[str], bool]) -> None:
        """The locks have changed: what is free now may be taken."""
        # Each is asked for once: what became free between two answers would be in neither list.
        back, aside = list[str](), list[str]()
        for name in self._deferred:
            (back if is_free(id_of(name)) else aside).append(name)
        if back:
            self._deferred = aside
            if len(back) > _FEW:
                self._divide([*self._mine, *self._others, *back])
            else:
                for name in back:
                    self._insert(name)

    # ------------------------------------------------------------------ when
    def next_due(self, *, others: bool) -> str | None:
        """When the next token is due, of our share or of the others'."""
        names = self._others if others else self._mine
        return due_of(names[-1]) if names else None

    def next_id(self) -> str | None:
        """The item whose turn it is in our share, due or not."""
        return id_of(self._mine[-1]) if self._mine else None

    def must_list_first(self) -> bool:
        """Whether the next token has to wait for a listing."""
        return self.folder.changed and bool(self._mine) and due_of(self._mine[-1]) > self._listed_at


def _find(name: str, names: list[str]) -> tuple[int, bool]:
    """Where a name belongs among names of which the soonest is the last, and whether it stands there."""
    order, low, high = order_of(name), 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if order_of(names[middle]) > order:
            low = middle + 1
        else:
            high = middle
    while low < len(names) and order_of(names[low]) == order:
        if names[low] == name:
            return low, True
        low += 1
    return low, False
