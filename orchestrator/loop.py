"""A loop in its own thread that survives errors."""

import threading
from collections.abc import Callable

from loguru import logger

from queues import STUCK_SECONDS, Heartbeat, QueueError

_STOP_SECONDS = 2.0  # a step that takes longer ends with the process


class Loop:
    """Calls `step` repeatedly; it returns the seconds until the next call.

    A step that fails is logged and repeated after `retry` seconds: only `stop` ends the loop. A step of more
    than `stuck_after` seconds counts as stuck.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float],
        *,
        retry: float = 1.0,
        first: float = 0.0,
        stuck_after: float = STUCK_SECONDS,
    ) -> None:
        self._name, self._step, self._retry, self._first = name, step, retry, first
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._heartbeat = Heartbeat(self._thread, stuck_after=stuck_after)

    def start(self) -> None:
        """Start the thread; the first step is `first` seconds later."""
        self._thread.start()

    def wake(self) -> None:
        """Do the next step now; may be called from any thread, including a listener's."""
        self._wake.set()

    def stop(self, timeout: float = _STOP_SECONDS) -> bool:
        """Do no further step; False when one still runs after `timeout` seconds."""
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def trouble(self) -> str:
        """The reason why the loop makes no progress; empty when it does, or is stopping."""
        words = "" if self._stopping.is_set() else self._heartbeat.trouble()
        return f"{self._name}: {words}" if words else ""

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called, so that a long step should return."""
        return self._stopping.is_set()

    def _run(self) -> None:
        pause = self._first
        while True:
            self._wake.wait(max(0.0, pause))
            self._wake.clear()
            if self._stopping.is_set():
                return
            pause = self._retry
            self._heartbeat.begin()
            try:
                pause = self._step()
            except QueueError as error:
                logger.warning("{}: {}; again in {:g} s", self._name, error, self._retry)
            except Exception:  # noqa: BLE001 - a bug in one step must not end the loop
                logger.exception("{} failed; again in {:g} s", self._name, self._retry)
            self._heartbeat.rest()
