"""Handlers in a pool of threads: they get items, and what they say becomes of them is committed."""

import contextlib
import logging
import queue
import threading
import time
import traceback
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import Self, assert_never

from queues.actions import Action, Done, Handler, Move, Requeue, Retries
from queues.claim import Claim, Transition
from queues.consumer import RESCAN_SECONDS, Consumer
from queues.documents import timestamp
from queues.errors import ClaimLost, TooLarge
from queues.names import DEFAULT_POOL
from queues.queue import QueueSet
from queues.settler import Settler
from queues.step import run_transitions

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_MAX_TRACEBACK_CHARACTERS = 8_000
_MAX_REASON_CHARACTERS = 2_000
_SHORT_CHARACTERS = 100


class HandlerPool:
    """Consumes queues with a handler in `threads` threads; at most `held` items are in hand at once.

    What handlers ask for is committed together where it comes together. Use as a context manager, or call
    `start` and `stop`.
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
        self._handler = handler
        self._retries = Retries() if retries is None else retries
        self._limit = 2 * threads if held is None else held
        self._guard = threading.Lock()
        self._in_hand = 0
        self._stopping = threading.Event()
        self._inbox: queue.SimpleQueue[Claim | None] = queue.SimpleQueue()
        self._settler: Settler[tuple[Claim, Action | Exception]] = Settler(self._commit)
        self._threads = [
            threading.Thread(target=self._work, name=f"handler-{number}", daemon=True)
            for number in range(threads)
        ]
        self._consumer = Consumer(
            queue_set,
            queues,
            hand_out=self._take,
            room=lambda _queue: self._limit,
            total=lambda: 0 if self._stopping.is_set() else self._limit - self._in_hand,
            pools=pools,
            rescan_seconds=rescan_seconds,
        )

    def start(self) -> Self:
        """Begin to consume; raises Unreachable, and has begun nothing then."""
        self._consumer.start()  # it asks ZooKeeper: first, so that a failure leaves no thread behind
        self._settler.start()
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Claim nothing more, let running handlers come to their end, let go of what none has begun."""
        self._stopping.set()
        self._consumer.stop()
        for _ in self._threads:
            self._inbox.put(None)
        for thread in self._threads:
            thread.join()
        self._settler.stop()
        left = []  # what was moving on while the handlers came to their end
        with contextlib.suppress(queue.Empty):
            while True:
                left.append(self._inbox.get_nowait())
        self._commit([(claim, _LetGo()) for claim in left if claim is not None])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def in_hand(self) -> int:
        """How many items are held now."""
        return self._in_hand

    def wait_empty(self, timeout: float) -> bool:
        """Wait until no item stands in the queues, in any pool; False when some do after `timeout`."""
        deadline = time.monotonic() + timeout
        while any(sum(pools.values()) for name, pools in self._counts() if name in self._queues):
            if time.monotonic() >= deadline:
                return False
            self._stopping.wait(_POLL_SECONDS)
        return True

    def _counts(self) -> ItemsView[str, Mapping[str, int]]:
        return self._set.look.counts().items()

    # ------------------------------------------------------------------ handlers
    def _take(self, claim: Claim) -> None:
        with self._guard:
            self._in_hand += 1
        self._inbox.put(claim)

    def _work(self) -> None:
        while (claim := self._inbox.get()) is not None:
            if self._stopping.is_set():
                self._settler.put((claim, _LetGo()))
                continue
            self._settler.put((claim, self._handle(claim)))

    def _handle(self, claim: Claim) -> Action | Exception:
        if claim.record.claims > self._retries.max_claims:
            return _KillsWorkers(claim.record.claims - 1)
        try:
            claim.check()
            action = self._handler(claim)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is counted against the item
            return error
        if not isinstance(action, Action):
            return TypeError(f"the handler returned {action!r}, not DONE, Requeue or Move")  # type: ignore[unreachable] # user code is not always typed
        return action

    # ------------------------------------------------------------------ outcomes
    def _commit(self, outcomes: Sequence[tuple[Claim, Action | Exception]]) -> None:
        by_session = sorted(outcomes, key=lambda outcome: id(outcome[0].hold.session))
        for step, refused in run_transitions(self._steps(by_session)):
            if refused is not None:
                log.warning("%s was not brought on: %s", step.claim.id, refused)
            if refused is None and step.claim.held:
                self._inbox.put(step.claim)  # moved on into a queue that is taken here: held all the way
            else:
                self._end(step.claim)
        self._consumer.look_again()  # once for all: it claims as many together

    def _steps(self, outcomes: Sequence[tuple[Claim, Action | Exception]]) -> Iterator[Transition]:
        for claim, outcome in outcomes:
            try:
                step = self._step_or_failure(claim, outcome)
            except ClaimLost as error:
                log.info("%s", error)
                self._end(claim)
            except Exception:  # not even that it failed can be told: who claims it next may have more luck
                log.exception("%s is let go", claim.id)
                self._end(claim)
            else:
                yield step

    def _step_or_failure(self, claim: Claim, outcome: Action | Exception) -> Transition:
        try:
            return self._step(claim, outcome)
        except ClaimLost:
            raise
        except Exception as error:  # noqa: BLE001 - what the handler asked for cannot be done: it failed
            return self._failure(claim, error)

    def _end(self, claim: Claim) -> None:
        if claim.held:
            claim.abandon()
        with self._guard:
            self._in_hand -= 1

    def _step(self, claim: Claim, outcome: Action | Exception) -> Transition:
        match outcome:
            case Done():
                return claim.removal()
            case Requeue(payload, delay_ms):
                return claim.transition(payload=payload, due=self._due(delay_ms), release=True)
            case Move(queue_, payload, delay_ms, pool):
                here = queue_ in self._queues and pool in {None, claim.record.pool}
                stays = here and not delay_ms and not self._stopping.is_set()
                due = self._due(delay_ms) if delay_ms else None
                return claim.transition(payload=payload, queue=queue_, pool=pool, due=due, release=not stays)
            case ClaimLost():
                raise outcome
            case _LetGo():
                record = claim.record  # a step, so that claims which came to nothing are not counted
                return claim.transition(failures=record.failures, error=record.error, release=True)
            case Exception():
                return self._failure(claim, outcome)
            case _:
                assert_never(outcome)

    def _failure(self, claim: Claim, error: Exception) -> Transition:
        failures = claim.record.failures + 1
        is_last = failures >= self._retries.attempts or isinstance(error, _KillsWorkers)
        reason = _plain(f"{type(error).__name__}: {error}")[:_MAX_REASON_CHARACTERS]
        trace = _plain("".join(traceback.format_exception(error)))[-_MAX_TRACEBACK_CHARACTERS:]
        queue_, due = claim.queue, None
        if is_last:
            log.error("%s is brought from %s to dead: %s", claim.id, claim.queue, reason)
            queue_ = self._set.root.dead
        else:
            delay_ms = self._retries.delay_after(failures)
            log.warning("%s failed in %s, again in %d ms: %s", claim.id, claim.queue, delay_ms, reason)
            due = self._due(delay_ms)
        note = {"reason": reason, "queue": claim.queue, "since": timestamp()}
        # An item may be so large that no room is left for what happened to it.
        for told in ({**note, "traceback": trace}, note, {**note, "reason": reason[:_SHORT_CHARACTERS]}):
            with contextlib.suppress(TooLarge):
                return claim.transition(queue=queue_, due=due, failures=failures, error=told, release=True)
        return claim.transition(queue=queue_, due=due, failures=failures, release=True)

    def _due(self, delay_ms: int) -> int:
        return self._set.clock.now_ms() + delay_ms


def _plain(text: str) -> str:
    # A message may hold what is no Unicode, and then stands in no record.
    return text.encode("utf-8", "backslashreplace").decode()


class _LetGo(Exception):
    """The item goes back as it was."""


class _KillsWorkers(Exception):
    """The item was claimed again and again, and nobody who did lived to say what became of it."""

    def __init__(self, claims: int) -> None:
        super().__init__(
            f"it was claimed {claims} times and no handler came to an end: it may kill its worker"
        )
