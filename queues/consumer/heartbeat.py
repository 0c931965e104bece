"""Heartbeats: whether a thread that works in steps makes progress."""

import threading
import time

# A step waits for ZooKeeper or a backend, which answer or fail within two minutes.
STUCK_SECONDS = 600.0


class Heartbeat:
    """Records the start and the end of each step of one thread; any thread may read it.

    There is trouble when the thread has ended, or when one step has lasted longer than `stuck_after` seconds.
    A thread at rest may wait for work for any time. The clock stops while the machine is suspended.
    """

    def __init__(self, thread: threading.Thread, *, stuck_after: float = STUCK_SECONDS) -> None:
        self._thread = thread
        self._stuck_after = stuck_after
        self._since: float | None = None  # monotonic; None = at rest

    def begin(self) -> None:
        """Record the start of a step."""
        self._since = time.monotonic()

    def rest(self) -> None:
        """Record the end of the step."""
        self._since = None

    def trouble(self) -> str:
        """The trouble, empty without one, and for a thread that was never started."""
        if self._thread.ident is None:
            return ""
        if not self._thread.is_alive():
            return "its thread has ended"
        since = self._since
        lasts = 0.0 if since is None else time.monotonic() - since
        return f"one step has lasted for {lasts:.0f} s" if lasts > self._stuck_after else ""
