"""The ensemble's time: due times must mean the same on every host."""

import logging
import re
import threading
import time
from dataclasses import dataclass

from queues.clock_jump import ClockJump
from queues.errors import Conflict, QueueError, Unreachable
from queues.names import Layout
from queues.operations import Set
from queues.session import Session, SessionState, Stat, boottime_ns
from queues.transaction import commit

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
# Whoever is there leaves the time at each measurement: what was left longer ago tells nothing.
_LEFT_NS = _MEASURE_AGAIN_NS + _CONFIRMING_NS
_LEFT_TIME = re.compile(rb"[0-9]{1,15}")  # epoch milliseconds


@dataclass(frozen=True, slots=True)
class _Measurement:
    offset_ns: int  # from CLOCK_BOOTTIME to the time that is told
    ensemble_ns: int  # from CLOCK_BOOTTIME to the clock of the ensemble: another one after a jump
    until_ns: int  # by CLOCK_BOOTTIME
    connection: int  # over which it was made: behind another one may be a leader with another clock

    @property
    def ahead_ms(self) -> int:
        """By how much the ensemble's clock is ahead of the time that is told; 0 unless it has jumped."""
        return (self.ensemble_ns - self.offset_ns) // _NS_PER_MS


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


class EnsembleClock:
    """Reads the ensemble's clock from the mtime of a node that it has just written.

    The server took that time before its reply came, so the time told here is never ahead of the ensemble's,
    but for the drift since the last measurement: nothing runs before it is due. It is behind by the round
    trip at most.

    A clock that is suddenly another one (a failover to a server whose clock is wrong) is followed only when
    the host's own clock confirms it. Until then the time goes on by CLOCK_BOOTTIME from what it was. Who
    measures for the first time learns of it from ClockJump, or from the time that the others have left in
    the node.
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
        return (now + measurement.offset_ns) // _NS_PER_MS

    def confirmed_ms(self) -> int:
        """The time that has come by all clocks: for judgements that nobody can take back.

        The earliest of the time told, the ensemble's clock, and the host's own; raises as `now_ms`.
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
            left, left_ms = self._left(old)
            best = self._sample(left)
            for _ in range(_TRIES - 1):
                if best.round_trip_ns <= _SHORT_ROUND_TRIP_NS:
                    break
                best = min(best, self._sample(left), key=lambda sample: sample.round_trip_ns)
        except QueueError as error:
            if old is None:
                raise
            log.warning("the ensemble's time could not be measured again, the last one serves: %s", error)
            until = boottime_ns() + _TRY_AGAIN_NS
            return _Measurement(old.offset_ns, old.ensemble_ns, until, connection)
        offset = self._judged(old, best, left_ms)
        again = _MEASURE_AGAIN_NS if offset == best.offset_ns else _JUMPED_AGAIN_NS
        return _Measurement(offset, best.offset_ns, boottime_ns() + again, connection)

    # ------------------------------------------------------------------ jumps
    def _judged(self, old: _Measurement | None, sample: _Sample, left_ms: int) -> int:
        """The offset of the time that is told from now on."""
        if (offset := self._kept(old, sample, left_ms)) is not None:
            self._jump.keep((sample.offset_ns - offset) // _NS_PER_MS)
            return offset
        self._jump.end()
        self._tell_skew(sample)
        return sample.offset_ns

    def _kept(self, old: _Measurement | None, sample: _Sample, left_ms: int) -> int | None:
        """The offset that stays as it was, as the ensemble's clock has jumped; None when that is right."""
        off_ns = abs(sample.host_ahead_ns(sample.offset_ns))
        if old is None:
            if off_ns <= _JUMP_NS + sample.doubt_ns:  # nobody needs to be asked
                return None
            if found_ms := self._jump.found_ms():
                offset = sample.offset_ns - found_ms * _NS_PER_MS
            elif _is_ensemble_off(sample, left_ms):
                offset = sample.host_ns - sample.doubt_ns
            else:
                return None
        else:
            offset = old.offset_ns
        if abs(sample.offset_ns - offset) <= _JUMP_NS + sample.round_trip_ns:
            return None
        was_off_ns, confirming_ns = abs(sample.host_ahead_ns(offset)), _CONFIRMING_NS + sample.doubt_ns
        if old is None:  # two say so, against one
            return offset if was_off_ns <= confirming_ns and was_off_ns < off_ns else None
        return None if off_ns <= confirming_ns and off_ns < was_off_ns else offset

    # ------------------------------------------------------------------ measure
    def _left(self, old: _Measurement | None) -> tuple[bytes, int]:
        """What is written into the node, and the time that was left there, in epoch milliseconds.

        Who knows the time leaves it. A newcomer, who may be wrong, leaves what it has found.
        """
        if old is not None:
            now_ms = (boottime_ns() + old.offset_ns) // _NS_PER_MS
            return str(now_ms).encode(), now_ms
        found = self._session.get(self._path)
        if found is None:
            return b"", 0
        data, stat = found
        if _LEFT_TIME.fullmatch(data):
            return data, int(data)
        return b"", stat.modified  # nobody but newcomers has written there

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


def _is_ensemble_off(sample: _Sample, left_ms: int) -> bool:
    """Whether the time left by others and the clock of this host agree, and the ensemble's with neither."""
    left_ns = left_ms * _NS_PER_MS - boottime_ns()
    by_host, by_ensemble = sample.host_ns - left_ns, sample.offset_ns - left_ns
    # Nobody may have been there for a while: only what is far off is nobody's pause.
    return -_CONFIRMING_NS <= by_host <= _LEFT_NS and not -_CONFIRMING_NS <= by_ensemble <= 2 * _LEFT_NS
