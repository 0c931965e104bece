"""Small reads of several threads in one request: those that come while one is in flight go together."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger(__name__)

_MAX_PATHS = 100  # together, and of one read: more go alone


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class _Read:
    paths: Sequence[str]
    turn: threading.Lock = field(default_factory=_taken)  # released when it is answered, or is to send
    results: Sequence[Any] | None = None
    sends: bool = False


class JointReads:
    """Sends the reads of all threads, one request at a time: each costs the connection as much as a read.

    A read is answered by a request that was sent after it began.
    """

    def __init__(self, send: Callable[[Sequence[str], float], Sequence[Any]]) -> None:
        """`send` returns a result for each path by a deadline; any error of its means that there is none."""
        self._send = send
        self._guard = threading.Lock()
        self._waiting: list[_Read] = []
        self._is_sending = False

    def waiting(self) -> int:
        """The number of reads that wait for the request in flight."""
        return len(self._waiting)

    def read(self, paths: Sequence[str], deadline: float) -> Sequence[Any] | None:
        """A result for each path; None when there is no answer, or too many paths: read them alone then.

        `deadline`: by `time.monotonic`.
        """
        if not 0 < len(paths) <= _MAX_PATHS:
            return None
        read = _Read(paths)
        try:
            with self._guard:
                self._waiting.append(read)
                read.sends, self._is_sending = not self._is_sending, True
            if not read.sends and not read.turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                self._leave(read)
            if read.sends:
                self._send_first(read, deadline)
        except BaseException:  # Ctrl-C may come anywhere: the others must not wait for this thread
            self._leave(read, for_good=True)
            raise
        return read.results

    def _send_first(self, read: _Read, deadline: float) -> None:
        reads: list[_Read] = []
        try:
            with self._guard:
                reads = self._take()
            results = self._send([path for each in reads for path in each.paths], deadline)
            start = 0
            for each in reads:
                each.results = results[start : start + len(each.paths)]
                start += len(each.paths)
        except Exception:  # noqa: BLE001 - each is read alone, and raises what there is to raise
            log.debug("a joint read of %d nodes was not answered", sum(len(each.paths) for each in reads))
        finally:
            self._leave(read, for_good=True)
            for each in reads:
                if each is not read:
                    each.turn.release()

    def _leave(self, read: _Read, *, for_good: bool = False) -> None:
        """Wait and send no longer; a read whose turn has come meanwhile leaves `for_good` alone.

        The next one sends then.
        """
        with self._guard:
            if read.sends and not for_good:
                return
            if read in self._waiting:
                self._waiting.remove(read)
            if read.sends:
                read.sends, self._is_sending = False, bool(self._waiting)
                if self._waiting:
                    self._waiting[0].sends = True
                    self._waiting[0].turn.release()

    def _take(self) -> list[_Read]:
        """The first reads that fit into one request."""
        count, total = 0, 0
        for read in self._waiting:
            total += len(read.paths)
            if total > _MAX_PATHS:
                break
            count += 1
        reads, self._waiting = self._waiting[:count], self._waiting[count:]
        return reads
