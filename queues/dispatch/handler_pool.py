"""Handlers in a pool of threads: they get claimed items, and their actions are committed."""

import contextlib
import logging
import threading
import time
import traceback
from collections.abc import Callable, ItemsView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, assert_never

from queues.claims.claim import Claim, Transition
from queues.consumer.consumer import RESCAN_SECONDS, Consumer
from queues.dispatch.dispatcher import Dispatcher, InFlight, Prepared
from queues.dispatch.handler_threads import HandlerThreads
from queues.model.codec import timestamp
from queues.model.errors import TooLarge
from queues.model.names import DEFAULT_POOL
from queues.queue_set import QueueSet


@dataclass(frozen=True, slots=True)
class Done:
    """The item is finished: it is removed."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Handle the item again in the same queue after a delay, with a new payload if one is given."""

    payload: Mapping[str, Any] | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """Move to another queue; without a delay the item stays held if this consumer serves that queue too."""

    queue: str
    payload: Mapping[str, Any] | None = None
    delay_ms: int = 0
    pool: str | None = None


Action = Done | Requeue | Move
Handler = Callable[[Claim], Action]
"""Receives a claimed item; reads `id`, `queue`, `payload`; calls `check()` before irreversible effects."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Retries of an item whose handler raises: after a growing delay each, then the item moves to dead."""

    attempts: int = 5  # failures in one queue; the last moves it to dead
    delay_ms: int = 1_000
    factor: float = 2.0
    max_delay_ms: int = 60_000
    max_claims: int = 10  # claims without a step between them: such an item ends its workers

    def delay_after(self, failures: int) -> int:
        """Milliseconds to wait after so many failures."""
        return min(round(self.delay_ms * self.factor ** min(failures - 1, 64)), self.max_delay_ms)


log = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_MAX_TRACEBACK_CHARACTERS = 8_000
_MAX_REASON_CHARACTERS = 2_000
_SHORT_CHARACTERS = 100


class HandlerPool:
    """Consumes queues with a handler in `threads` threads, and holds at most `held` items at once.

    Outcomes of several handlers are committed together. Use as a context manager, or call `start` and
    `stop`.
    """

    def __init__(
        self,
        queue_set: QueueSet,
        queues: Sequence[str],
        handler: Handler,
        *,
        threads: int = 8,
        held: int | None = None,
        pools: Mapping[str, int] | Sequence[str] | None = (DEFAULT_POOL,),
        retries: Retries | None = None,
        rescan_seconds: float = RESCAN_SECONDS,
    ) -> None:
        self._set = queue_set
        self._queues = frozenset(queues)
        self._limit = 2 * threads if held is None else held
        self._stopping = threading.Event()
        self._in_flight = InFlight[Claim]()
        self._consumer = Consumer(
            queue_set,
            queues,
            hand_out=self._take,
            capacity=lambda _queue: self._limit,
            total=lambda: 0 if self._stopping.is_set() else self._limit - len(self._in_flight),
            pools=pools,
            rescan_seconds=rescan_seconds,
        )
        policy = _PoolPolicy(
            queue_set,
            self._queues,
            handler,
            Retries() if retries is None else retries,
            HandlerThreads("handler", threads=threads),
            stopping=self._stopping,
            freed=self._consumer.look_again,
        )
        self._dispatcher: Dispatcher[Claim, Action] = Dispatcher(
            policy, [policy.threads], draining=self._stopping, in_flight=self._in_flight
        )

    def start(self) -> Self:
        """Start to consume; raises Unreachable, and has started no thread then."""
        self._consumer.start()  # first: it needs ZooKeeper, and a failure must leave no thread behind
        self._dispatcher.start()
        return self

    def stop(self) -> None:
        """Claim nothing more, wait for running handlers, and release the items that none has begun."""
        self._stopping.set()
        self._consumer.stop()
        self._dispatcher.drain()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def in_flight(self) -> int:
        """The number of items held now."""
        return len(self._in_flight)

    def wait_empty(self, timeout: float) -> bool:
        """Wait until no pool has items in the queues; False when some remain after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while any(sum(pools.values()) for name, pools in self._counts() if name in self._queues):
            if time.monotonic() >= deadline:
                return False
            self._stopping.wait(_POLL_SECONDS)
        return True

    def _counts(self) -> ItemsView[str, Mapping[str, int]]:
        return self._set.look.counts().items()

    def _take(self, claim: Claim) -> None:
        self._dispatcher.take(claim)


class _PoolPolicy:
    """The decisions of a HandlerPool: one handler for all items, and retries after failures."""

    def __init__(
        self,
        queue_set: QueueSet,
        queues: frozenset[str],
        handler: Handler,
        retries: Retries,
        threads: HandlerThreads[Claim],
        *,
        stopping: threading.Event,
        freed: Callable[[], None],
    ) -> None:
        self._set = queue_set
        self._queues = queues
        self._handler = handler
        self._retries = retries
        self.threads = threads
        self._stopping = stopping
        self.freed = freed

    def claim_of(self, item: Claim) -> Claim:
        """The item itself."""
        return item

    def threads_for(self, item: Claim) -> HandlerThreads[Claim]:  # noqa: ARG002 - one kind of threads for all
        """The threads of the pool."""
        return self.threads

    def recall(self) -> tuple[Claim, ...]:
        """Nothing: no item waits outside its queue."""
        return ()

    def ended(self, item: Claim) -> None:
        """Nothing to do."""

    def handle(self, item: Claim) -> Action:
        """The action that the handler returns; raises what the handler raises."""
        if item.record.claims > self._retries.max_claims:
            raise _KillsWorkers(item.record.claims - 1)
        item.check()
        action = self._handler(item)
        if not isinstance(action, Action):  # user code is not always typed
            raise TypeError(f"the handler returned {action!r}, not Done(), Requeue(...) or Move(...)")
        return action

    def prepare(self, item: Claim, outcome: Action) -> Prepared:
        """The step of an action."""
        return Prepared(self._step(item, outcome))

    def prepare_release(self, item: Claim) -> Prepared:
        """A step, so that claims without a result are not counted."""
        record = item.record
        return Prepared(item.transition(failures=record.failures, error=record.error, release=True))

    def prepare_failure(self, item: Claim, error: Exception) -> Prepared:
        """The step to a later retry, or to dead."""
        return Prepared(self._failure(item, error))

    def _step(self, claim: Claim, action: Action) -> Transition:
        match action:
            case Done():
                return claim.removal()
            case Requeue(payload, delay_ms):
                return claim.transition(payload=payload, due=self._due(delay_ms), release=True)
            case Move(queue_, payload, delay_ms, pool):
                here = queue_ in self._queues and pool in {None, claim.record.pool}
                stays = here and not delay_ms and not self._stopping.is_set()
                due = self._due(delay_ms) if delay_ms else None
                return claim.transition(payload=payload, queue=queue_, pool=pool, due=due, release=not stays)
            case _:
                assert_never(action)

    def _failure(self, claim: Claim, error: Exception) -> Transition:
        failures = claim.record.failures + 1
        is_last = failures >= self._retries.attempts or isinstance(error, _KillsWorkers)
        reason = _plain(f"{type(error).__name__}: {error}")[:_MAX_REASON_CHARACTERS]
        trace = _plain("".join(traceback.format_exception(error)))[-_MAX_TRACEBACK_CHARACTERS:]
        queue_, due = claim.queue, None
        if is_last:
            log.error("%s is moved from %s to dead: %s", claim.id, claim.queue, reason)
            queue_ = self._set.root.dead
        else:
            delay_ms = self._retries.delay_after(failures)
            log.warning("%s failed in %s, again in %d ms: %s", claim.id, claim.queue, delay_ms, reason)
            due = self._due(delay_ms)
        note = {"reason": reason, "queue": claim.queue, "since": timestamp()}
        # An item may be so large that the full note does not fit into the record.
        for kept in ({**note, "traceback": trace}, note, {**note, "reason": reason[:_SHORT_CHARACTERS]}):
            with contextlib.suppress(TooLarge):
                return claim.transition(queue=queue_, due=due, failures=failures, error=kept, release=True)
        return claim.transition(queue=queue_, due=due, failures=failures, release=True)

    def _due(self, delay_ms: int) -> int:
        return self._set.clock.now_ms() + delay_ms


def _plain(text: str) -> str:
    # A message may hold lone surrogates, which no record can store.
    return text.encode("utf-8", "backslashreplace").decode()


class _KillsWorkers(Exception):
    """The item was claimed repeatedly, and each of its workers ended before the handler did."""

    def __init__(self, claims: int) -> None:
        super().__init__(f"it was claimed {claims} times and no handler finished: it may end its worker")
