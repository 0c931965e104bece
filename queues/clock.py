"""The ensemble's time: due times must mean the same on every host."""

import logging
import threading
import time
from dataclasses import dataclass

from queues.errors import Conflict, QueueError, Unreachable
from queues.names import Layout
from queues.operations import Set
from queues.session import Session, SessionState, Stat
from queues.transaction import commit

log = logging.getLogger(__name__)

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000

# Clocks drift apart by some ten milliseconds in that time.
_MEASURE_AGAIN_NS = 600 * _NS_PER_S
# After a failure; and while there is no connection, when the old measurement serves.
_TRY_AGAIN_NS = 5 * _NS_PER_S
# A synced write takes 2 to 20 ms. What a round trip takes is how late an item may become.
_SHORT_ROUND_TRIP_NS = 50 * _NS_PER_MS
_TRIES = 5
_TOLERATED_SKEW_MS = 2_000


@dataclass(frozen=True, slots=True)
class _Measurement:
    offset_ns: int  # from the monotonic clock to the ensemble's
    until_ns: int  # by the monotonic clock
    connection: int  # over which it was made: behind another one may be a leader with another clock


@dataclass(frozen=True, slots=True)
class _Sample:
    round_trip_ns: int
    offset_ns: int
    skew_ms: int  # how far the host's own clock is ahead of the ensemble's


class EnsembleClock:
    """Reads the ensemble's clock from the mtime of a node that it has just written.

    The server took that time before its reply came, so the time told here is never ahead of the ensemble's,
    but for the drift since the last measurement: nothing runs before it is due. It is behind by the round
    trip at most. The host's own clock is compared, and used for nothing.
    """

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._path = layout.clock
        self._guard = threading.Lock()
        self._measurement: _Measurement | None = None
        self._told_skew_ms = 0

    def now_ms(self) -> int:
        """Epoch milliseconds of the ensemble.

        Measured on first use, every ten minutes, and over each new connection. Raises what a write raises,
        on first use only.
        """
        now = time.monotonic_ns()
        measurement = self._measurement  # one read: the usual way takes no lock
        if (
            measurement is None
            or now >= measurement.until_ns
            or measurement.connection != self._session.connections
        ):
            measurement = self._renewed(measurement)
            now = time.monotonic_ns()
        return (now + measurement.offset_ns) // _NS_PER_MS

    def _renewed(self, old: _Measurement | None) -> _Measurement:
        if old is not None and self._session.state is not SessionState.CONNECTED:
            return old
        # Whoever has a measurement goes on with it while another thread makes the next one.
        patience = self._session.settings.call_timeout if old is None else 0
        if not self._guard.acquire(timeout=patience):
            if old is None:
                raise Unreachable(self._session.settings.hosts, patience)
            return old
        try:
            newer = self._measurement
            if newer is not None and newer is not old:
                return newer
            self._measurement = self._measure(old)
            return self._measurement
        finally:
            self._guard.release()

    def _measure(self, old: _Measurement | None) -> _Measurement:
        connection = self._session.connections
        try:
            best = self._sample()
            for _ in range(_TRIES - 1):
                if best.round_trip_ns <= _SHORT_ROUND_TRIP_NS:
                    break
                best = min(best, self._sample(), key=lambda sample: sample.round_trip_ns)
        except QueueError as error:
            if old is None:
                raise
            log.warning("the ensemble's time could not be measured again, the last one serves: %s", error)
            return _Measurement(old.offset_ns, time.monotonic_ns() + _TRY_AGAIN_NS, connection)
        self._tell_skew(best)
        return _Measurement(best.offset_ns, time.monotonic_ns() + _MEASURE_AGAIN_NS, connection)

    def _sample(self) -> _Sample:
        before, wall_before = time.monotonic_ns(), time.time_ns()
        try:
            (stat,) = commit(self._session, [Set(self._path, b"", -1)])
        except Conflict:
            self._session.ensure_path(self._path)
            before, wall_before = time.monotonic_ns(), time.time_ns()
            (stat,) = commit(self._session, [Set(self._path, b"", -1)])
        after, wall_after = time.monotonic_ns(), time.time_ns()
        if not isinstance(stat, Stat):
            message = f"ZooKeeper answered a set with {stat!r}"
            raise QueueError(message)
        ensemble_ns = stat.modified * _NS_PER_MS
        skew_ms = ((wall_before + wall_after) // 2 - ensemble_ns) // _NS_PER_MS
        # Against the time after the reply: the ensemble's clock shows this much by now, or more.
        return _Sample(after - before, ensemble_ns - after, skew_ms)

    def _tell_skew(self, sample: _Sample) -> None:
        """Say once per change that the host's clock is off; a long round trip may be all there is to it."""
        doubt_ms = sample.round_trip_ns // (2 * _NS_PER_MS)
        skew_ms = sample.skew_ms if abs(sample.skew_ms) > _TOLERATED_SKEW_MS + doubt_ms else 0
        if abs(skew_ms - self._told_skew_ms) <= (_TOLERATED_SKEW_MS + doubt_ms if skew_ms else 0):
            return
        self._told_skew_ms = skew_ms
        if skew_ms:
            log.warning(
                "the clock of this host is %.1f s %s that of ZooKeeper; due times go by ZooKeeper's, logs by "
                "this one: check the time service here and there",
                abs(skew_ms) / 1000,
                "ahead of" if skew_ms > 0 else "behind",
            )
        else:
            log.warning("the clock of this host agrees with that of ZooKeeper again")
