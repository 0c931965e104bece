"""The children of one node, listed again only when they have changed."""

import time
from collections.abc import Callable

from queues.session import Session, Stat

# A listing of 10,000 names takes some 25 ms; one folder then takes at most a tenth of its reader's time.
_REST = 10


class Folder:
    """What was listed last, whether that is still true, and when it may be listed again."""

    def __init__(self, session: Session, path: str, wake: Callable[[], None]) -> None:
        self.path = path
        self.names: list[str] = []
        self.changed = True
        self._session = session
        self._wake = wake
        self._zxid = -1
        self._rested_at = 0.0

    def notice(self, stat: Stat | None) -> None:
        """Compare with what somebody has just seen of the node: a watch may have been lost."""
        zxid = -1 if stat is None else stat.children_zxid
        if zxid != self._zxid:
            self.changed = True

    def rest_left(self) -> float:
        """Seconds until it may be listed again."""
        return max(0.0, self._rested_at - time.monotonic())

    def refresh(self, *, rest: float = 0.0) -> bool:
        """List it if it has changed and has rested; True when it was listed.

        `rest`: seconds to rest after this listing, if that is longer than its cost asks for.
        """
        if not self.changed or self.rest_left() > 0:
            return False
        self.changed = False  # what changes from here on is told by the new watch
        started = time.monotonic()
        try:
            listed = self._session.listing(self.path, self._on_change)
        except BaseException:
            self.changed = True
            raise
        self.names, self._zxid = ([], -1) if listed is None else (listed[0], listed[1].children_zxid)
        now = time.monotonic()
        self._rested_at = now + max(rest, _REST * (now - started))
        return True

    def _on_change(self) -> None:
        self.changed = True
        self._wake()
