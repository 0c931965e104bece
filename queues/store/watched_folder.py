"""A watched folder: the children of one node, listed again only after a change."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable

from queues.model.errors import Refused
from queues.session import Session, Stat

log = logging.getLogger(__name__)

# A listing of 10,000 names takes some 25 ms; one folder then takes at most a tenth of its reader's time.
_REST = 10
_PLAUSIBLE_SECONDS, _PER_NAME_SECONDS = 0.005, 20e-6  # a higher cost has another cause and is not repeated
_CHEAP_SECONDS = 0.005  # a listing up to this cost is made at once if urgent
# A new child waits at most this long for a listing, unless the folder is large and followed.
_LONGEST_REST_SECONDS = 1.0
# A listing of 200,000 names takes up to one second in the server, on the wire and in the reader together. One
# event per created or deleted child costs the reader some 30 us, which is less unless a small folder has many
# changes. Pools are limited to 10,000 items by default.
LARGE = 12_000
_MAX_NEWS = 100_000  # unread changes; beyond that a listing is cheaper


class WatchedFolder:
    """The last listing of a folder, whether it is current, and when the folder may be listed again.

    `rest`: minimum seconds between listings, if longer than their cost requires. `readers`: the known number
    of readers; if all are in a hurry, the server lists for one of them at a time. `follows`: a large folder
    is followed: each change arrives by name, see `take_news`, and no listing is needed while the connection
    lasts.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        wake: Callable[[], None],
        *,
        rest: float = 0.0,
        follows: bool = False,
    ) -> None:
        self.path = path
        self.names: list[str] = []
        self.changed = True
        self.readers = 1
        self._session = session
        self._wake = wake
        self._zxid = -1  # of the last known change
        self._rest = rest
        self._listed_at = -math.inf
        self._cost = 0.0
        self._is_large = False
        self._follows = follows
        self._followed = -1  # the number of the connection
        self._news: deque[tuple[str, bool]] = deque()

    def notice(self, stat: Stat | None) -> None:
        """Compare with a stat of the node that was just read: a watch may have been lost."""
        zxid = -1 if stat is None else stat.children_zxid
        if zxid != self._zxid:
            self.changed = True

    def rest_left(self, *, urgent: bool = False) -> float:
        """Seconds until a change may be listed, infinite without a change; `urgent`: claims depend on it."""
        if not self.changed:
            return math.inf
        rest = max(_REST * self._cost, self._rest)
        if urgent:
            rest = 0.0 if self._cost < _CHEAP_SECONDS else min(_REST, self.readers) * self._cost
        if not self._is_large:
            rest = min(rest, max(_LONGEST_REST_SECONDS, self._rest))
        return max(0.0, self._listed_at + rest - time.monotonic())

    def refresh(self, *, urgent: bool = False) -> bool:
        """List the folder if it has changed and its rest is over; True if it was listed."""
        if self.rest_left(urgent=urgent) > 0:
            return False
        self._list()
        if self._is_large and self._follows and not self.is_followed and self._follow():
            self._list()  # changes in between had no watch
        return True

    def _list(self) -> None:
        self.changed = False  # the new watch reports changes from here on
        self._news.clear()  # the listing includes it
        started = time.monotonic()
        try:
            listed = self._session.listing(self.path, self._on_change)
        except BaseException:
            self.changed = True
            raise
        self.names, zxid = ([], -1) if listed is None else (listed[0], listed[1].children_zxid)
        # A change reported meanwhile may be later, as may the zxid of a recreated node.
        self._zxid = max(self._zxid, zxid) if self.is_followed else zxid
        self._is_large = len(self.names) >= LARGE
        self._listed_at = time.monotonic()
        plausible = _PLAUSIBLE_SECONDS + _PER_NAME_SECONDS * len(self.names)
        self._cost = min(self._listed_at - started, plausible)

    def _on_change(self) -> None:
        if not self.is_followed:
            self.changed = True
        self._wake()

    # ------------------------------------------------------------------ follow
    @property
    def is_followed(self) -> bool:
        """Whether each change is reported by name."""
        return self._followed >= 0 and self._followed == self._session.connections

    @property
    def has_news(self) -> bool:
        """Whether there are unread changes."""
        return self.is_followed and bool(self._news)

    def take_news(self) -> list[tuple[str, bool]]:
        """The names created (True) and deleted since the last listing, each change once, in order.

        A name that was listed already may be among them.
        """
        return [self._news.popleft() for _ in range(len(self._news))]

    def _follow(self) -> bool:
        connection = self._session.connections
        try:
            self._session.follow(self.path, self._on_news)
        except Refused as error:
            log.warning(
                "new nodes in the large folder %s are detected late: it cannot be followed: %s",
                self.path,
                error,
            )
            self._follows = False
            return False
        self._followed = connection
        return True

    def _on_news(self, name: str, there: bool, zxid: int) -> None:
        if len(self._news) < _MAX_NEWS:
            self._news.append((name, there))
            self._zxid = zxid
        else:
            self.changed = True
        self._wake()
