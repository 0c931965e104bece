"""The ensemble's time, so that due times have the same meaning on every host."""

import logging
import re
import threading
import time
from dataclasses import dataclass

from queues.model.errors import Conflict, QueueError, Unreachable
from queues.model.names import Layout
from queues.model.operations import Set
from queues.session import Session, SessionState, Stat, boottime_ns
from queues.store.clock_jump import ClockJump
from queues.store.commit import commit

log = logging.getLogger(__name__)

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000

# Clocks drift apart by some ten milliseconds in this time.
_MEASURE_AGAIN_NS = 600 * _NS_PER_S
# After a failure, and while there is no connection; the old measurement is used meanwhile.
_TRY_AGAIN_NS = 5 * _NS_PER_S
# While a jump is not confirmed: the clock of this host or of the server may be corrected at any time.
_JUMPED_AGAIN_NS = 30 * _NS_PER_S
# A synced write takes 2 to 20 ms. An item can become due late by the round trip's duration.
_SHORT_ROUND_TRIP_NS = 50 * _NS_PER_MS
_TRIES = 5
_TOLERATED_SKEW_MS = 2_000
# Servers that use a time service differ by less than a second: a larger difference is no drift.
_JUMP_NS = 5 * _NS_PER_S
# The largest difference at which the clock of this host confirms a time.
_CONFIRMING_NS = 30 * _NS_PER_S
# Each connected client stores the time when it measures: an older stored time is no evidence.
_STORED_NS = _MEASURE_AGAIN_NS + _CONFIRMING_NS
_STORED_TIME = re.compile(rb"[0-9]{1,15}")  # epoch milliseconds


@dataclass(frozen=True, slots=True)
class _Measurement:
    offset_ns: int  # from CLOCK_BOOTTIME to the reported time
    ensemble_ns: int  # from CLOCK_BOOTTIME to the clock of the ensemble; differs from offset_ns after a jump
    until_ns: int  # by CLOCK_BOOTTIME
    connection: int  # of the measurement: another connection may reach a leader with another clock

    @property
    def ahead_ms(self) -> int:
        """The lead of the ensemble's clock over the reported time; 0 unless the clock has jumped."""
        return (self.ensemble_ns - self.offset_ns) // _NS_PER_MS

    def time_ms(self, boottime: int) -> int:
        """Epoch milliseconds at this CLOCK_BOOTTIME, in nanoseconds."""
        return (boottime + self.offset_ns) // _NS_PER_MS


@dataclass(frozen=True, slots=True)
class _Sample:
    round_trip_ns: int
    offset_ns: int
    host_ns: int  # from CLOCK_BOOTTIME to the host's own clock

    @property
    def uncertainty_ns(self) -> int:
        return self.round_trip_ns // 2

    def host_ahead_ns(self, offset_ns: int) -> int:
        """The lead of the host's own clock over the time with this offset."""
        # The offset refers to the time after the reply: a lead of half the round trip is expected.
        return self.host_ns - offset_ns - self.uncertainty_ns

    def is_far_from(self, offset_ns: int) -> bool:
        """Whether the ensemble's clock differs from the time with this offset by more than drift explains."""
        return abs(self.offset_ns - offset_ns) > _JUMP_NS + self.round_trip_ns

    def confirms(self, offset_ns: int, *, against_ns: int) -> bool:
        """Whether the host's own clock is close to the time with one offset, and closer than to the other."""
        off_ns, other_off_ns = (abs(self.host_ahead_ns(each)) for each in (offset_ns, against_ns))
        return off_ns <= _CONFIRMING_NS + self.uncertainty_ns and off_ns < other_off_ns


class EnsembleClock:
    """Reads the ensemble's clock from the mtime of a node that it has just written.

    The server takes that time before it replies, so the reported time is never ahead of the ensemble's,
    except for the drift since the last measurement: nothing runs before it is due. It is behind by at most
    the round trip.

    If the ensemble's clock jumps (a failover to a server with a wrong clock), the new time is used only when
    the host's own clock confirms it. Until then the old time continues by CLOCK_BOOTTIME. A new client reads
    about the jump in ClockJump's node, or detects it by the time that other clients have stored in the node
    that it writes.
    """

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._path = layout.clock
        self._jump = ClockJump(session, layout)
        self._guard = threading.Lock()
        self._measurement: _Measurement | None = None
        self._logged_skew_ms = 0

    def now_ms(self) -> int:
        """Epoch milliseconds of the ensemble.

        Measured on first use, every ten minutes, and over each new connection. Raises what a write raises,
        on first use only.
        """
        # The usual path is one read, without the lock.
        now, measurement = boottime_ns(), self._measurement
        if (
            measurement is None
            or now >= measurement.until_ns
            or measurement.connection != self._session.connections
        ):
            measurement = self._renewed(measurement)
            now = boottime_ns()
        return measurement.time_ms(now)

    def confirmed_ms(self) -> int:
        """The time that all clocks have reached, for decisions that cannot be reversed.

        The earliest of the reported time, the ensemble's clock and the host's own; raises as `now_ms`.
        """
        now = self.now_ms()
        measurement = self._measurement
        ahead = 0 if measurement is None else measurement.ahead_ms
        return min(now, now + ahead, time.time_ns() // _NS_PER_MS)

    def _renewed(self, old: _Measurement | None) -> _Measurement:
        if old is not None and self._session.state is not SessionState.CONNECTED:
            return old
        # A thread with a measurement continues to use it while another thread makes the next one.
        timeout = self._session.settings.call_timeout if old is None else 0
        if not self._guard.acquire(timeout=timeout):
            if old is None:
                raise Unreachable(self._session.settings.hosts, timeout)
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
            if old is None:
                data, stored_ms = self._stored()
            else:
                data, stored_ms = str(old.time_ms(boottime_ns())).encode(), 0
            best = self._sample(data)
            for _ in range(_TRIES - 1):
                if best.round_trip_ns <= _SHORT_ROUND_TRIP_NS:
                    break
                best = min(best, self._sample(data), key=lambda sample: sample.round_trip_ns)
        except QueueError as error:
            if old is None:
                raise
            log.warning(
                "the ensemble's time could not be measured again, the old measurement is used: %s", error
            )
            until = boottime_ns() + _TRY_AGAIN_NS
            return _Measurement(old.offset_ns, old.ensemble_ns, until, connection)
        kept = self._found(best, stored_ms) if old is None else _kept(old.offset_ns, best)
        if kept is None:
            self._jump.end()
            self._log_skew(best)
            until = boottime_ns() + _MEASURE_AGAIN_NS
            return _Measurement(best.offset_ns, best.offset_ns, until, connection)
        self._jump.keep((best.offset_ns - kept) // _NS_PER_MS)
        return _Measurement(kept, best.offset_ns, boottime_ns() + _JUMPED_AGAIN_NS, connection)

    def _found(self, sample: _Sample, stored_ms: int) -> int | None:
        """The offset that a new client derives from other clients; None if the ensemble's clock is right."""
        if abs(sample.host_ahead_ns(sample.offset_ns)) <= _JUMP_NS + sample.uncertainty_ns:
            return None  # the host's own clock agrees
        if jumped_ms := self._jump.found_ms():
            offset = sample.offset_ns - jumped_ms * _NS_PER_MS
        elif _is_ensemble_off(sample, stored_ms):
            offset = sample.host_ns - sample.uncertainty_ns
        else:
            return None
        # The other clients and this host must agree against the ensemble.
        agree = sample.confirms(offset, against_ns=sample.offset_ns)
        return offset if agree and sample.is_far_from(offset) else None

    def _stored(self) -> tuple[bytes, int]:
        """The data that a new client writes to the node, and the time stored there, in epoch milliseconds.

        It writes the data that it has read: whether its own time is right is not established yet.
        """
        found = self._session.get(self._path)
        if found is None:
            return b"", 0
        data, stat = found
        if _STORED_TIME.fullmatch(data):
            return data, int(data)
        return b"", stat.modified  # only new clients have written it so far

    def _sample(self, data: bytes) -> _Sample:
        before, wall_before = boottime_ns(), time.time_ns()
        try:
            (stat,) = commit(self._session, [Set(self._path, data, -1)])
        except Conflict:
            self._session.ensure_path(self._path)
            before, wall_before = boottime_ns(), time.time_ns()
            (stat,) = commit(self._session, [Set(self._path, data, -1)])
        after, wall_after = boottime_ns(), time.time_ns()
        if not isinstance(stat, Stat):
            message = f"ZooKeeper answered a set with {stat!r}"
            raise QueueError(message)
        host_ns = (wall_before + wall_after) // 2 - (before + after) // 2
        # Relative to the time after the reply: by then the ensemble's clock shows this time or a later one.
        return _Sample(after - before, stat.modified * _NS_PER_MS - after, host_ns)

    def _log_skew(self, sample: _Sample) -> None:
        """Log once per change that the host's clock is off by more than a long round trip explains."""
        uncertainty_ms = sample.uncertainty_ns // _NS_PER_MS
        skew_ms = sample.host_ahead_ns(sample.offset_ns) // _NS_PER_MS
        skew_ms = skew_ms if abs(skew_ms) > _TOLERATED_SKEW_MS + uncertainty_ms else 0
        if abs(skew_ms - self._logged_skew_ms) <= (_TOLERATED_SKEW_MS + uncertainty_ms if skew_ms else 0):
            return
        self._logged_skew_ms = skew_ms
        if skew_ms:
            log.warning(
                "the clock of this host is %.1f s %s that of ZooKeeper; due times use ZooKeeper's, logs "
                "use that of this host: check the time service on both",
                abs(skew_ms) / 1000,
                "ahead of" if skew_ms > 0 else "behind",
            )
        else:
            log.warning("the clock of this host agrees with that of ZooKeeper again")


def _kept(offset_ns: int, sample: _Sample) -> int | None:
    """The offset of the last measurement while it is more reliable than the ensemble's clock; else None.

    After a jump, the ensemble's clock is used once the clock of this host confirms it.
    """
    is_confirmed = sample.confirms(sample.offset_ns, against_ns=offset_ns)
    return offset_ns if sample.is_far_from(offset_ns) and not is_confirmed else None


def _is_ensemble_off(sample: _Sample, stored_ms: int) -> bool:
    """Whether the stored time and this host's clock agree, and the ensemble's clock differs from both."""
    stored_ns = stored_ms * _NS_PER_MS - boottime_ns()
    by_host, by_ensemble = sample.host_ns - stored_ns, sample.offset_ns - stored_ns
    # An ensemble that is a little ahead of the stored time may be right: no client was connected meanwhile.
    return -_CONFIRMING_NS <= by_host <= _STORED_NS and not -_CONFIRMING_NS <= by_ensemble <= 2 * _STORED_NS
