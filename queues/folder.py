"""The children of one node, listed again only when they have changed."""

import math
import time
from collections.abc import Callable

from queues.session import Session, Stat

# A listing of 10,000 names takes some 25 ms; one folder then takes at most a tenth of its reader's time.
_REST = 10
_PLAUSIBLE_SECONDS, _PER_NAME_SECONDS = 0.005, 20e-6  # beyond that somebody was in the way, once
_CHEAP_SECONDS = 0.005  # so much for a listing is always there when it is urgent


class Folder:
    """What was listed last, whether that is still true, and when it may be listed again.

    `rest`: seconds between listings, if that is longer than what their cost asks for. `readers`: how many
    list it, as far as is known: when it is urgent to all of them, the server lists for one of them at a time.
    """

    def __init__(self, session: Session, path: str, wake: Callable[[], None], *, rest: float = 0.0) -> None:
        self.path = path
        self.names: list[str] = []
        self.changed = True
        self.readers = 1
        self._session = session
        self._wake = wake
        self._zxid = -1
        self._rest = rest
        self._listed_at = -math.inf
        self._cost = 0.0

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
        return max(0.0, self._listed_at + rest - time.monotonic())

    def refresh(self, *, urgent: bool = False) -> bool:
        """List it if it has changed and has rested; True when it was listed."""
        if self.rest_left(urgent=urgent) > 0:
            return False
        self.changed = False  # what changes from here on is told by the new watch
        started = time.monotonic()
        try:
            listed = self._session.listing(self.path, self._on_change)
        except BaseException:
            self.changed = True
            raise
        self.names, self._zxid = ([], -1) if listed is None else (listed[0], listed[1].children_zxid)
        self._listed_at = time.monotonic()
        plausible = _PLAUSIBLE_SECONDS + _PER_NAME_SECONDS * len(self.names)
        self._cost = min(self._listed_at - started, plausible)
        return True

    def _on_change(self) -> None:
        self.changed = True
        self._wake()
