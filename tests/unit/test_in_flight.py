from types import SimpleNamespace
from typing import Any

from orchestrator.model.states import Queue
from orchestrator.worker.in_flight import JobsInFlight


def job(job_id: str, queue: Queue = Queue.RUNNING, pool: str = "default") -> Any:
    claim = SimpleNamespace(queue=queue, record=SimpleNamespace(pool=pool))
    return _Hashable(SimpleNamespace(id=job_id, claim=claim, monitor=SimpleNamespace(is_out_of_reach=False)))


class _Hashable:
    def __init__(self, facts: SimpleNamespace) -> None:
        self.id, self.claim, self.monitor = facts.id, facts.claim, facts.monitor


def test_a_job_that_is_in_hand_again_stays_counted_when_its_earlier_claim_ends_late() -> None:
    in_flight, first, second = JobsInFlight(), job("a"), job("a")
    in_flight.note(first)
    in_flight.note(second)
    in_flight.discard(first)
    assert (in_flight.get("a"), len(in_flight), in_flight.running()) == (second, 1, ["a"])


def test_a_job_that_moves_is_counted_in_its_new_queue() -> None:
    in_flight, one = JobsInFlight(), job("a", Queue.ACCEPT, "team")
    in_flight.note(one)
    assert (in_flight.count(Queue.ACCEPT, Queue.RUNNING), in_flight.count_in(Queue.ACCEPT, "team")) == (1, 1)
    one.claim.queue = Queue.RUNNING
    in_flight.note(one)
    assert (in_flight.count(Queue.ACCEPT), in_flight.count(Queue.RUNNING)) == (0, 1)
    assert in_flight.count_in(Queue.ACCEPT, "team") == 0
    in_flight.discard(one)
    assert (in_flight.count(*Queue), len(in_flight), in_flight.get("a")) == (0, 0, None)
