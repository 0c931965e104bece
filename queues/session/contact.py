"""The state of the connection by a clock of our own, and the listeners of its changes."""

import logging
import math
import threading
import time
from collections.abc import Callable
from enum import StrEnum

from queues.model.errors import QueueError


def boottime() -> float:
    """Seconds since the machine was booted, those in which it was suspended among them.

    `time.monotonic` stops meanwhile: a suspended process would consider itself in time
    (clock_gettime(2): CLOCK_BOOTTIME).
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boottime_ns() -> int:
    """The same in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


log = logging.getLogger(__name__)

# A listener that sets an event is through in microseconds, as a rule before anybody sees the connection
# back. One that blocks holds kazoo's thread for no longer than this, far below any session timeout.
_PATIENCE_SECONDS = 0.1

Wake = Callable[[], None]
"""Called when something changed: it sets an event and does nothing more."""


class ConnectionListener:
    """Calls one wake on a thread of its own: a slow or failing call affects no other."""

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
            except Exception:  # a listener must not break the session
                log.exception("a listener of the session failed: %r", self._wake)


class ConnectionListeners:
    """The listeners; changes are rare, so each change starts its own threads."""

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
            log.exception("the listeners of the session could not be called about a change")
            return
        until = time.monotonic() + _PATIENCE_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))


# The server counts from the last request of this client; a sixth is kept for rounding.
_SAFE_SHARE = 5 / 6
# Timers stop while the machine is suspended: this is the longest delay until it is noticed.
_TICK_SECONDS = 1.0


class SessionState(StrEnum):
    """The state of the connection, by the clock of this host."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Contact:
    """kazoo's thread reports events; all other threads read the state. Nothing here waits for ZooKeeper.

    kazoo reports a loss only once a server has confirmed it; other clients may hold the locks long before.
    Here the session counts as lost when the last request that is known to have arrived is too long ago.
    """

    def __init__(self, asked_timeout: float) -> None:
        self.negotiated_timeout = asked_timeout  # seconds; what the server granted
        self.generation = 0  # grows with each lost session: what was held in an earlier one is not held
        self.connections = 0  # grows with each connection, be it of the same session
        self.trouble: BaseException | None = None  # why the last attempt to connect failed
        self.refused = ""  # why no server let us in when all were tried last
        self._ready = False  # connected and authenticated
        self._proven = -math.inf  # when a request was sent that was answered, by CLOCK_BOOTTIME
        self._over: Callable[[], QueueError] | None = None  # the error of all calls from now on
        self._changed = threading.Condition()
        self._listeners = ConnectionListeners()
        self._timer: threading.Timer | None = None

    # ------------------------------------------------------------------ ask
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
        """How long there has been no contact; 0 while connected.

        A machine that was suspended for longer than the session seems connected, until it tries.
        """
        silence = self._silence()
        return 0.0 if self._ready and silence < self._safe else silence

    def check(self) -> None:
        """Raise the error of the session's end, if it has come."""
        if self._over is not None:
            raise self._over()

    def wait(self, seconds: float, *, or_refused: bool = False) -> bool:
        """Wait until requests can be sent; False after `seconds`, or when all servers refuse us."""
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
        """Call `wake` at each change, and when the session counts as lost by our own clock."""
        self._listeners.add(wake)

    # ------------------------------------------------------------------ report
    def heard(self, sent_at: float) -> None:
        """An answer came to a request that was sent then."""
        self._proven = sent_at

    def connected(self) -> None:
        """Requests can be sent."""
        self._stop_timer()
        self.connections += 1
        self.trouble, self.refused = None, ""
        with self._changed:
            self._ready = self._over is None
        self._listeners.notify()
        with self._changed:
            self._changed.notify_all()

    def broken(self, *, lost: bool) -> None:
        """The connection is gone, or (`lost`) a server said that the session is."""
        was_ready, self._ready = self._ready, False
        if lost:
            self._stop_timer()
            self.generation += 1
        if was_ready or lost:
            self._listeners.notify()
        if was_ready and not lost:
            self._await_loss()

    def refuse(self, reason: str) -> None:
        """All servers were tried, and none let us in."""
        with self._changed:
            self.refused = reason
            self._changed.notify_all()

    def end(self, error: Callable[[], QueueError]) -> None:
        """No more calls: each raises what `error` makes."""
        self._stop_timer()
        with self._changed:
            self._over = self._over or error
            self._ready = False
            self._changed.notify_all()

    def end_after_fork(self, error: Callable[[], QueueError]) -> None:
        """The same in a child process, where a thread that is not there may hold the condition's lock."""
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
        """Tell the listeners when the session counts as lost, unless the connection is back before."""
        if self._ready or self._over is not None:
            return
        left = self._safe - self._silence()
        if left <= 0:
            self._listeners.notify()
            return
        self._timer = timer = threading.Timer(min(left, _TICK_SECONDS) + 0.001, self._await_loss)
        timer.daemon = True
        timer.start()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
