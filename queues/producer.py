"""Puts items: one, many, or in the background."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from queues.background import Background
from queues.bound import Capacity
from queues.bundle import commit_many
from queues.documents import new_nonce, new_uuid
from queues.errors import Conflict, IdTaken, PutsFailed, QueueError
from queues.events import EventKind
from queues.names import Token, check_id
from queues.new_item import NewItem
from queues.operations import Create
from queues.record import Record
from queues.root import Root
from queues.transaction import Transaction

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
            with self._capacity.room(queue, [item.pool for _, item in left]) as granted:
                now = [entry for entry, has_room in zip(left, granted, strict=True) if has_room]
                left = [entry for entry, has_room in zip(left, granted, strict=True) if not has_room]
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
                except Exception as error:  # noqa: BLE001 - it concerns this item only; riders are the caller's code
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
        return [Create(path, data), token, *item.riders(path)]

    def _outcome(self, record: Record, error: QueueError, *, existing: bool) -> Record | QueueError:
        root = self._root
        if not isinstance(error, Conflict):
            return error
        if error.index != 0 or error.reason != "NodeExists":
            return error
        # The id exists, and not because of our own lost reply: the receipt would have shown that.
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
