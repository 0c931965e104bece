"""The threads of a push."""

import threading
from collections.abc import Callable
from typing import Protocol

from spark_runner.push.batch import Batch
from spark_runner.push.settings import PushSettings

_MAX_WAIT_S = 3600.0  # of a thread, before it looks again


class Work(Protocol):
    """Where threads find their work; they call it with their lock."""

    def start(self, now: float) -> Batch | None:
        """A batch to run now; None without one."""

    def next_time(self, now: float) -> float | None:
        """When there may be one, if nothing else happens before; None: never."""

    @property
    def ready(self) -> int:
        """The number of batches that wait for a thread, about."""


class Workers:
    """As many threads as the work needs.

    The first `core_threads` of the settings start as soon as there is work; more, up to `most`, once more
    than `backlog` batches wait. A thread without work for `keep_alive` seconds ends, but for the core ones,
    unless these may end, too. `run` gets each batch, and `fail` any error. All methods but `join` need the
    lock.
    """

    def __init__(
        self,
        work: Work,
        run: Callable[[Batch], None],
        fail: Callable[[BaseException], None],
        *,
        name: str,
        lock: threading.Lock,
        clock: Callable[[], float],
        settings: PushSettings,
        most: int,
    ) -> None:
        self._work, self._run, self._fail = work, run, fail
        self._name, self._lock, self._clock, self._settings = name, lock, clock, settings
        self._wanted = threading.Condition(lock)
        self._threads = set[threading.Thread]()
        self._number = self._idle = 0
        # Until when an idle thread waits at most, so that the others need no time to wait for.
        self._watched: float | None = None
        self._is_ending = False
        self.core, self.most = min(settings.core_threads, most), most

    def __len__(self) -> int:
        """The number of threads."""
        return len(self._threads)

    @property
    def active(self) -> int:
        """The number of threads that run a batch."""
        return len(self._threads) - self._idle

    def adjust(self, most: int) -> None:
        """Change the most threads; a core above them is set to them."""
        self.core, self.most = min(self._settings.core_threads, most), most
        self._wanted.notify_all()  # those beyond them end

    def wake(self, now: float) -> None:
        """There may be work: let an idle thread look for it, or a new one."""
        at = self._work.next_time(now)
        if at is None or self._is_ending:
            return
        if self._idle:
            self._wanted.notify()
        elif len(self._threads) < self.most and (
            len(self._threads) < max(1, self.core)
            or at > now  # a thread must wait for that time
            or max(1, self._work.ready) > self._settings.backlog
        ):
            self._start()

    def end(self) -> None:
        """Let each thread end after its batch."""
        self._is_ending = True
        self._wanted.notify_all()

    def join(self) -> None:
        """Wait until all threads but the calling one have ended."""
        with self._lock:
            threads = self._threads - {threading.current_thread()}
        for thread in threads:
            thread.join()

    def _start(self) -> None:
        self._number += 1
        thread = threading.Thread(target=self._loop, name=f"{self._name}-{self._number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            if not self._threads:
                raise
        else:
            self._threads.add(thread)

    def _loop(self) -> None:
        try:
            while (batch := self._next()) is not None:
                self._run(batch)
        except BaseException as error:  # noqa: BLE001 - a thread must not end silently
            self._fail(error)
        with self._lock:
            self._threads.discard(threading.current_thread())
            self.wake(self._clock())  # it may have been the one that waits for the next time

    def _next(self) -> Batch | None:
        with self._lock:
            since = self._clock()
            while not self._is_ending:
                now = self._clock()
                batch = self._work.start(now)
                if batch is not None:
                    self.wake(now)  # for more
                    return batch
                if not self._waits(now, since):
                    break
            return None

    def _waits(self, now: float, since: float) -> bool:
        """Wait for work; False if the thread is to end."""
        at, count = self._work.next_time(now), len(self._threads)
        may_end = count > self.core or self._settings.core_threads_end
        left = since + self._settings.keep_alive - now
        if count > self.most or (may_end and left <= 0 and (at is None or count > 1)):
            return False
        until = now + _MAX_WAIT_S
        watches = at is not None and (self._watched is None or at < self._watched)
        if watches and at is not None:
            until = min(until, at)
            self._watched = at
        if may_end and left > 0:
            until = min(until, now + left)
        self._idle += 1
        self._wanted.wait(max(0.0, until - now))
        self._idle -= 1
        if watches and self._watched == at:
            self._watched = None
        return True
