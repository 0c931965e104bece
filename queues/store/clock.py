"""The ensemble's time: due times must mean the same on every host."""

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

# Clocks drift apart by some ten milliseconds in that time.
_MEASURE_AGAIN_NS = 600 * _NS_PER_S
# After a failure; and while there is no connection, when the old measurement serves.
_TRY_AGAIN_NS = 5 * _NS_PER_S
# While a jump is not confirmed: the clock of this host, or of the server, may be set right at any time.
_JUMPED_AGAIN_NS = 30 * _NS_PER_S
# A synced write takes 2 to 20 ms. What a round trip takes is how late an item may become.
_SHORT_ROUND_TRIP_NS = 50 * _NS_PER_MS
_TRIES = 5
_TOLERATED_SKEW_MS = 2_000
# Servers that follow a time service differ by less than a second: what is more is no drift.
_JUMP_NS = 5 * _NS_PER_S
# As near as the clock of this host has to be to confirm a time.
_CONFIRMING_NS = 30 * _NS_PER_S
# Each connected client stores the time when it measures: an older stored time proves nothing.
_STORED_NS = _MEASURE_AGAIN_NS + _CONFIRMING_NS
_STORED_TIME = re.compile(rb"[0-9]{1,15}")  # epoch milliseconds


@dataclass(frozen=True, slots=True)
class _Measurement:
    offset_ns: int  # from CLOCK_BOOTTIME to the time that is returned
    ensemble_ns: int  # from CLOCK_BOOTTIME to the clock of the ensemble: another one after a jump
    until_ns: int  # by CLOCK_BOOTTIME
    connection: int  # over which it was made: behind another one may be a leader with another clock

    @property
    def ahead_ms(self) -> int:
        """By how much the ensemble's clock is ahead of the returned time; 0 unless it has jumped."""
        return (self.ensemble_ns - self.offset_ns) // _NS_PER_MS

    def time_ms(self, boottime: int) -> int:
        """Epoch milliseconds at this moment of CLOCK_BOOTTIME, which is in nanoseconds."""
        return (boottime + self.offset_ns) // _NS_PER_MS


@dataclass(frozen=True, slots=True)
class _Sample:
    round_trip_ns: int
    offset_ns: int
    host_ns: int  # from CLOCK_BOOTTIME to the host's own clock

    @property
    def doubt_ns(self) -> int:
        return self.round_trip_ns // 2

    def host_ahead_ns(self, offset_ns: int) -> int:
        """How far the host's own clock is ahead of the time with this offset."""
        # The offset is against the time after the reply: half of the round trip is expected.
        return self.host_ns - offset_ns - self.doubt_ns

    def is_far_from(self, offset_ns: int) -> bool:
        """Whether the ensemble's clock is further from the time with this offset than drift explains."""
        return abs(self.offset_ns - offset_ns) > _JUMP_NS + self.round_trip_ns

    def confirms(self, offset_ns: int, *, against_ns: int) -> bool:
        """Whether the host's own clock is near the time with one offset, and nearer than to the other."""
        off_ns, other_off_ns = (abs(self.host_ahead_ns(each)) for each in (offset_ns, against_ns))
        return off_ns <= _CONFIRMING_NS + self.doubt_ns and off_ns < other_off_ns


class EnsembleClock:
    """Reads the ensemble's clock from the mtime of a node that it has just written.

    The server took that time before its reply came, so the returned time is never ahead of the ensemble's,
    but for the drift since the last measurement: nothing runs before it is due. It is behind by the round
    trip at most.

    A clock that is suddenly another one (a failover to a server whose clock is wrong) is followed only when
    the host's own clock confirms it. Until then the time goes on by CLOCK_BOOTTIME from what it was. A new
    client reads of the jump in ClockJump's node, or detects it by the time that other clients have stored
    in the node that it writes.
    """

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._path = layout.clock
        self._jump = ClockJump(session, layout)
        self._guard = threading.Lock()
        self._measurement: _Measurement | None = None
        self._told_skew_ms = 0

    def now_ms(self) -> int:
        """Epoch milliseconds of the ensemble.

        Measured on first use, every ten minutes, and over each new connection. Raises what a write raises,
        on first use only.
        """
        # One read, without the lock, is the usual way.
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
        """The time that has passed by all clocks: for judgements that are final.

        The earliest of the returned time, the ensemble's clock, and the host's own; raises as `now_ms`.
        """
        now = self.now_ms()
        measurement = self._measurement
        ahead = 0 if measurement is None else measurement.ahead_ms
        return min(now, now + ahead, time.time_ns() // _NS_PER_MS)

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
            log.warning("the ensemble's time could not be measured again, the last one serves: %s", error)
            until = boottime_ns() + _TRY_AGAIN_NS
            return _Measurement(old.offset_ns, old.ensemble_ns, until, connection)
        kept = self._found(best, stored_ms) if old is None else _kept(old.offset_ns, best)
        if kept is None:
            self._jump.end()
            self._tell_skew(best)
            until = boottime_ns() + _MEASURE_AGAIN_NS
            return _Measurement(best.offset_ns, best.offset_ns, until, connection)
        self._jump.keep((best.offset_ns - kept) // _NS_PER_MS)
        return _Measurement(kept, best.offset_ns, boottime_ns() + _JUMPED_AGAIN_NS, connection)

    def _found(self, sample: _Sample, stored_ms: int) -> int | None:
        """The offset that a new client finds with other clients; None when the ensemble's clock is right."""
        if abs(sample.host_ahead_ns(sample.offset_ns)) <= _JUMP_NS + sample.doubt_ns:
            return None  # the host's own clock agrees with it
        if jumped_ms := self._jump.found_ms():
            offset = sample.offset_ns - jumped_ms * _NS_PER_MS
        elif _is_ensemble_off(sample, stored_ms):
            offset = sample.host_ns - sample.doubt_ns
        else:
            return None
        # The other clients and this host agree, against the ensemble.
        agree = sample.confirms(offset, against_ns=sample.offset_ns)
        return offset if agree and sample.is_far_from(offset) else None

    def _stored(self) -> tuple[bytes, int]:
        """What a new client writes into the node, and the time stored there, in epoch milliseconds.

        It writes the time that it has read: its own time is not confirmed yet.
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
        # Against the time after the reply: the ensemble's clock shows this much by now, or more.
        return _Sample(after - before, stat.modified * _NS_PER_MS - after, host_ns)

    def _tell_skew(self, sample: _Sample) -> None:
        """Say once per change that the host's clock is off; a long round trip may be all there is to it."""
        doubt_ms = sample.doubt_ns // _NS_PER_MS
        skew_ms = sample.host_ahead_ns(sample.offset_ns) // _NS_PER_MS
        skew_ms = skew_ms if abs(skew_ms) > _TOLERATED_SKEW_MS + doubt_ms else 0
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


def _kept(offset_ns: int, sample: _Sample) -> int | None:
    """The offset of the last measurement while it is better than that of the ensemble's clock; else None.

    The ensemble's clock is followed after a jump when the clock of this host confirms it.
    """
    is_confirmed = sample.confirms(sample.offset_ns, against_ns=offset_ns)
    return offset_ns if sample.is_far_from(offset_ns) and not is_confirmed else None


def _is_ensemble_off(sample: _Sample, stored_ms: int) -> bool:
    """Whether the stored time and the clock of this host agree, and the ensemble's clock with neither."""
    stored_ns = stored_ms * _NS_PER_MS - boottime_ns()
    by_host, by_ensemble = sample.host_ns - stored_ns, sample.offset_ns - stored_ns
    # An ensemble that is a little ahead of the stored time may be right: no client was connected meanwhile.
    return -_CONFIRMING_NS <= by_host <= _STORED_NS and not -_CONFIRMING_NS <= by_ensemble <= 2 * _STORED_NS
