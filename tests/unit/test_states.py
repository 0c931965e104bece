from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.states import FINAL, TRANSITIONS, IllegalTransition, Queue, Status, check_transition

DOCS = Path(__file__).parents[2] / "docs"


@given(st.sampled_from(Status), st.sampled_from(Status))
def test_only_transitions_of_the_table_are_legal(before: Status, after: Status) -> None:
    if before is after or after in TRANSITIONS[before]:
        check_transition(before, after)
    else:
        with pytest.raises(IllegalTransition):
            check_transition(before, after)


def test_every_status_has_a_queue_and_every_queue_but_finish_a_status() -> None:
    assert {status.queue for status in Status} == set(Queue) - {Queue.FINISH}


def test_every_status_can_be_reached_and_reaches_a_final_one() -> None:
    def reachable(start: Status) -> set[Status]:
        seen, todo = {start}, [start]
        while todo:
            new = TRANSITIONS[todo.pop()] - seen
            seen |= new
            todo += new
        return seen

    warned = {Status.RUNNING_WARN}
    assert reachable(Status.ACCEPT) | warned == set(Status)
    for status in set(Status) - {Status.DEAD}:
        assert reachable(status) & FINAL


def test_no_job_leaves_dead_by_itself_and_success_only_by_the_word_of_its_callback() -> None:
    assert TRANSITIONS[Status.SUCCESS] == {Status.ERROR_FAIL, Status.DEAD}
    assert TRANSITIONS[Status.DEAD] == frozenset()


def test_the_page_of_states_gives_a_reason_for_each_edge() -> None:
    page = (DOCS / "life-of-a-job.md").read_text(encoding="utf-8")
    assert page.count("| ACCEPT | RUNNING |") == 1
    assert "|  |" not in page
