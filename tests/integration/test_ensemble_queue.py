"""Queues on three servers while their leader is killed and restarted."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from queues.claims.claim import Claim
from queues.dispatch.handler_pool import Action, HandlerPool, Move
from queues.model.errors import PutsFailed, QueueError
from queues.model.events import Event, EventKind
from queues.model.record import NewItem
from queues.queue_set import QueueSet
from queues.session import SessionSettings
from tests.servers.ensemble import EmbeddedEnsemble
from tests.waiting import wait_until

QUEUES = ("accept", "running", "finish")
NEXT = {"accept": "running", "running": "finish"}
ROOT = "/queues"
STEP = 150
"""Items that must finish before the next act on the ensemble."""


def connect(hosts: str, owner: str, call_timeout: float) -> QueueSet:
    settings = SessionSettings(hosts, session_timeout=6, connect_timeout=20, call_timeout=call_timeout)
    return QueueSet.connect(settings, ROOT, QUEUES, owner=owner)


def move_on(claim: Claim) -> Action:
    return Move(NEXT[claim.queue])


class Worker:
    """Moves items from queue to queue, and records the changes that the server accepted."""

    def __init__(self, hosts: str, name: str) -> None:
        self.accepted: list[Event] = []
        self.set = connect(hosts, name, 20)
        self.set.listen(self.accepted.append)
        self.pool = HandlerPool(self.set, list(NEXT), move_on, threads=4, rescan_seconds=1)


class Producer:
    """Puts items one by one and together until it is stopped, and records the acknowledged ones."""

    def __init__(self, hosts: str) -> None:
        self.acknowledged: set[str] = set()
        self.doubtful: set[str] = set()
        # Puts end while there is no leader: their outcome stays unknown, which is part of the test.
        self._set = connect(hosts, "producer", 1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._set:
            self._thread.start()
            try:
                yield
            finally:
                self._stop.set()
                self._thread.join(30)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.02):
            number += 1
            self._put([f"one-{number}"] if number % 2 else [f"many-{number}-{part}" for part in range(10)])

    def _put(self, ids: list[str]) -> None:
        failed: set[str] = set()
        try:
            if len(ids) == 1:
                self._set.put("accept", ids[0], {})
            else:
                self._set.put_many("accept", [NewItem({}, item_id) for item_id in ids])
        except PutsFailed as error:
            failed = set(error.errors)
        except QueueError:
            failed = set(ids)
        self.doubtful |= failed
        self.acknowledged |= set(ids) - failed


def queue_counts(queues: QueueSet) -> Counter[str]:
    """The number of queues that each item is in."""
    return Counter(token.id for queue in queues.queues for token in queues.tokens(queue))


def test_the_loss_of_a_leader_loses_no_item_and_honours_no_claim_twice(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ensemble = stack.enter_context(EmbeddedEnsemble(tmp_path, tick_ms=500))
        workers = [Worker(ensemble.hosts, name) for name in ("first", "second")]
        for worker in workers:
            stack.enter_context(worker.set)
            stack.enter_context(worker.pool)
        producer = Producer(ensemble.hosts)
        with producer.running():
            count = workers[0].set.count
            wait_until(lambda: count("finish") > STEP, 20, "items come to their end")

            leader = ensemble.leader()
            assert leader is not None
            ensemble.members[leader].kill()
            other = wait_until(ensemble.leader, 30, "another leader is elected")
            assert other != leader
            done = count("finish")
            wait_until(lambda: count("finish") > done + STEP, 20, "it continues with two servers")

            ensemble.members[leader].start()
            ensemble.members[other].kill()  # now the restarted server is needed
            wait_until(ensemble.leader, 30, "a third leader is elected")
            done = count("finish")
            wait_until(lambda: count("finish") > done + STEP, 20, "it continues with the one that came back")
        ensemble.members[other].start()

        queues = workers[0].set
        wait_until(lambda: queues.count("accept") + queues.count("running") == 0, 20, "all are through")
        wait_until(lambda: not queues.session.children(queues.layout.locks("default")), 10, "all are let go")
        found = queue_counts(queues)
        assert set(found.values()) == {1}
        assert producer.acknowledged <= set(found) <= producer.acknowledged | producer.doubtful
        assert queues.count("dead") == 0

        accepted = [event for worker in workers for event in worker.accepted]
        moves = Counter((event.id, event.queue) for event in accepted if event.kind is EventKind.MOVE)
        assert set(moves.values()) == {1}
        # Each change of an item has another fence: two changes with one fence would mean two holders at once.
        kinds = (EventKind.CLAIM, EventKind.MOVE)
        fences = Counter((event.id, event.version) for event in accepted if event.kind in kinds)
        assert set(fences.values()) == {1}
        assert {event.id for event in accepted} >= producer.acknowledged
