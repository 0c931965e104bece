"""One dispatcher: claimed items go to handler threads, and the outcomes are committed in batches."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from queues.claims.claim import Claim, Transition
from queues.claims.transitions import run_transitions
from queues.dispatch.batcher import Batcher
from queues.dispatch.handler_threads import HandlerThreads
from queues.model.errors import ClaimLost, Conflict, QueueError

log = logging.getLogger(__name__)

_MAX_CONFLICTS = 20  # in a row, of one item: each is another writer that was faster, so many are a bug
_DRAIN_LOOK_SECONDS = 0.02

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class InFlight(Generic[Item]):
    """The items that a dispatcher holds. Thread-safe."""

    def __init__(self) -> None:
        self._items: set[Item] = set()

    def add(self, item: Item) -> None:
        """The item is held; also called after each commit that leaves it held."""
        self._items.add(item)

    def discard(self, item: Item) -> None:
        """The item is not held any more; a second call does nothing."""
        self._items.discard(item)

    def __len__(self) -> int:
        return len(self._items)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A step to commit, and what to call once it is committed."""

    step: Transition
    on_commit: Callable[[], None] = lambda: None


class DispatchPolicy(Protocol[Item, Outcome]):
    """The decisions of a dispatcher's owner; called by the threads of the dispatcher."""

    def claim_of(self, item: Item) -> Claim:
        """The claim of an item."""

    def threads_for(self, item: Item) -> HandlerThreads[Item]:
        """The threads that handle the item next."""

    def handle(self, item: Item) -> Outcome | None:
        """The outcome of the item's handler; None when it waits and `put` is called for it later."""

    def prepare(self, item: Item, outcome: Outcome) -> Prepared:
        """The step of an outcome; when this raises, the error counts as the handler's."""

    def prepare_failure(self, item: Item, error: Exception) -> Prepared:
        """The step that records an error of the handler: again after a delay, or dead."""

    def prepare_release(self, item: Item) -> Prepared:
        """The step that releases an item as it is."""

    def recall(self) -> Iterable[Item]:
        """Take out and return the items that wait; called while the dispatcher drains."""

    def ended(self, item: Item) -> None:
        """The item is about to leave the dispatcher."""

    def freed(self) -> None:
        """There is capacity for more items."""


class _Release(Enum):
    RELEASE = "release"


class Dispatcher(Generic[Item, Outcome]):
    """Brings each claimed item from handler to commit, and to its next handler while it stays held.

    `draining`: once it is set, no handler begins, and items are released. `abandons_on`: errors of a
    handler or of a commit that say nothing about the item; its claim is abandoned, and another consumer may
    succeed. Every other error of a handler counts as a failure of the item.
    """

    def __init__(
        self,
        policy: DispatchPolicy[Item, Outcome],
        threads: Sequence[HandlerThreads[Item]],
        *,
        draining: threading.Event,
        in_flight: InFlight[Item],
        abandons_on: tuple[type[Exception], ...] = (),
    ) -> None:
        self._policy = policy
        self._threads = threads
        self._draining = draining
        self._in_flight = in_flight
        self._abandons_on: tuple[type[Exception], ...] = (ClaimLost, *abandons_on)
        self._conflicts: Counter[Item] = Counter()
        self._has_ended = False  # an item, since `freed` was called last
        self._batcher: Batcher[tuple[Item, Outcome | Exception | _Release]] = Batcher(self._commit)

    def start(self) -> None:
        """Start the threads."""
        self._batcher.start()
        for threads in self._threads:
            threads.start(self._work)

    def take(self, item: Item) -> None:
        """Dispatch a newly claimed item."""
        self._in_flight.add(item)
        self.put(item)

    def put(self, item: Item) -> None:
        """Bring an item in flight to its next handler."""
        if self._draining.is_set():
            self._batcher.put((item, _Release.RELEASE))
        else:
            self._policy.threads_for(item).put(item)

    def drain(self, timeout: float | None = None) -> bool:
        """Release all items and end the threads; False when items are still in flight after `timeout` s.

        Handlers that run come to their end, and their outcomes are committed.
        """
        self._draining.set()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            # Repeated: a handler that had begun before may still let its item wait.
            for item in self._policy.recall():
                self._batcher.put((item, _Release.RELEASE))
            if not len(self._in_flight) or (deadline is not None and time.monotonic() >= deadline):
                break
            time.sleep(_DRAIN_LOOK_SECONDS)
        for threads in self._threads:
            threads.stop()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        is_drained = self._batcher.stop(left) and not len(self._in_flight)
        if is_drained:
            for threads in self._threads:
                threads.join()
        return is_drained

    @property
    def checks(self) -> Mapping[str, Callable[[], str]]:
        """One check per part; each returns why the part makes no progress, empty while it does."""
        handlers = {f"{threads.name}s": threads.trouble for threads in self._threads}
        return {**handlers, "commits": self._batcher.trouble}

    # ------------------------------------------------------------------ handlers
    def _work(self, item: Item) -> None:
        try:
            self._handle(item)
        except BaseException:  # SystemExit too: it would end the thread without a log line
            log.exception("%s is abandoned", self._policy.claim_of(item).id)
            self._end(item)
        self._report_freed()

    def _handle(self, item: Item) -> None:
        if self._draining.is_set():
            self._batcher.put((item, _Release.RELEASE))
            return
        try:
            outcome = self._policy.handle(item)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises counts against the item
            if not self._is_abandoned(item, error):
                self._batcher.put((item, error))
        else:
            if outcome is not None:
                self._batcher.put((item, outcome))

    def _is_abandoned(self, item: Item, error: Exception) -> bool:
        if isinstance(error, ClaimLost):
            log.log(_level(self._policy.claim_of(item)), "%s", error)
        elif isinstance(error, self._abandons_on):
            log.warning("%s is abandoned: %s", self._policy.claim_of(item).id, error)
        else:
            return False
        self._end(item)
        return True

    # ------------------------------------------------------------------ commits
    def _commit(self, outcomes: Sequence[tuple[Item, Outcome | Exception | _Release]]) -> None:
        # The steps of one session follow each other, as `run_transitions` requires.
        by_session = sorted(outcomes, key=lambda outcome: id(self._policy.claim_of(outcome[0]).hold.session))
        prepared: dict[Transition, tuple[Item, Prepared]] = {}
        left = {item for item, _ in outcomes}
        try:
            for step, refused in run_transitions(self._steps(by_session, prepared)):
                item, change = prepared[step]
                left.discard(item)
                self._after_commit(item, change, refused)
        except BaseException:
            for item in left:  # else they stay held, and no thread handles them
                self._end(item)
            raise
        finally:
            self._report_freed()  # once per batch: the consumer then claims as many together

    def _steps(
        self,
        outcomes: Iterable[tuple[Item, Outcome | Exception | _Release]],
        prepared: dict[Transition, tuple[Item, Prepared]],
    ) -> Iterator[Transition]:
        for item, outcome in outcomes:
            change = self._prepare(item, outcome)
            if change is not None:
                prepared[change.step] = item, change
                yield change.step

    def _prepare(self, item: Item, outcome: Outcome | Exception | _Release) -> Prepared | None:
        policy = self._policy
        try:
            if outcome is _Release.RELEASE:
                return policy.prepare_release(item)
            if isinstance(outcome, Exception):
                return policy.prepare_failure(item, outcome)
            try:
                return policy.prepare(item, outcome)
            except self._abandons_on:
                raise
            except Exception as error:  # noqa: BLE001 - the outcome cannot be committed: the handler failed
                return policy.prepare_failure(item, error)
        except Exception as error:  # not even the failure can be recorded: another consumer may succeed
            if not self._is_abandoned(item, error):
                log.exception("%s is abandoned", policy.claim_of(item).id)
                self._end(item)
            return None

    def _after_commit(self, item: Item, change: Prepared, refused: QueueError | None) -> None:
        claim = self._policy.claim_of(item)
        match refused:
            case None:
                self._conflicts.pop(item, None)
                change.on_commit()
                if claim.held:
                    self._in_flight.add(item)
                    self.put(item)
                else:
                    self._end(item)
            case Conflict() if self._conflicts[item] < _MAX_CONFLICTS:
                self._conflicts[item] += 1
                self.put(item)  # another writer was faster: the handler looks again
            case Conflict():
                self._conflicts.pop(item, None)
                self._batcher.put((item, refused))
            case ClaimLost():
                log.log(_level(claim), "%s", refused)
                self._end(item)
            case _:
                log.warning("%s is abandoned: %s", claim.id, refused)
                self._end(item)

    def _end(self, item: Item) -> None:
        policy = self._policy
        policy.ended(item)
        claim = policy.claim_of(item)
        if claim.held:
            claim.abandon()
        self._conflicts.pop(item, None)
        self._in_flight.discard(item)
        self._has_ended = True

    def _report_freed(self) -> None:
        if self._has_ended:
            self._has_ended = False
            if not self._draining.is_set():
                self._policy.freed()


def _level(claim: Claim) -> int:
    """The level of a lost claim: the end of a session, which loses many, is logged by itself."""
    return logging.DEBUG if claim.session_has_ended else logging.INFO
