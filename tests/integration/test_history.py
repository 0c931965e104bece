"""The history of the last runs of a name, on a real ZooKeeper: concurrent writers lose no run."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compose import build_queue_set
from orchestrator.history.history import MAX_RUNS, History
from orchestrator.leader.election import Election
from orchestrator.leader.retention import OldHistories
from orchestrator.model.errors import CorruptHistory, HistoryNotFound
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Status
from queues.model.operations import Operation, Set
from queues.session import ReplyLost, Session
from queues.store.commit import commit
from tests.jobs_support import Deployment, python_job, sleeps, waits_for
from tests.waiting import wait_until

THREADS, EACH = 6, 8


def run(number: int) -> dict[str, Any]:
    return {"run": f"run-{number:03}", "ended": f"{number:06}"}


def names(runs: Sequence[Any]) -> list[str]:
    return [each["run"] for each in runs]


def history(deployment: Deployment) -> History:
    return History(deployment.session(), Nodes(deployment.settings.root))


def test_workers_that_note_at_once_lose_nothing_of_one_another(deployment: Deployment) -> None:
    histories = [history(deployment), history(deployment), history(deployment)]
    failed: list[Exception] = []

    def note(thread: int) -> None:
        mine = histories[thread % len(histories)]
        try:
            for number in range(thread * EACH, (thread + 1) * EACH):
                mine.record("flights", run(number))
                mine.record("flights", run(number))  # again, as after a crash
                mine.record(f"other-{thread}", run(number))
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=note, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert names(histories[0].read("flights")) == [f"run-{number:03}" for number in range(THREADS * EACH)]
    assert len(histories[0].read("other-0")) == EACH
    for number in range(100, 110):
        histories[0].record("flights", run(number))
    kept = names(histories[1].read("flights"))
    assert (len(kept), kept[-1]) == (MAX_RUNS, "run-109")
    histories[0].record("flights", run(0))  # it was there and is gone: it does not return
    assert names(histories[1].read("flights")) == kept


def test_a_note_whose_reply_is_lost_is_there_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = history(deployment)
    mine.record("flights", run(0))
    post, lost = Session.post, list[bool]()

    def lossy(session: Session, operations: Sequence[Operation]) -> Any:
        posted = post(session, operations)
        if not lost:
            lost.append(True)
            posted.results(10)  # it is carried out, and the reply is lost

            def results(_timeout: float) -> list[Any]:
                raise ReplyLost("lost by the test")

            monkeypatch.setattr(posted, "results", results, raising=True)
        return posted

    monkeypatch.setattr(Session, "post", lossy)
    mine.record("flights", run(1))
    assert lost
    assert names(mine.read("flights")) == ["run-000", "run-001"]


def test_an_invalid_history_is_reported_and_begun_anew(deployment: Deployment) -> None:
    mine, path = history(deployment), Nodes(deployment.settings.root).history("flights")
    with pytest.raises(HistoryNotFound, match="no run of a job named 'flights' is known"):
        mine.read("flights")
    mine.record("flights", run(0))
    commit(deployment.session(), [Set(path, b"by hand", -1)])
    with pytest.raises(CorruptHistory, match="cannot be read"):
        mine.read("flights")
    mine.record("flights", run(1))
    assert names(mine.read("flights")) == ["run-001"]


def test_every_attempt_is_in_the_history_with_what_it_took_and_why_it_failed(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    once = tmp_path / "once"
    program = (
        f"import pathlib; p = pathlib.Path({str(once)!r}); seen = p.exists(); p.touch(); assert seen, 'why'"
    )
    job_id = deployment.submit(program, retry={"attempts": 2, "delay": "100ms"})
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    killed = deployment.submit(sleeps(tmp_path / "pid"))
    wait_until(lambda: deployment.client.progress(deployment.client.get(killed)), 30, "it runs")
    deployment.client.kill(killed)
    deployment.wait(killed)
    too_long = deployment.submit("import time; time.sleep(600)", timeout={"run": 1})
    assert deployment.wait(too_long).job.error is not None
    cancelled = deployment.client.submit(python_job("pass"), delay=3600).id
    deployment.client.kill(cancelled)
    deployment.wait(cancelled)
    runs = deployment.client.history("test")
    assert [(each["job"], each["attempt"], each["state"], each["class"]) for each in runs] == [
        (job_id, 1, "failed", "user"),
        (job_id, 2, "succeeded", None),
        (killed, 1, "killed", "killed"),
        (too_long, 1, "killed", "timeout"),
    ]
    assert (runs[0]["type"], runs[0]["message"].splitlines()[0]) == (
        "AssertionError",
        "job.py:1: AssertionError: why",
    )
    assert runs[1]["input_bytes"] == 1000
    assert runs[1]["metrics"] == {"input_bytes": 1000, "input_rows": 10}
    assert runs[1]["settings"] == {"spark.master": "local[*]", "spark.submit.deployMode": "client"}
    assert 0 <= runs[1]["seconds"] < 60
    assert {each["application_id"] for each in runs} == {"local-standin"}


def test_the_application_of_a_driver_that_says_no_word_is_known(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    go = tmp_path / "go"
    job_id = deployment.submit(waits_for(go) + "import os; os.kill(os.getpid(), 9)")
    wait_until(
        lambda: (deployment.client.progress(deployment.client.get(job_id)) or {}).get("application_id"),
        30,
        "it runs",
    )
    go.touch()
    detail = deployment.wait(job_id)
    assert detail.job.application_id == detail.attempts[0]["application_id"] == "local-standin"
    (found,) = deployment.client.history("test")
    assert (found["class"], found["exit_code"]) == ("infrastructure", 137)


def test_a_history_that_cannot_be_written_keeps_no_job_from_its_end(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("disk full")

    monkeypatch.setattr(History, "record", broken)
    deployment.worker()
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS


def test_histories_of_names_that_do_not_run_any_more_are_removed(deployment: Deployment) -> None:
    mine, queue_set = (
        history(deployment),
        build_queue_set(deployment.session(), deployment.settings, owner="leader"),
    )
    nodes = Nodes(deployment.settings.root)
    for name in ("old", "older"):
        mine.record(name, run(0))
    election = Election(queue_set.session, nodes, "leader")
    assert election.look(lambda: None)
    OldHistories(queue_set, nodes, election.fence).step()
    assert names(mine.read("old")) == ["run-000"]
    OldHistories(queue_set, nodes, election.fence, keep_ms=-60_000).step()
    for name in ("old", "older"):
        with pytest.raises(HistoryNotFound):
            mine.read(name)
    mine.record("old", run(1))
    assert names(mine.read("old")) == ["run-001"]


def test_a_history_that_seems_old_by_the_servers_clock_alone_stays(deployment: Deployment) -> None:
    mine, queue_set = (
        history(deployment),
        build_queue_set(deployment.session(), deployment.settings, owner="leader"),
    )
    an_hour_later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    mine.record("flights", {"run": "run-1", "ended": an_hour_later})
    # As from a server whose clock was far behind: its time is older than the retention.
    OldHistories(queue_set, Nodes(deployment.settings.root), tuple, keep_ms=-60_000).step()
    assert names(mine.read("flights")) == ["run-1"]
