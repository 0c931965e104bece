"""The tokens of one folder that may be free, in due order."""

import math
import random
import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass

from queues.model.names import Token, due_of, id_of, is_token, order_of
from queues.store.watched_folder import WatchedFolder

_FEW = 64  # names; inserting so many one by one is cheaper than sorting all


@dataclass(frozen=True, slots=True)
class Share:
    """The items that a consumer takes first: those whose hashed id selects its index among `of` consumers.

    So consumers do not compete for the same head. Items that others leave are taken over a little later.
    """

    position: int | None = 0
    of: int = 1

    def contains(self, item_id: str) -> bool:
        """Whether the item belongs to this consumer's share."""
        return self.of == 1 or zlib.crc32(item_id.encode()) % self.of == self.position


class Backlog:
    """Names of tokens, earliest last, so that taking one is cheap; only names, so that 200,000 fit."""

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
        """List the folder if needed or if `force`; True if there is something new.

        If the next token was due before the last listing, no item put since can precede it. `now` is the
        ensemble's time as eleven hex digits, as everywhere in this class.
        """
        has_come = self._apply_news(now)
        if not (force or self._needs_listing(now)):
            return has_come
        if not self.folder.refresh(urgent=self._is_due(now)):
            return has_come
        self._listed_at = now
        self._sort()
        self._apply_news(now)
        return True

    def _apply_news(self, now: str) -> bool:
        """Apply the reported changes of a followed folder; True if a token was added."""
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
        self._listed_at = now  # no unknown token can precede
        return has_come

    def rest_left(self, now: str) -> float:
        """Seconds until `refresh` lists the folder; infinite if nothing relevant has changed."""
        if self.folder.has_news:
            return 0.0
        return self.folder.rest_left(urgent=self._is_due(now)) if self._needs_listing(now) else math.inf

    def _is_due(self, now: str) -> bool:
        return bool(self._mine) and due_of(self._mine[-1]) <= now

    def _needs_listing(self, now: str) -> bool:
        return not (self._is_due(now) and due_of(self._mine[-1]) <= self._listed_at)

    def divide(self, share: Share) -> None:
        """Divide the tokens by this share from now on."""
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
        self.folder.names = []  # moved into this backlog
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
        """Insert one name in order: sorting 200,000 names takes a tenth of a second."""
        names = self._share_of(name)
        position, is_there = _find(name, names)
        if not is_there:
            names.insert(position, name)

    def _drop(self, name: str) -> None:
        names = self._share_of(name)
        position, is_there = _find(name, names)
        if is_there:
            del names[position]
        elif name in self._deferred:
            self._deferred.remove(name)

    # ------------------------------------------------------------------ take
    def take(self, now: str, is_free: Callable[[str], bool]) -> str | None:
        """The next token of this consumer's share that is due and free; None if there is none now."""
        while self._mine and (due := due_of(self._mine[-1])) <= now:
            if self.folder.changed and due > self._listed_at:
                return None  # an item put since may precede it: list first
            name = self._mine.pop()
            if is_free(id_of(name)):
                return name
            self._deferred.append(name)
        return None

    def take_over(self, due_before: str, limit: int, is_free: Callable[[str], bool]) -> list[str]:
        """Some tokens of other shares that have been due for a while, from a random position."""
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
        """Remove and return the tokens of these items, due or not."""
        found = []
        for names in (self._mine, self._others, self._deferred):
            mine = [name for name in names if id_of(name) in ids]
            for name in mine:
                names.remove(name)
            found += mine
        return found

    def invalidate(self) -> None:
        """Mark the listing as stale: nothing more is taken before the next one."""
        if not self.folder.is_followed:  # a followed folder reports deletions
            self.folder.changed = True
            self._listed_at = ""

    # ------------------------------------------------------------------ give back
    def defer(self, name: str) -> None:
        """Defer a token that seems to be held until the locks change."""
        self._deferred.append(name)

    def put_back(self, name: str) -> None:
        """Insert a token again that may still be free."""
        self._insert(name)

    def has_deferred(self) -> bool:
        """Whether tokens are deferred until the locks change."""
        return bool(self._deferred)

    def restore_deferred(self, is_free: Callable[[str], bool]) -> None:
        """Return the deferred tokens that are free after a change of the locks."""
        # Each is tested once: an item that became free between two tests would be in neither list.
        back, deferred = list[str](), list[str]()
        for name in self._deferred:
            (back if is_free(id_of(name)) else deferred).append(name)
        if back:
            self._deferred = deferred
            if len(back) > _FEW:
                self._divide([*self._mine, *self._others, *back])
            else:
                for name in back:
                    self._insert(name)

    # ------------------------------------------------------------------ when
    def next_due(self, *, others: bool) -> str | None:
        """The due time of the next token, of this consumer's share or of the others."""
        names = self._others if others else self._mine
        return due_of(names[-1]) if names else None

    def next_id(self) -> str | None:
        """The id of the next item of this consumer's share, due or not."""
        return id_of(self._mine[-1]) if self._mine else None

    def must_list_first(self) -> bool:
        """Whether the next token must wait for a listing."""
        return self.folder.changed and bool(self._mine) and due_of(self._mine[-1]) > self._listed_at


def _find(name: str, names: list[str]) -> tuple[int, bool]:
    """The position of a name among names sorted earliest last, and whether it is there."""
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
