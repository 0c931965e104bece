"""Looks at calm running jobs: no handler runs while nothing changes, and hidden changes are found."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.handlers import running, supervision
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.states import Status
from orchestrator.worker.dispatcher import HANDLERS
from orchestrator.worker.quiet_looks import QuietLooks
from orchestrator.worker.worker import Worker
from queues.model.operations import Set
from queues.store.commit import commit
from tests.jobs_support import Deployment, waits_for
from tests.waiting import wait_until

WAIT_S = 30


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Looks are frequent; the number of quiet jobs of each."""
    monkeypatch.setattr(supervision, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr("orchestrator.worker.quiet_looks._LOOK_SECONDS", 0.05)
    monkeypatch.setattr("orchestrator.worker.polling._POLL_SECONDS", 3600.0)  # no poll wakes a job
    counts, look = list[int](), QuietLooks.unchanged

    def counted(self: QuietLooks, jobs: list[JobContext]) -> set[JobContext]:
        quiet = look(self, jobs)
        counts.append(len(quiet))
        return quiet

    monkeypatch.setattr(QuietLooks, "unchanged", counted)
    return counts


def calm_job(deployment: Deployment, go: Path, looks: list[int]) -> tuple[Worker, JobContext]:
    worker = deployment.worker()
    job_id = deployment.submit(waits_for(go))
    wait_until(lambda: sum(looks) > 0, WAIT_S, "a look has found it calm")
    job = worker.dispatcher.in_flight.get(job_id)
    assert job is not None
    return worker, job


def counted_handler(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls = list[str]()
    handle: Callable[[JobContext], object] = running.handle

    def counted(job: JobContext) -> object:
        calls.append(job.id)
        return handle(job)

    monkeypatch.setitem(HANDLERS, next(queue for queue in HANDLERS if queue == "running"), counted)
    return calls


def test_no_handler_runs_for_a_calm_job_while_nothing_changes(
    deployment: Deployment, tmp_path: Path, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted_handler(monkeypatch)
    calm_job(deployment, tmp_path / "go", looks)
    before, looked = len(calls), sum(looks)
    wait_until(lambda: sum(looks) >= looked + 10, WAIT_S, "it was looked at ten times more")
    assert len(calls) == before
    (tmp_path / "go").touch()


def test_a_look_finds_the_end_of_a_driver_whose_watch_is_lost(
    deployment: Deployment, tmp_path: Path, looks: list[int]
) -> None:
    _, job = calm_job(deployment, tmp_path / "go", looks)
    job.context.session.forget(job.attempt_path, job.attempt_changed)
    (tmp_path / "go").touch()
    assert deployment.wait(job.id).job.status is Status.SUCCESS


def test_a_written_attempt_needs_its_handler(
    deployment: Deployment, tmp_path: Path, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted_handler(monkeypatch)
    _, job = calm_job(deployment, tmp_path / "go", looks)
    job.context.session.forget(job.attempt_path, job.attempt_changed)
    before = len(calls)
    found = deployment.queues.session.get(job.attempt_path)
    assert found is not None
    commit(deployment.queues.session, [Set(job.attempt_path, found[0], found[1].version)])
    wait_until(lambda: len(calls) > before, WAIT_S, "the handler has looked at it")
    (tmp_path / "go").touch()


def test_a_calm_job_keeps_only_what_looks_need_and_its_handler_reads_the_rest_anew(
    deployment: Deployment, tmp_path: Path, looks: list[int]
) -> None:
    _, job = calm_job(deployment, tmp_path / "go", looks)
    wait_until(lambda: not job.has_definition, WAIT_S, "the definition is released")
    (tmp_path / "go").touch()
    assert deployment.wait(job.id).job.status is Status.SUCCESS
