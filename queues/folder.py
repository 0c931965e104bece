"""The children of one node, listed again only when they have changed."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable

from queues.errors import Refused
from queues.session import Session, Stat

log = logging.getLogger(__name__)

# A listing of 10,000 names takes some 25 ms; one folder then takes at most a tenth of its reader's time.
_REST = 10
_PLAUSIBLE_SECONDS, _PER_NAME_SECONDS = 0.005, 20e-6  # beyond that somebody was in the way, once
_CHEAP_SECONDS = 0.005  # so much for a listing is always there when it is urgent
# What is new in a folder waits for it, unless that is so large that it is followed.
_LONGEST_REST_SECONDS = 1.0
# Of 200,000 names a listing takes the server, the wire and its reader up to a second together. An event per
# child that comes or goes costs its reader some 30 us: it is less, unless there are many of them in a small
# folder. Pools keep to 10,000 by default.
LARGE = 12_000
_MAX_NEWS = 100_000  # changes that nobody has fetched; then a listing is cheaper


class WatchedFolder:
    """What was listed last, whether that is still true, and when it may be listed again.

    `rest`: seconds between listings, if that is longer than what their cost asks for. `readers`: how many
    list it, as far as is known: when it is urgent to all of them, the server lists for one of them at a time.
    `follows`: once it is large, each change is told by its name, see `take_news`, and no listing is needed
    as long as the connection lasts.
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
        self._zxid = -1  # of the last change that is known
        self._rest = rest
        self._listed_at = -math.inf
        self._cost = 0.0
        self._is_large = False
        self._follows = follows
        self._followed = -1  # on which connection
        self._news: deque[tuple[str, bool]] = deque()

    def notice(self, stat: Stat | None) -> None:
        """Compare with what somebody has just seen of the node: a watch may have been lost."""
        zxid = -1 if stat is None else stat.children_zxid
        if zxid != self._zxid:
            self.changed = True

    def rest_left(self, *, urgent: bool = False) -> float:
        """Seconds until a change may be listed, infinite when there is none; `urgent`: all waits for it."""
        if not self.changed:
            return math.inf
        rest = max(_REST * self._cost, self._rest)
        if urgent:
            rest = 0.0 if self._cost < _CHEAP_SECONDS else min(_REST, self.readers) * self._cost
        if not self._is_large:
            rest = min(rest, max(_LONGEST_REST_SECONDS, self._rest))
        return max(0.0, self._listed_at + rest - time.monotonic())

    def refresh(self, *, urgent: bool = False) -> bool:
        """List it if it has changed and has rested; True when it was listed."""
        if self.rest_left(urgent=urgent) > 0:
            return False
        self._list()
        if self._is_large and self._follows and not self.is_followed and self._follow():
            self._list()  # what came in between was told by nobody
        return True

    def _list(self) -> None:
        self.changed = False  # what changes from here on is told by the new watch
        self._news.clear()  # a listing from here on has it
        started = time.monotonic()
        try:
            listed = self._session.listing(self.path, self._on_change)
        except BaseException:
            self.changed = True
            raise
        self.names, zxid = ([], -1) if listed is None else (listed[0], listed[1].children_zxid)
        # What is told meanwhile may be later; the number of a node that was made anew as well.
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
        """Whether each change is told by its name."""
        return self._followed >= 0 and self._followed == self._session.connections

    @property
    def has_news(self) -> bool:
        """Whether there is something to take."""
        return self.is_followed and bool(self._news)

    def take_news(self) -> list[tuple[str, bool]]:
        """The names that have come (True) and gone since the last listing, each change once, in their order.

        One that was listed already may be among them.
        """
        return [self._news.popleft() for _ in range(len(self._news))]

    def _follow(self) -> bool:
        connection = self._session.connections
        try:
            self._session.follow(self.path, self._on_news)
        except Refused as error:
            log.warning("what comes into %s is seen late, as it is large: %s", self.path, error)
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
