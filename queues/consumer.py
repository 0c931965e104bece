"""The loop that finds due items nobody holds: watches are the hint, the rescan is the truth."""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from queues.allowance import Allowance
from queues.claim import Claim
from queues.claimer import Candidate
from queues.errors import CorruptRecord, ItemNotFound, NotClaimed, QueueError, Refusal
from queues.folder import Folder
from queues.names import DEFAULT_POOL, LOW
from queues.pool_view import STEAL_AFTER_MS, PoolView
from queues.presence import Presence
from queues.queue import QueueSet
from queues.rotation import Rotation
from queues.session import SessionState

log = logging.getLogger(__name__)

RESCAN_SECONDS = 5.0  # how long a lost watch can hide an item; short against a job, long against a request
_RETRY_SECONDS = 1.0
_FULL_SECONDS = 0.2  # until a pool at its cap is looked at again
# Beyond what is needed, so much of the time goes into listings: something with an earlier due time may have
# come in between. It is saved up, so that the order is strict unless there is much to do.
_EXTRA_SHARE = 0.05
_EXTRA_BURST_SECONDS = 0.05
_BATCH = 200  # claims at once: two multis of a hundred


class Consumer:
    """Claims due items of the given queues, earlier queues first, and hands each to `hand_out`.

    `room(queue)` says how many more items of a queue may be taken now, `total` how many of all queues
    together; `hand_out` must not block. An item
    that somebody asked to stop is taken from any queue, due or not, room or not. `pools`: names, or names
    with weights that go before those of the pools themselves, or None for all pools that there are.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        queues: Sequence[str],
        *,
        hand_out: Callable[[Claim], None],
        room: Callable[[str], int],
        total: Callable[[], int] = lambda: _BATCH,
        pools: Mapping[str, int] | Sequence[str] | None = (DEFAULT_POOL,),
        accepts: Callable[[str], bool] = lambda _id: True,
        rescan_seconds: float = RESCAN_SECONDS,
    ) -> None:
        self._set = queue_set
        self._queues = tuple(queue_set.root.check_queue(queue) for queue in queues)
        self._pools = None if pools is None else tuple(pools)
        self._weights = dict(pools) if isinstance(pools, Mapping) else {}
        self._hand_out = hand_out
        self._room = room
        self._total = total
        self._accepts = accepts
        self._rescan_seconds = rescan_seconds
        self._presence = Presence(queue_set.root, queues, lambda: list(self._views))
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._rescan_at = 0.0
        self._extra = Allowance(_EXTRA_SHARE, _EXTRA_BURST_SECONDS)
        self._rearm = False  # the connection was away, and all watches with it
        self._views: dict[str, PoolView] = {}
        self._pool_names = Folder(queue_set.session, queue_set.layout.pools, self._wake.set)
        self._rotation: Rotation[Candidate] = Rotation()
        self._thread = threading.Thread(target=self._loop, name="consumer", daemon=True)

    def start(self) -> None:
        """Start the loop in its own thread."""
        self._set.session.on_change(self._on_session_change)
        self._set.claimer.on_return(self._on_return)
        for pool in self._pools or ():
            self._set.ensure_pool(pool)
        self._set.session.ensure_path(self._set.layout.pools)
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more; returns when the loop has ended."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def look_again(self) -> None:
        """Scan now: room has become free."""
        self._wake.set()

    def _on_session_change(self) -> None:
        self._rearm = True
        self._wake.set()

    def _on_return(self, queue: str, pool: str) -> None:
        # Its token was taken out of the backlog and has not changed: no watch will tell.
        view = self._views.get(pool)
        if view is not None and queue in self._queues:
            view.backlog_of(queue).folder.changed = True
            self._wake.set()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            pause = _RETRY_SECONDS
            try:
                if self._set.session.state is SessionState.CONNECTED:
                    pause = self._scan()
            except QueueError as error:
                log.warning("scan failed, trying again in %.0f s: %s", pause, error)
            except Exception:  # a bug in a scan must not silence the queue: said aloud, then tried again
                log.exception("scan failed, trying again in %.0f s", pause)
            self._wake.wait(pause)
        self._presence.withdraw()

    def _scan(self) -> float:
        """Hand out all that can be; returns the seconds until something may be due."""
        if self._rearm:
            self._rearm = False
            self._pool_names.changed, self._rescan_at = True, 0.0
            for view in self._views.values():
                view.rearm()
        if time.monotonic() >= self._rescan_at:
            self._rescan()
        if self._pool_names.refresh():
            self._arrange()
        self._presence.announce()
        while not self._stopping.is_set():
            candidates = self._pick()
            if not candidates or not self._claim(candidates):
                break
        return self._pause()

    # ------------------------------------------------------------------ rescan
    def _rescan(self) -> None:
        """Look at all folders, whatever the watches have told: in one request for hundreds of them."""
        # Jitter, so that consumers started together do not rescan together for ever.
        self._rescan_at = time.monotonic() + self._rescan_seconds * random.uniform(0.8, 1.2)  # noqa: S311 - not for security
        session, views = self._set.session, list(self._views.values())
        watched = [view.watched() for view in views]
        found = session.get_many([self._pool_names.path, *(path for paths in watched for path in paths)])
        self._pool_names.notice(None if found[0] is None else found[0][1])
        start = 1
        for view, paths in zip(views, watched, strict=True):
            view.notice(found[start : start + len(paths)])
            start += len(paths)
            view.refresh_locks()
            view.bring_back()
            capped = self._set.pools.limits(view.pool, self._wake.set)[0].cap > 0
            if (view.locked() or capped) and self._set.release_strays(view.pool, view.locked()):
                view.rearm()

    def _arrange(self) -> None:
        """Serve the pools that there are now, and their low lanes."""
        there = set(self._pool_names.names)
        mains = [pool for pool in there if not pool.endswith(LOW)] if self._pools is None else self._pools
        pools = [name for main in mains for name in (main, main + LOW) if name == main or name in there]
        for pool in pools:
            if pool not in self._views:
                self._set.ensure_pool(pool)
                self._views[pool] = PoolView(
                    self._set.root,
                    self._set.claimer,
                    pool,
                    self._queues,
                    member=self._presence.name,
                    accepts=self._accepts,
                    wake=self._wake.set,
                )
        self._views = {pool: view for pool, view in self._views.items() if pool in pools}
        self._rotation.keep(set(mains))

    # ------------------------------------------------------------------ pick
    def _pick(self) -> list[Candidate]:
        root = self._set.root
        now_ms = root.clock.now_ms()
        now = f"{now_ms:011x}"
        room = {queue: self._room(queue) for queue in self._queues}
        total = min(self._total(), _BATCH)
        has_room = total > 0 and any(left > 0 for left in room.values())
        candidates: list[Candidate] = []
        serving: dict[str, PoolView] = {}
        for pool, view in tuple(self._views.items()):
            self._refresh(view, now, has_room=has_room)
            candidates += view.take_stopped()
            if not self._is_paused(pool) and time.monotonic() >= view.blocked_until:
                serving[pool] = view
            if not pool.endswith(LOW):
                limits = root.pools.limits(pool, self._wake.set)[0]
                self._rotation.arrange(pool, self._weights.get(pool, limits.weight), limits.low_share)

        def take(pool: str, low: bool) -> Candidate | None:
            view = serving.get(pool + LOW if low else pool)
            candidate = None if view is None else view.take(now, room)
            if candidate is not None:
                room[candidate.queue] -= 1
            return candidate

        if has_room:
            candidates += self._rotation.collect(take, total)
            if not candidates:
                room = {queue: min(left, total) for queue, left in room.items()}
                candidates = self._steal(serving, f"{now_ms - STEAL_AFTER_MS:011x}", room)
        return candidates

    def _refresh(self, view: PoolView, now: str, *, has_room: bool) -> None:
        started = time.monotonic()
        if view.refresh(now, has_room=has_room, eager=self._extra.is_left()):
            self._extra.spend(time.monotonic() - started)
            self._views[view.pool] = self._views.pop(view.pool)  # others are first next time

    def _steal(
        self, serving: Mapping[str, PoolView], due_before: str, room: dict[str, int]
    ) -> list[Candidate]:
        views = [view for view in serving.values() if time.monotonic() >= view.steal_at]
        random.shuffle(views)
        for view in views:
            if stolen := view.steal(due_before, room):
                return stolen
        return []

    # ------------------------------------------------------------------ claim
    def _claim(self, candidates: Sequence[Candidate]) -> bool:
        """Claim and hand out; False when it is better to pause before the next round."""
        try:
            outcomes = self._set.claimer.claim(candidates)
        except BaseException:
            for candidate in candidates:  # they were taken out of the backlog: list it again
                self._views[candidate.pool].backlog_of(candidate.queue).folder.changed = True
            raise
        claims = [outcome for outcome in outcomes if isinstance(outcome, Claim)]
        for claim in claims:
            try:
                self._hand_out(claim)
            except Exception:  # the others are to be handed out all the same
                log.exception("%s could not be handed out", claim.id)
                claim.abandon()
        self._doubt(candidates, outcomes)
        trouble: QueueError | None = None
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            if isinstance(outcome, QueueError) and not self._explain(candidate, outcome):
                trouble = outcome
        if trouble is not None:
            raise trouble
        if not claims:
            for pool in {candidate.pool for candidate in candidates}:
                self._views[pool].steal_at = time.monotonic() + random.uniform(0.05, 0.2)  # noqa: S311 - not for security
        return True

    def _doubt(self, candidates: Sequence[Candidate], outcomes: Sequence[Claim | QueueError]) -> None:
        """Others are at work where we are: beyond one miss in ten a new listing is cheaper."""
        missed = [
            candidate
            for candidate, outcome in zip(candidates, outcomes, strict=True)
            if isinstance(outcome, NotClaimed) and outcome.reason in {Refusal.MOVED_ON, Refusal.HELD}
        ]
        if 10 * len(missed) > len(candidates):
            for pool, queue in {(candidate.pool, candidate.queue) for candidate in missed}:
                self._views[pool].backlog_of(queue).doubt()

    def _explain(self, candidate: Candidate, error: QueueError) -> bool:
        """Do what follows from a refusal; False when ZooKeeper does not answer."""
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
                backlog.put_aside(name)
            case CorruptRecord() | ItemNotFound():
                if self._set.bury(candidate.queue, candidate.pool, candidate.token, error):
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

    # ------------------------------------------------------------------ pause
    def _pause(self) -> float:
        """Seconds until something may be to do, if no watch fires before."""
        now_ms = self._set.clock.now_ms()
        pauses = [self._rescan_at - time.monotonic()]
        total = self._total()
        room = {queue: min(total, self._room(queue)) for queue in self._queues}
        for pool, view in self._views.items():
            pauses.append(view.rest_left(has_room=any(left > 0 for left in room.values())))
            if not self._is_paused(pool):  # a change of its limits wakes us
                pauses.append(view.wait(now_ms, room))
        return max(0.0, min(pauses))

    def _is_paused(self, pool: str) -> bool:
        # Who pauses a pool means its low lane too.
        pools = self._set.pools
        return any(pools.limits(name, self._wake.set)[0].paused for name in {pool, pool.removesuffix(LOW)})
