from types import SimpleNamespace
from typing import Any

from orchestrator.states import Queue
from orchestrator.worker.in_flight import Tally


def job(job_id: str, queue: Queue = Queue.RUNNING, pool: str = "default") -> Any:
    claim = SimpleNamespace(queue=queue, record=SimpleNamespace(pool=pool))
    return _Hashable(SimpleNamespace(id=job_id, claim=claim, monitor=SimpleNamespace(is_out_of_reach=False)))


class _Hashable:
    def __init__(self, facts: SimpleNamespace) -> None:
        self.id, self.claim, self.monitor = facts.id, facts.claim, facts.monitor


def test_a_job_that_is_in_hand_again_stays_counted_when_its_earlier_claim_ends_late() -> None:
    tally, first, second = Tally(), job("a"), job("a")
    tally.note(first)
    tally.note(second)
    tally.discard(first)
    assert (tally.get("a"), len(tally), tally.running()) == (second, 1, ["a"])


def test_a_job_that_moves_on_is_counted_where_it_stands_now() -> None:
    tally, one = Tally(), job("a", Queue.ACCEPT, "team")
    tally.note(one)
    assert (tally.count(Queue.ACCEPT, Queue.RUNNING), tally.count_in(Queue.ACCEPT, "team")) == (1, 1)
    one.claim.queue = Queue.RUNNING
    tally.note(one)
    assert (tally.count(Queue.ACCEPT), tally.count(Queue.RUNNING)) == (0, 1)
    assert tally.count_in(Queue.ACCEPT, "team") == 0
    tally.discard(one)
    assert (tally.count(*Queue), len(tally), tally.get("a")) == (0, 0, None)
