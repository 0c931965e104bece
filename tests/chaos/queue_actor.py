"""An actor that puts items and handles them, and records every request and every answer.

`python -m tests.chaos.queue_actor CONFIG`, a JSON object with the fields of `ActorConfig`. It puts items
until its time is over, and consumes until the command to stop.
"""

import json
import logging
import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from queues.claims.claim import Claim
from queues.dispatch.handler_pool import Action, Done, HandlerPool, Move, Requeue, Retries
from queues.model.errors import IdTaken, PutsFailed, QueueError, QueueFull, Unreachable
from queues.model.events import Event, EventKind
from queues.model.record import NewItem, Record
from queues.queue_set import QueueSet
from queues.session import Session, SessionSettings
from tests.chaos.actor_control import ShiftedClock, follow_commands, write_session
from tests.chaos.actor_process import STOP_COMMAND
from tests.chaos.events import Fields, Kind
from tests.chaos.history import History, read_history
from tests.chaos.mutations import Protection, take_out
from tests.chaos.nemesis import CLOCK_COMMAND

QUEUES = ("todo", "work", "ship", "kept")
TAKEN = QUEUES[:-1]
WAYS = frozenset(
    {("todo", "work"), ("work", "ship"), ("ship", "kept")} | {(queue, "dead") for queue in (*QUEUES, "dead")}
)
POOLS = ("default", "other")
ATTEMPTS = 3
MAX_ATTEMPTS = 2 * ATTEMPTS  # of one queue: an item is requeued once, which resets the count of its failures

_CALL_TIMEOUT_S = 3.0  # shorter than some cuts: outcomes remain unknown
_REMOVED, _POISON, _REQUEUED, _LONG = 10, 2, 10, 4  # of a hundred items
_SHARED_IDS = 40  # one of a hundred puts has an id that others put too
_DELAYS_MS = (0, 0, 0, 50, 400, 1500)


@dataclass(frozen=True, slots=True)
class ActorConfig:
    """Parameters of an actor; `begin` and `seconds` refer to the machine's monotonic clock."""

    name: str
    folder: str
    hosts: str
    root: str
    session_s: float
    puts: int
    begin: float
    seconds: float
    without: str = ""  # the protection that is taken out

    def due(self) -> int:
        """Number of items that must have been put by now."""
        return round(self.puts * min(1.0, (time.monotonic() - self.begin) / self.seconds))


def main(config: ActorConfig) -> None:
    clock, stopping = ShiftedClock(), threading.Event()
    clock.install()
    commands = {CLOCK_COMMAND: clock.set, STOP_COMMAND: lambda _: stopping.set()}
    follow_commands(sys.stdin, commands, at_end=lambda: os._exit(1))
    folder, name = Path(config.folder), config.name
    settings = SessionSettings(
        config.hosts, session_timeout=config.session_s, connect_timeout=60, call_timeout=_CALL_TIMEOUT_S
    )
    retries = Retries(attempts=ATTEMPTS, delay_ms=100, max_delay_ms=1000, max_claims=1000)
    with (
        History(folder, name) as history,
        QueueSet.connect(settings, config.root, QUEUES, owner=name) as queues,
    ):
        queues.listen(_Listener(history))
        handle = _Handler(history, queues)
        pool = HandlerPool(
            queues, TAKEN, handle, threads=16, held=40, pools=POOLS, retries=retries, rescan_seconds=2
        )
        while not _has_started(pool):  # a fault may occur during the start
            if stopping.wait(0.1):
                return
        try:
            done = sum(event.kind is Kind.PUT_SENT for event in read_history(history.path))
            producer = _Producer(history, queues, name, done)
            write_session_if_new = _session_writer(queues.session, folder / f"{name}.session")
            while not stopping.wait(0.02):
                write_session_if_new()
                producer.put_until(config.due())
        finally:
            pool.stop()


def _has_started(pool: HandlerPool) -> bool:
    try:
        pool.start()
    except Unreachable:
        return False
    return True


def _session_writer(session: Session, path: Path) -> Callable[[], None]:
    written: list[object] = [None]

    def write_if_new() -> None:
        client = session._client  # noqa: SLF001 - kazoo has no public password
        if client.client_id is not None and client.client_id != written[0]:
            written[0] = client.client_id
            write_session(path, *client.client_id)

    return write_if_new


class _Producer:
    """Puts items by every method."""

    def __init__(self, history: History, queues: QueueSet, name: str, done: int) -> None:
        self._history = history
        self._queues = queues
        self._prefix = f"{name}-{os.getpid()}"
        self._done = done
        self._random = random.Random(self._prefix)  # noqa: S311 - nothing is secret here

    def put_until(self, count: int) -> None:
        """Put items until their number is `count`."""
        while self._done < count:
            size = min(count - self._done, self._random.choice((1, 1, 5, 20)))
            items = [self._item(self._done + number) for number in range(size)]
            self._done += size
            for item in items:
                self._record(Kind.PUT_SENT, item)
            if self._random.random() < 0.5:
                self._together(items)
            else:
                self._one_by_one(items)

    def _item(self, number: int) -> NewItem:
        shared = self._random.randrange(100) == 0
        item_id = f"shared-{self._random.randrange(_SHARED_IDS)}" if shared else f"{self._prefix}-{number}"
        run_key = f"{self._prefix}-{number}-{self._random.getrandbits(64):016x}"
        delay = self._random.choice(_DELAYS_MS)
        return NewItem({"before": 0}, item_id, self._random.choice(POOLS), delay, run_key=run_key)

    def _together(self, items: list[NewItem]) -> None:
        by_id = {item.id: item for item in items}
        if len(by_id) < len(items):  # a repeated id: one item is put, and it is unknown which
            self._one_by_one(items)
            return
        try:
            records = self._queues.put_many("todo", items)
        except PutsFailed as failed:
            for item in items:
                error = failed.errors.get(item.id or "")
                if error is None:
                    self._record(Kind.PUT_ACKED, item)
                else:
                    self._refused(item, error)
        except QueueError as error:
            for item in items:
                self._refused(item, error)
        else:
            for item, record in zip(items, records, strict=True):
                self._acked(item, record)

    def _one_by_one(self, items: list[NewItem]) -> None:
        futures = [(item, self._queues.put_background("todo", item)) for item in items]
        self._queues.flush_puts(60)
        for item, future in futures:
            try:
                self._acked(item, future.result())
            except QueueError as error:
                self._refused(item, error)

    def _acked(self, item: NewItem, record: Record) -> None:
        self._record(Kind.PUT_ACKED, item, due=record.token.due)

    def _refused(self, item: NewItem, error: Exception) -> None:
        refused = isinstance(error, IdTaken | QueueFull)
        self._record(Kind.PUT_REFUSED if refused else Kind.PUT_FAILED, item, why=str(error))

    def _record(self, kind: Kind, item: NewItem, *, due: int | None = None, why: str = "") -> None:
        fields: Fields = {"id": item.id or "", "run_key": item.run_key, "queue": "todo", "pool": item.pool}
        if due is not None:
            fields |= {"due": due, "version": 0}
        if why:
            fields["extra"] = {"why": why}
        self._history.add(kind, **fields)


class _Handler:
    """Moves items through the queues, some by detours; its actions depend on the id alone."""

    def __init__(self, history: History, queues: QueueSet) -> None:
        self._history = history
        self._queues = queues

    def __call__(self, claim: Claim) -> Action:
        before = int(claim.payload["before"])
        attempt = before + claim.record.failures + 1
        self._record(Kind.HANDLER_STARTED, claim, attempt=attempt)
        dice = zlib.crc32(f"{claim.queue}{claim.id}".encode())
        # Some handlers run longer than a session timeout, so that faults hit them.
        time.sleep(1 + dice % 5 if dice // 100 % 100 < _LONG else 0.001 * (dice % 7))
        kind = dice % 100
        if kind < _POISON or (kind < 2 * _POISON and claim.record.failures < ATTEMPTS - 1):
            last = claim.record.failures + 1 >= ATTEMPTS
            self._sent(claim, "dead" if last else claim.queue)
            raise RuntimeError("poison")
        if kind >= 100 - _REQUEUED and before == 0:
            self._sent(claim, claim.queue)
            return Requeue({"before": attempt}, delay_ms=100)
        if claim.queue == "ship" and zlib.crc32(claim.id.encode()) % 100 < _REMOVED:
            self._record(Kind.REMOVED_SENT, claim)
            return Done()
        target = QUEUES[QUEUES.index(claim.queue) + 1]
        self._sent(claim, target)
        return Move(target, {"before": 0})

    def _sent(self, claim: Claim, to_queue: str) -> None:
        # The due time is known for a move only: the engine adds the delays.
        self._record(Kind.STEP_SENT, claim, to_queue=to_queue, with_due=to_queue != claim.queue)

    def _record(
        self,
        kind: Kind,
        claim: Claim,
        *,
        to_queue: str = "",
        attempt: int | None = None,
        with_due: bool = True,
    ) -> None:
        record = claim.record
        fields: Fields = {
            "id": claim.id,
            "run_key": record.run_key,
            "version": claim.version,
            "queue": claim.queue,
            "pool": record.pool,
            "wall_ms": self._queues.clock.now_ms(),
        }
        if with_due:
            fields["due"] = record.token.due
        if to_queue:
            fields["to_queue"] = to_queue
        if attempt is not None:
            fields["attempt"] = attempt
        self._history.add(kind, **fields)


class _Listener:
    """Records the accepted changes that the engine reports."""

    _KINDS = {  # noqa: RUF012 - a table
        EventKind.CLAIM: Kind.CLAIM_ACKED,
        EventKind.COMMIT: Kind.STEP_ACKED,
        EventKind.REQUEUE: Kind.STEP_ACKED,
        EventKind.MOVE: Kind.STEP_ACKED,
        EventKind.DEAD: Kind.DEAD,
        EventKind.REMOVE: Kind.REMOVED_ACKED,
        EventKind.LOST: Kind.LOST,
    }

    def __init__(self, history: History) -> None:
        self._history = history

    def __call__(self, event: Event) -> None:
        kind = self._KINDS.get(event.kind)
        if kind is None:
            return
        fields: Fields = {
            "id": event.id,
            "run_key": event.run_key,
            "nonce": event.nonce,
            "queue": event.queue,
            "pool": event.pool,
            "due": event.due,
            "released": event.released,
        }
        if event.run_key:  # an event without it wrote no record
            fields["version"] = event.version
        if kind in {Kind.STEP_ACKED, Kind.DEAD}:
            fields |= {"to_queue": event.to_queue, "to_pool": event.to_pool}
        if event.kind is EventKind.COMMIT:
            fields["extra"] = {"let_go": True}
        if kind is Kind.LOST:
            fields["extra"] = {"same_session": event.same_session, "why": event.detail}
        self._history.add(kind, **fields)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    configured = ActorConfig(**json.loads(sys.argv[1]))
    if configured.without:
        take_out(Protection(configured.without))
    main(configured)
