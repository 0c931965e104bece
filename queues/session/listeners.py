"""Who is told of changes of the connection: each on a thread of its own."""

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

# A listener that sets an event is through in microseconds, as a rule before anybody sees the connection
# back. One that blocks holds kazoo's thread for no longer than this, far below any session timeout.
_PATIENCE_SECONDS = 0.1

Wake = Callable[[], None]
"""Called when something changed: it sets an event and does nothing more."""


class ConnectionListener:
    """Calls one wake, on a thread that lives for the call: it may be slow, it may fail, it hinders nobody."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._guard = threading.Lock()
        self._again = False
        self._thread: threading.Thread | None = None

    def notify(self) -> threading.Thread:
        """Call the wake soon; one that is running is called once more after its end."""
        with self._guard:
            self._again = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="session-listener", daemon=True)
                self._thread.start()
            return self._thread

    def _run(self) -> None:
        while True:
            with self._guard:
                if not self._again:
                    self._thread = None
                    return
                self._again = False
            try:
                self._wake()
            except Exception:  # whoever listens must not be able to break the session
                log.exception("a listener of the session failed: %r", self._wake)


class ConnectionListeners:
    """All who are told; changes are rare, so threads are made when there is one."""

    def __init__(self) -> None:
        self._listeners: tuple[ConnectionListener, ...] = ()

    def add(self, wake: Wake) -> None:
        """Call this one too, from now on."""
        self._listeners = (*self._listeners, ConnectionListener(wake))

    def notify(self) -> None:
        """Call all; returns when they are through, or after a moment."""
        try:
            threads = [listener.notify() for listener in self._listeners]
        except RuntimeError:  # no more threads can be had
            log.exception("listeners of the session could not be told of a change")
            return
        until = time.monotonic() + _PATIENCE_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
