"""The state of the connection by this client's own clock, and the listeners of its changes."""

import logging
import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum

from queues.model.errors import QueueError
from queues.session.connection_log import ConnectionLog


def boottime() -> float:
    """Seconds since the machine was booted, including those in which it was suspended.

    `time.monotonic` stops while the machine is suspended, so a process that missed a deadline would not
    notice it (clock_gettime(2): CLOCK_BOOTTIME).
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boottime_ns() -> int:
    """The same in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


log = logging.getLogger(__name__)

# A listener that sets an event returns in microseconds, usually before any caller sees the new connection.
# One that blocks delays kazoo's thread by at most this, far below any session timeout.
_PATIENCE_SECONDS = 0.1

Wake = Callable[[], None]
"""Called after a change; it must set an event and do nothing more."""


class ConnectionListener:
    """Calls one wake on a thread that lives for the call, so that a slow or failing wake delays no other."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._guard = threading.Lock()
        self._again = False
        self._thread: threading.Thread | None = None

    def notify(self) -> threading.Thread:
        """Call the wake soon; a running one is called once more after it returns."""
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
            except Exception:  # a listener must not break the session
                log.exception("a listener of the session failed: %r", self._wake)


class ConnectionListeners:
    """All listeners; changes are rare, so the threads are created for each change."""

    def __init__(self) -> None:
        self._listeners: tuple[ConnectionListener, ...] = ()

    def add(self, wake: Wake) -> None:
        """Call this wake too, from now on."""
        self._listeners = (*self._listeners, ConnectionListener(wake))

    def notify(self) -> None:
        """Call all; returns when they have returned, or after `_PATIENCE_SECONDS`."""
        try:
            threads = [listener.notify() for listener in self._listeners]
        except RuntimeError:  # the system allows no more threads
            log.exception("the listeners of the session could not be notified of a change")
            return
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


# The server counts from the client's last request; a sixth is the margin for the rounding on both sides.
_SAFE_SHARE = 5 / 6
# Timers stop while the machine is suspended: this is the longest delay to notice a loss after it resumes.
_TICK_SECONDS = 1.0


class SessionState(StrEnum):
    """The state of the connection, as this client sees it."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Contact:
    """The state that kazoo's thread writes and all other threads read. No method sends a request.

    kazoo reports a loss only after a server has reported it; by then, others may long have held this
    session's locks. Here the session counts as lost when the last request that certainly arrived is too old.
    """

    def __init__(self, asked_timeout: float) -> None:
        self.negotiated_timeout = asked_timeout  # seconds; what the server granted
        self.generation = 0  # grows with each lost session: what was held in an earlier one is not held
        self.connections = 0  # grows with each connection, also within one session
        self.trouble: BaseException | None = None  # why the last attempt to connect failed
        self.refused = ""  # why all servers refused this client when they were last tried
        self._ready = False  # connected and authenticated
        self._proven = -math.inf  # send time of the last answered request, by CLOCK_BOOTTIME
        self._over: Callable[[], QueueError] | None = None  # the error of all calls from now on
        self._changed = threading.Condition()
        self._listeners = ConnectionListeners()
        self._timer: threading.Timer | None = None
        self._log = ConnectionLog(boottime)

    # ------------------------------------------------------------------ queries
    @property
    def ready(self) -> bool:
        """Whether requests can be sent."""
        return self._ready

    @property
    def state(self) -> SessionState:
        """The connection as known now; it turns into LOST before the server can have ended the session."""
        if self._over is not None or self._silence() >= self._safe:
            return SessionState.LOST
        return SessionState.CONNECTED if self._ready else SessionState.SUSPENDED

    def seconds_away(self) -> float:
        """Seconds without contact; 0 while connected.

        A machine that was suspended for longer than the session seems connected until its next request.
        """
        silence = self._silence()
        return 0.0 if self._ready and silence < self._safe else silence

    def check(self) -> None:
        """Raise the error of the session's end, if it has come."""
        if self._over is not None:
            raise self._over()

    def wait(self, seconds: float, *, or_refused: bool = False) -> bool:
        """Wait until requests can be sent; False after `seconds`, or if all servers refuse this client."""
        if self._ready:
            return True
        with self._changed:
            self._changed.wait_for(
                lambda: self._ready or self._over is not None or (or_refused and bool(self.refused)),
                max(0.0, seconds),
            )
        self.check()
        return self._ready

    def on_change(self, wake: Wake) -> None:
        """Call `wake` at each change, and when the session counts as lost by this client's clock."""
        self._listeners.add(wake)

    # ------------------------------------------------------------------ reports
    def record_reply(self, sent_at: float) -> None:
        """Record the answer to a request that was sent at this time."""
        self._proven = sent_at

    def connected(self, session: int, server: str) -> None:
        """Record that requests can be sent in this session."""
        self._stop_timer()
        self._log.connected(session, server)
        self.connections += 1
        self.trouble, self.refused = None, ""
        with self._changed:
            self._ready = self._over is None
        self._listeners.notify()
        with self._changed:
            self._changed.notify_all()

    def broken(self, *, lost: bool) -> None:
        """Record that the connection broke; `lost`: a server reported the end of the session."""
        was_ready, self._ready = self._ready, False
        if was_ready:
            self._log.broken()
        if lost:
            self._log.lost("ZooKeeper has ended it")
            self._stop_timer()
            self.generation += 1
        if was_ready or lost:
            self._listeners.notify()
        if was_ready and not lost:
            self._await_loss()

    def refuse(self, reason: str) -> None:
        """Record that all servers were tried and refused this client."""
        with self._changed:
            self.refused = reason
            self._changed.notify_all()

    def end(self, error: Callable[[], QueueError]) -> None:
        """End the session: from now on each call raises what `error` returns."""
        self._stop_timer()
        with self._changed:
            self._over = self._over or error
            self._ready = False
            self._changed.notify_all()

    def end_after_fork(self, error: Callable[[], QueueError]) -> None:
        """End the session in a child process, where a thread of the parent may hold the condition's lock."""
        self._changed = threading.Condition()
        self._listeners = ConnectionListeners()
        self._timer = None
        self._over = error
        self._ready = False
        self.generation += 1

    # ------------------------------------------------------------------ clock
    @property
    def _safe(self) -> float:
        return self.negotiated_timeout * _SAFE_SHARE

    def _silence(self) -> float:
        return boottime() - self._proven

    def _await_loss(self) -> None:
        """Notify the listeners when the session counts as lost, unless the connection is back before."""
        if self._ready or self._over is not None:
            return
        left = self._safe - self._silence()
        if left <= 0:
            self._log.lost(f"it had no contact with ZooKeeper for {self._silence():.1f} s")
            self._listeners.notify()
            return
        self._timer = timer = threading.Timer(min(left, _TICK_SECONDS) + 0.001, self._await_loss)
        timer.daemon = True
        timer.start()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
