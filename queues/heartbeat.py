"""Whether a thread that works in steps gets on."""

import threading
import time

# A step asks ZooKeeper or a backend, which answer or fail within a minute or two.
STUCK_SECONDS = 600.0


class Heartbeat:
    """The thread says when a step begins and when it rests; anybody may ask. Says nothing of other threads.

    It is in trouble when its thread has ended, or when one step has lasted for longer than `stuck_after`
    seconds. Who is at rest waits with a timeout or for work, however long. The clock stands still while the
    machine is suspended.
    """

    def __init__(self, thread: threading.Thread, *, stuck_after: float = STUCK_SECONDS) -> None:
        self._thread = thread
        self._stuck_after = stuck_after
        self._since: float | None = None  # monotonic; None = at rest

    def begin(self) -> None:
        """A step begins."""
        self._since = time.monotonic()

    def rest(self) -> None:
        """The step is done."""
        self._since = None

    def trouble(self) -> str:
        """What is wrong, empty when nothing is; a thread that was never started is not judged."""
        if self._thread.ident is None:
            return ""
        if not self._thread.is_alive():
            return "its thread has ended"
        since = self._since
        lasts = 0.0 if since is None else time.monotonic() - since
        return f"one step has lasted for {lasts:.0f} s" if lasts > self._stuck_after else ""
