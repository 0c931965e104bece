import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.client.progress import describe_job, describe_progress, short_progress
from orchestrator.logs.visible import visible
from orchestrator.model.job import JobError
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason, Waiting

STAGES = [{"stage": 3, "tasks": 8, "done": 5}, {"stage": 4, "tasks": 2, "done": 1}]


def view(status: Status = Status.RUNNING, queue: Queue = Queue.RUNNING, attempt: int = 1) -> JobView:
    at = "2026-01-01T00:00:00.000Z"
    return JobView(
        id="j",
        run_key="k",
        name="j",
        pool="default",
        queue=queue,
        status=status,
        attempt=attempt,
        created=at,
        updated=at,
        started=None,
        ended=None,
        error=None,
        times={},
    )


def test_progress_is_one_line() -> None:
    assert describe_progress({"phase": "INSERT INTO t", "stages": STAGES[:1]}) == (
        "INSERT INTO t · stage 3: 5/8 tasks"
    )
    assert describe_progress({"phase": "", "stages": []}) == ""
    rows = {"phase": "it reads", "read": {"rows": 1234, "bytes": 5}, "written": {"rows": 0, "bytes": 0}}
    assert describe_progress(rows) == "it reads · 1,234 rows read"
    assert describe_progress(None) == ""


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ({"phase": "INSERT INTO t (2 of 5)", "stages": STAGES}, "2/5 stmts 60%"),
        ({"phase": "INSERT INTO t (1 of 1)", "stages": STAGES[:1]}, "62%"),
        ({"phase": "x", "stages": [], "read": {"rows": 1_240_000}, "written": {"rows": 0}}, "1.2M rows"),
        ({"phase": "x", "read": {"rows": 5}, "written": {"rows": 123_456}}, "123k rows"),
        ({"phase": "x", "read": {"rows": 999}}, "999 rows"),
        ({"phase": "starting Spark"}, ""),
        (None, ""),
    ],
)
def test_progress_in_a_few_characters(progress: dict[str, object] | None, words: str) -> None:
    assert short_progress(progress) == words


def test_a_job_is_described_by_its_state_and_activity() -> None:
    progress = {"phase": "INSERT INTO t (1 of 2)", "stages": STAGES[:1]}
    assert describe_job(view(), progress) == "RUNNING: INSERT INTO t (1 of 2) · stage 3: 5/8 tasks"
    assert describe_job(view(attempt=2), None) == "RUNNING, attempt 2"
    waiting = Waiting(reason=Reason.PAUSED, message="pool p is paused")
    assert describe_job(view(Status.ACCEPT, Queue.ACCEPT), None, waiting) == "ACCEPT: waits: pool p is paused"
    failed = view(Status.ERROR_FAIL, Queue.FINISH).model_copy(
        update={"error": JobError(error_class="user", message="no\nsuch  \x1b[2Jtable")}
    )
    assert describe_job(failed, progress) == "ERROR_FAIL: no such \N{REPLACEMENT CHARACTER}[2Jtable"
    assert describe_job(view(Status.SUCCESS, Queue.FINISH), None) == "SUCCESS"


VALUES = (
    st.none() | st.integers() | st.text() | st.sampled_from([True, 0.5, float("nan"), "\u2028", "\x1b[2J"])
)
NAMES = st.sampled_from(["phase", "stages", "read", "written", "stopping", "rows", "stage", "done", "tasks"])
FACTS = st.dictionaries(NAMES, VALUES, max_size=4)
PROGRESS = st.dictionaries(NAMES, VALUES | FACTS | st.lists(VALUES | FACTS, max_size=3))


@given(PROGRESS)
def test_no_progress_of_a_driver_breaks_the_words(progress: dict[str, object]) -> None:
    for words in (describe_progress(progress), short_progress(progress), describe_job(view(), progress)):
        assert visible(words) == words
        assert "\n" not in words
        assert len(words) < 2_000
