"""The side that puts: one item, many, or in the background."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

from queues.model.codec import new_nonce, new_uuid
from queues.model.errors import Conflict, IdTaken, PutsFailed, QueueError, SessionLost
from queues.model.events import EventKind
from queues.model.names import Token, check_id
from queues.model.operations import Create
from queues.model.record import NewItem, Record
from queues.producer.capacity import Capacity
from queues.store.batch import commit_many
from queues.store.commit import Transaction
from queues.store.root import Root

_MAX_PENDING = 10_000  # a further put blocks until one is done
_BATCH_SIZE = 1_000  # puts per batch


class Background:
    """One thread that puts the pending items in batches."""

    def __init__(self, put: Callable[[str, Sequence[NewItem]], Sequence[Record | Exception]]) -> None:
        self._put_many = put
        self._inbox: queue.Queue[tuple[str, NewItem, Future[Record]] | None] = queue.Queue(_MAX_PENDING)
        self._guard = threading.Condition()
        self._pending = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, queue_: str, item: NewItem) -> "Future[Record]":
        """Put soon, batched with others; the future has the record or the error of the put."""
        future: Future[Record] = Future()
        with self._guard:
            if self._closed:
                raise SessionLost("the producer was closed; nothing was put")
            self._pending += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="background-puts", daemon=True)
                self._thread.start()
        self._inbox.put((queue_, item, future))
        return future

    def flush(self, timeout: float) -> bool:
        """Wait until all puts so far are done; False if some are not after `timeout` seconds."""
        with self._guard:
            return self._guard.wait_for(lambda: self._pending == 0, timeout)

    def close(self, timeout: float) -> bool:
        """Refuse further puts, and wait for the pending ones as `flush` does."""
        with self._guard:
            self._closed = True
        done = self.flush(timeout)
        if self._thread is not None:
            self._inbox.put(None)
        return done

    def _loop(self) -> None:
        while True:
            batch = [self._inbox.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < _BATCH_SIZE:
                    batch.append(self._inbox.get_nowait())
            there = [entry for entry in batch if entry is not None]
            entries = [entry for entry in there if entry[2].set_running_or_notify_cancel()]
            self._count_down(len(there) - len(entries))
            for queue_ in dict.fromkeys(entry[0] for entry in entries):
                self._put(queue_, [(item, future) for name, item, future in entries if name == queue_])
            if len(there) < len(batch):
                return

    def _put(self, queue_: str, entries: list[tuple[NewItem, "Future[Record]"]]) -> None:
        try:
            outcomes: list[Record | BaseException] = list(
                self._put_many(queue_, [item for item, _ in entries])
            )
        except Exception as error:  # noqa: BLE001 - reported through the futures
            outcomes = [error] * len(entries)
        for (_, future), outcome in zip(entries, outcomes, strict=True):
            if isinstance(outcome, Record):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)
        self._count_down(len(entries))

    def _count_down(self, done: int) -> None:
        with self._guard:
            self._pending -= done
            self._guard.notify_all()


_POLL_FULL_SECONDS = 0.2  # while a put waits for capacity
_MAX_SENDS = 5  # sends that were refused because a folder had just been removed


class Producer:
    """Puts items, exactly once by id. Safe to use from several threads."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._guard = threading.Lock()
        self._last_seq = 0
        self._capacity = Capacity(root)
        self._background = Background(
            lambda queue, items: self._put(queue, items, max_wait=0.0, existing=False)
        )

    # ------------------------------------------------------------------ put
    def put(self, queue: str, item: NewItem, *, max_wait: float = 0.0, existing: bool = False) -> Record:
        """Put one item; raises IdTaken, QueueFull, TooLarge, OutcomeUnknown.

        `max_wait`: seconds to wait for capacity in a full pool. `existing`: return the item that has the id
        instead of raising IdTaken.
        """
        (outcome,) = self._put(queue, [item], max_wait=max_wait, existing=existing)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def put_many(
        self, queue: str, items: Sequence[NewItem], *, max_wait: float = 0.0, existing: bool = False
    ) -> list[Record]:
        """Put many items in few requests, each exactly once; raises PutsFailed if some were not put."""
        outcomes = self._put(queue, items, max_wait=max_wait, existing=existing)
        errors = {
            item.id or str(place): outcome
            for place, (item, outcome) in enumerate(zip(items, outcomes, strict=True))
            if isinstance(outcome, Exception)
        }
        if errors:
            raise PutsFailed(errors, len(items))
        return [outcome for outcome in outcomes if isinstance(outcome, Record)]

    def _put(
        self, queue: str, items: Sequence[NewItem], *, max_wait: float, existing: bool
    ) -> list[Record | Exception]:
        deadline = time.monotonic() + max_wait
        self._root.check_queue(queue)
        outcomes: dict[int, Record | Exception] = {}
        left = list(enumerate(items))
        while left:
            with self._capacity.reserve(queue, [item.pool for _, item in left]) as granted:
                now = [entry for entry, is_granted in zip(left, granted, strict=True) if is_granted]
                left = [entry for entry, is_granted in zip(left, granted, strict=True) if not is_granted]
                outcomes.update(self._send(queue, now, existing=existing))
            if left and time.monotonic() >= deadline:
                full = {place: self._capacity.error(queue, item.pool) for place, item in left}
                return [(outcomes | full)[place] for place in range(len(items))]
            if left:
                time.sleep(_POLL_FULL_SECONDS)
        return [outcomes[place] for place in range(len(items))]

    def _send(
        self, queue: str, items: Sequence[tuple[int, NewItem]], *, existing: bool
    ) -> dict[int, Record | Exception]:
        outcomes: dict[int, Record | Exception] = {}
        for _ in range(_MAX_SENDS):
            sent = self._send_once(queue, items, existing=existing)
            outcomes |= sent
            items = [entry for entry in items if _needs_folder(sent[entry[0]])]
            if not items:
                break
            self._root.forget_folders()  # the pool was removed: make it again
        return outcomes

    def check(self, queue: str, item_id: str | None, pool: str) -> None:
        """Raise what a put would raise now: IdTaken, QueueFull, TooManyPools; writes nothing."""
        root = self._root
        root.check_queue(queue)
        if item_id is not None and root.session.exists(root.layout.record(check_id(item_id))) is not None:
            raise IdTaken(item_id)
        root.pool_folders.check_number(pool)
        with self._capacity.reserve(queue, [pool]) as (has_room,):
            if not has_room:
                raise self._capacity.error(queue, pool)

    def _send_once(
        self, queue: str, items: Sequence[tuple[int, NewItem]], *, existing: bool
    ) -> dict[int, Record | Exception]:
        root = self._root
        outcomes: dict[int, Record | Exception] = {}
        records: dict[int, Record] = {}  # the sent records, by index

        def transactions() -> Iterator[Transaction]:
            for place, item in items:
                try:
                    record = self._record(queue, item)
                    transaction = self._transaction(record, item)
                except Exception as error:  # noqa: BLE001 - it concerns this item only; extra_operations is the caller's code
                    outcomes[place] = error
                    continue
                outcomes[place] = records[place] = record
                yield transaction

        started = time.monotonic()
        refusals = commit_many(root.session, transactions(), root.receipts)
        seconds = time.monotonic() - started
        for place, refusal in zip(records, refusals, strict=True):
            record = records[place]
            if refusal is not None:
                outcomes[place] = self._outcome(record, refusal, existing=existing)
            else:
                root.notify(EventKind.PUT, record, seconds=seconds)
        return outcomes

    def _record(self, queue: str, item: NewItem) -> Record:
        item_id = new_uuid() if item.id is None else check_id(item.id)
        self._root.pool_folders.ensure(item.pool, bounded=True)
        now = self._root.clock.now_ms()
        due = now + item.delay_ms if item.due_ms is None else item.due_ms
        return Record(
            id=item_id,
            run_key=item.run_key or new_uuid(),
            queue=queue,
            pool=item.pool,
            token=Token(id=item_id, due=due, seq=self._next_seq(now)),
            nonce=new_nonce(),
            payload=item.payload,
        )

    def _transaction(self, record: Record, item: NewItem) -> Transaction:
        root, layout = self._root, self._root.layout
        data = record.encode(root.max_record_bytes)
        root.ensure_bucket(record.id)
        path = layout.record(record.id)
        token = Create(layout.token(record.queue, record.pool, record.token))
        return [Create(path, data), token, *item.extra_operations(path)]

    def _outcome(self, record: Record, error: QueueError, *, existing: bool) -> Record | QueueError:
        root = self._root
        if not isinstance(error, Conflict):
            return error
        if error.index != 0 or error.reason != "NodeExists":
            return error
        # The id exists, and not by an earlier send with a lost reply: the receipt would show that.
        if existing:
            with contextlib.suppress(QueueError):
                return root.read(record.id)[0]
        return IdTaken(record.id)

    def _next_seq(self, now_ms: int) -> int:
        # Microseconds of the ensemble's time, unique within one process.
        with self._guard:
            self._last_seq = max(self._last_seq + 1, now_ms * 1000 + time.time_ns() // 1000 % 1000)
            return self._last_seq

    # ------------------------------------------------------------------ background
    def put_background(self, queue: str, item: NewItem) -> "Future[Record]":
        """Put in the background, batched with others; the future has the record or the error of `put`."""
        self._root.check_queue(queue)
        return self._background.add(queue, item)

    def flush(self, timeout: float) -> bool:
        """Wait until every background put so far is done; False if some are not after `timeout` seconds."""
        return self._background.flush(timeout)

    def close(self, timeout: float) -> bool:
        """Refuse further background puts and wait for the pending ones; False as for `flush`."""
        done = self._background.close(timeout)
        self._root.receipts.close()
        return done


def _needs_folder(outcome: Record | Exception) -> bool:
    """Whether a put was refused because the folder of its record or token is missing."""
    return isinstance(outcome, Conflict) and outcome.index in {0, 1} and outcome.reason == "NoNode"
