"""The loop that finds due, free items: watches are hints, the rescan is authoritative."""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.consumer.heartbeat import Heartbeat
from queues.consumer.pool_views import PoolCapacity, PoolViews
from queues.model.errors import CorruptRecord, ItemNotFound, NotClaimed, QueueError, Refusal
from queues.model.names import DEFAULT_POOL
from queues.queue_set import QueueSet
from queues.session import SessionState

log = logging.getLogger(__name__)

RESCAN_SECONDS = 5.0  # longest delay by a lost watch; short against a job, long against a request
_RETRY_SECONDS = 1.0
_FULL_SECONDS = 0.2  # until a pool at its cap is tried again
_BATCH = 200  # claims at once: two multis of a hundred


class Consumer:
    """Claims due items of the given queues, earlier queues first, and hands each to `hand_out`.

    `capacity(queue)` returns how many more items of a queue may be taken now, `total` how many of all queues
    together; `hand_out` must not block. An item with a request to stop is taken from any queue, due or not,
    regardless of capacity; `on_stop` is called for such a request if this consumer has handed out the item.
    `accepts(id)` selects the items that are served here at all, `declines(queue, id)` those that are left
    for now; it is not called for an item with a request to stop. `pools`, `pool_capacity`: see PoolViews.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        queues: Sequence[str],
        *,
        hand_out: Callable[[Claim], None],
        capacity: Callable[[str], int],
        total: Callable[[], int] = lambda: _BATCH,
        pools: Mapping[str, int] | Sequence[str] | None = (DEFAULT_POOL,),
        accepts: Callable[[str], bool] = lambda _id: True,
        declines: Callable[[str, str], bool] = lambda _queue, _id: False,
        pool_capacity: PoolCapacity = lambda _queue, _pool: None,
        on_stop: Callable[[str], None] = lambda _id: None,
        rescan_seconds: float = RESCAN_SECONDS,
    ) -> None:
        self._set = queue_set
        self._queues = tuple(queue_set.root.check_queue(queue) for queue in queues)
        self._hand_out = hand_out
        self._capacity = capacity
        self._total = total
        self._rescan_seconds = rescan_seconds
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._rescan_at = 0.0
        self._rearm = False  # the connection broke, and all watches are lost
        self._views = PoolViews(
            queue_set.root,
            queue_set.claimer,
            self._queues,
            pools,
            accepts=accepts,
            declines=declines,
            pool_capacity=pool_capacity,
            on_stop=on_stop,
            wake=self._wake.set,
        )
        self._thread = threading.Thread(target=self._loop, name="consumer", daemon=True)
        self._heartbeat = Heartbeat(self._thread)
        self._failing = "it has not scanned yet"  # why the last scan failed

    def start(self) -> None:
        """Start the loop in its own thread. Raises Unreachable, and may then be called again."""
        self._views.start()
        self._set.session.on_change(self._on_session_change)
        self._set.claimer.on_return(self._on_return)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Claim nothing more; False if the loop has not ended after `timeout` seconds.

        In that case it waits for ZooKeeper, and may still hand out the items that it is claiming.
        """
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def look_again(self) -> None:
        """Scan now, because there is free capacity again."""
        self._wake.set()

    def trouble(self) -> str:
        """Why the loop makes no progress; empty if it does, or was asked to stop."""
        return "" if self._stopping.is_set() else self._heartbeat.trouble()

    def failing(self) -> str:
        """Why it claims nothing: the error of the last scan, or that there was no scan; empty if it scans."""
        return self._failing

    def _on_session_change(self) -> None:
        self._rearm = True
        self._wake.set()

    def _on_return(self, queue: str, pool: str) -> None:
        # Its token was taken out of the backlog and has not changed: no watch fires.
        view = self._views.get(pool)
        if view is not None and queue in self._queues:
            view.backlog_of(queue).folder.changed = True
            self._wake.set()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            pause = _RETRY_SECONDS
            self._heartbeat.begin()
            try:
                if self._set.session.state is SessionState.CONNECTED:
                    pause = self._scan()
                    self._failing = ""
            except QueueError as error:
                self._failing = str(error)
                log.warning("scan failed, trying again in %.0f s: %s", pause, error)
            except Exception as error:  # a bug in a scan must not stop the queue
                self._failing = f"{type(error).__name__}: {error}"
                log.exception("scan failed, trying again in %.0f s", pause)
            self._heartbeat.rest()
            self._wake.wait(pause)
        self._views.stop()

    def _scan(self) -> float:
        """Hand out all available items; returns the seconds until something may be due."""
        while not self._stopping.is_set():
            self._look()  # in each round: pools are added, and watches get lost, under load too
            candidates = self._views.pick(self._capacities(), min(self._total(), _BATCH))
            if not candidates:
                break
            self._claim(candidates)
        total = self._total()
        capacities = {queue: min(total, free) for queue, free in self._capacities().items()}
        return max(0.0, min(self._rescan_at - time.monotonic(), self._views.pause(capacities)))

    def _look(self) -> None:
        """Read changes, and rescan if it is due."""
        if self._rearm:
            self._rearm, self._rescan_at = False, 0.0
            self._views.rearm()
        if time.monotonic() >= self._rescan_at:
            # Jitter, so that consumers started together do not rescan together for ever.
            jitter = random.uniform(0.8, 1.2)  # noqa: S311 - not for security
            self._rescan_at = time.monotonic() + self._rescan_seconds * jitter
            self._views.rescan()
        self._views.refresh()

    def _capacities(self) -> dict[str, int]:
        return {queue: self._capacity(queue) for queue in self._queues}

    # ------------------------------------------------------------------ claim
    def _claim(self, candidates: Sequence[Candidate]) -> None:
        """Claim and hand out."""
        try:
            outcomes = self._set.claimer.claim(candidates)
        except BaseException:
            for candidate in candidates:  # they left the backlog: list it again
                self._views[candidate.pool].backlog_of(candidate.queue).folder.changed = True
            raise
        claims = [outcome for outcome in outcomes if isinstance(outcome, Claim)]
        for claim in claims:
            try:
                self._hand_out(claim)
            except Exception:  # one failure must not block the others
                log.exception("%s could not be handed out", claim.id)
                claim.abandon()
        self._invalidate(candidates, outcomes)
        trouble: QueueError | None = None
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            if isinstance(outcome, QueueError) and not self._handle_refusal(candidate, outcome):
                trouble = outcome
        if trouble is not None:
            raise trouble
        self._views.reconsider(
            {
                candidate.pool
                for candidate, outcome in zip(candidates, outcomes, strict=True)
                if isinstance(outcome, NotClaimed) and outcome.reason is Refusal.POOL_CHANGED
            }
        )
        if not claims:
            for pool in {candidate.pool for candidate in candidates}:
                self._views[pool].take_over_at = time.monotonic() + random.uniform(0.05, 0.2)  # noqa: S311 - not for security

    def _invalidate(self, candidates: Sequence[Candidate], outcomes: Sequence[Claim | QueueError]) -> None:
        """Invalidate backlogs under contention: beyond one miss in ten a new listing is cheaper."""
        missed = [
            candidate
            for candidate, outcome in zip(candidates, outcomes, strict=True)
            if isinstance(outcome, NotClaimed) and outcome.reason in {Refusal.MOVED_ON, Refusal.HELD}
        ]
        if 10 * len(missed) > len(candidates):
            for pool, queue in {(candidate.pool, candidate.queue) for candidate in missed}:
                self._views[pool].backlog_of(queue).invalidate()

    def _handle_refusal(self, candidate: Candidate, error: QueueError) -> bool:
        """Handle one refusal; False if ZooKeeper did not answer."""
        view = self._views[candidate.pool]
        backlog, name = view.backlog_of(candidate.queue), candidate.token.name
        match error:
            case NotClaimed(reason=Refusal.MOVED_ON):
                pass
            case NotClaimed(reason=Refusal.POOL_CHANGED):
                backlog.put_back(name)
            case NotClaimed(reason=Refusal.NO_STOP):
                backlog.put_back(name)
                view.forget_stops()
            case NotClaimed(reason=Refusal.FULL):
                backlog.put_back(name)
                view.blocked_until = time.monotonic() + _FULL_SECONDS
            case NotClaimed():
                backlog.defer(name)
            case CorruptRecord() | ItemNotFound():
                if self._set.move_to_dead(candidate.queue, candidate.pool, candidate.token, error):
                    log.warning(
                        "%s moved from %s to %s: %s",
                        candidate.token.id,
                        candidate.queue,
                        self._set.root.dead,
                        error,
                    )
            case _:
                backlog.put_back(name)
                return False
        return True
