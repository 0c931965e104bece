"""Answers of a cluster as a worker handles them: why drivers wait, why they ended, that they are unknown."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.handlers import submission, warnings
from orchestrator.handlers.hooks import Hook
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from spark_runner.protocol.errors import KillError
from spark_runner.runners.base import Failure, RunState, Submission, SubmissionPlace
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Office, stand_ins, waits_for
from tests.waiting import wait_until

NO_ROOM = "0/3 nodes are available: 3 Insufficient memory"


class Cluster(LocalRunner):
    """A cluster whose drivers run on this host and whose answers are scripted."""

    def __init__(self, submits: SparkSubmits) -> None:
        super().__init__(submits, driver_main=Path("unused"))
        self.alter: Callable[[list[Submission]], list[Submission]] = lambda found: found

    def place(self) -> SubmissionPlace:
        return SubmissionPlace(self.backend, cluster={"master": "test"})

    def reaches(self, place: SubmissionPlace) -> bool:
        return place == self.place()

    def find(self, run: str) -> list[Submission]:
        return self.alter(super().find(run))

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        return {run: self.alter(found) for run, found in super().poll_many(runs).items()}


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.handlers.attempt_monitor._PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr("orchestrator.worker.polling._POLL_SECONDS", 0.1)


@pytest.fixture
def cluster(office: Office) -> Cluster:
    return Cluster(stand_ins(office.settings.state_dir))


def saying(detail: str) -> Callable[[list[Submission]], list[Submission]]:
    return lambda found: [replace(each, detail=detail) for each in found]


def ending(failure: Failure) -> Callable[[list[Submission]], list[Submission]]:
    return lambda found: [
        replace(each, state=RunState.EXITED, exit_code=None, failure=failure) for each in found
    ]


def running(office: Office, cluster: Cluster, go: Path, **fields: object) -> str:
    office.worker(runner=cluster)
    job_id = office.submit(waits_for(go), **fields)
    wait_until(lambda: office.client.progress(office.client.get(job_id)), 30, "it runs")
    return job_id


def test_a_running_job_whose_executors_do_not_fit_says_so_until_they_do(
    office: Office, cluster: Cluster, tmp_path: Path
) -> None:
    job_id = running(office, cluster, tmp_path / "go")
    cluster.alter = saying(NO_ROOM)
    wait_until(lambda: office.client.get(job_id).warning, 20, "the warning")
    view = office.client.get(job_id)
    assert (view.status, view.queue, view.warning) == (Status.RUNNING_WARN, Queue.RUNNING, NO_ROOM)
    cluster.alter = saying("")
    wait_until(lambda: office.client.get(job_id).status is Status.RUNNING, 20, "the end of the warning")
    (tmp_path / "go").touch()
    assert office.wait(job_id).job.status is Status.SUCCESS


class Talker:
    """Answers differently each time: the given words with a new number."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.said = 0

    def __call__(self, found: list[Submission]) -> list[Submission]:
        self.said += 1
        words = self.words[self.said % len(self.words)].format(self.said)
        return [replace(each, detail=words) for each in found]

    def wait_said(self, times: int) -> None:
        goal = self.said + times
        wait_until(lambda: self.said >= goal, 60, f"it is asked {times} times")


@pytest.mark.parametrize(
    "words",
    [
        ("0/{0} nodes have room (at 12:00:{0}, request 7f3a-{0})",),
        ("{0} of 3 nodes are full", "the scheduler was asked {0} times"),
    ],
    ids=["numbers change", "two messages by turns"],
)
def test_words_of_a_cluster_that_change_at_each_poll_are_not_written_at_each(
    office: Office, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(warnings, "OTHER_KIND_SECONDS", 3600)
    job_id = running(office, cluster, tmp_path / "go")
    talker = cluster.alter = Talker(*words)
    wait_until(lambda: office.client.get(job_id).warning, 20, "the warning")
    version = record_version(office, job_id)
    talker.wait_said(8)
    assert record_version(office, job_id) == version
    (tmp_path / "go").touch()
    assert office.wait(job_id).job.status is Status.SUCCESS


def test_another_reason_is_reported_soon_and_newer_numbers_some_time_later(
    office: Office, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warnings, "OTHER_KIND_SECONDS", 0.5)
    job_id = running(office, cluster, tmp_path / "go", timeout={"lease": 5})
    cluster.alter = Talker("{0} of 3 nodes are full")
    wait_until(lambda: office.client.get(job_id).warning, 20, "the warning")
    monkeypatch.setattr(warnings, "SAME_KIND_SECONDS", 3600)
    cluster.alter = Talker("queue etl has {0} jobs")
    first = wait_until(lambda: warning_of(office, job_id, "queue etl"), 20, "the other reason")
    monkeypatch.setattr(warnings, "SAME_KIND_SECONDS", 0)
    newer = wait_until(lambda: warning_of(office, job_id, "queue etl", but=first), 20, "newer numbers")
    assert newer.startswith("queue etl has ")
    (tmp_path / "go").touch()
    assert office.wait(job_id).job.status is Status.SUCCESS


def warning_of(office: Office, job_id: str, begin: str, *, but: str = "") -> str | None:
    """The warning, if it has this beginning and differs from `but`."""
    words = office.client.get(job_id).warning or ""
    return words if words.startswith(begin) and words != but else None


def record_version(office: Office, job_id: str) -> int:
    found = office.session().exists(office.client.detail(job_id).record_path)
    assert found is not None
    return found.version


def test_a_short_message_of_a_cluster_is_no_warning(
    office: Office, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.handlers.attempt_monitor._PATIENCE_SECONDS", 3600)
    seen: list[Status] = []

    class Listener(Hook):
        def after_transition(self, _id: str, _before: JobState, after: JobState, _queue: Queue) -> None:
            seen.append(after.status)

    cluster.alter = saying("the container is being started")
    office.worker(runner=cluster, hooks=[Listener()])
    job_id = office.submit(waits_for(tmp_path / "go"))
    wait_until(lambda: office.client.progress(office.client.get(job_id)), 30, "it runs")
    (tmp_path / "go").touch()
    assert office.wait(job_id).job.status is Status.SUCCESS
    assert Status.RUNNING_WARN not in seen


def test_a_driver_that_does_not_fit_is_given_up_with_the_reason_of_the_cluster(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.handlers.running._OBEY_SECONDS", 0.2)  # nothing there would obey
    cluster = Cluster(SparkSubmits(office.settings.state_dir, spark_submit=("/bin/sh", "-c", "sleep 600")))
    cluster.alter = saying(NO_ROOM)
    office.worker(runner=cluster)
    job_id = office.submit("pass", timeout={"submit": 3}, retry={"attempts": 1, "submissions": 1})
    wait_until(lambda: office.client.get(job_id).warning == NO_ROOM, 20, "the warning before it has begun")
    detail = office.wait(job_id)
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.type) == ("submission", "SubmitTimeout")
    assert detail.job.error.message.endswith(NO_ROOM)


def test_why_a_cluster_ended_a_driver_is_the_error_of_the_job(
    office: Office, cluster: Cluster, tmp_path: Path
) -> None:
    job_id = running(office, cluster, tmp_path / "go")
    cluster.alter = ending(Failure("memory", "OOMKilled", "the pod had 1408Mi"))
    cluster.submits.kill(office.client.detail(job_id).run_key + "-1", grace_seconds=0)
    detail = office.wait(job_id)
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.type) == ("memory", "OOMKilled")
    assert detail.job.error.message == "the pod had 1408Mi"
    assert detail.attempts[-1]["state"] == "failed"


@pytest.mark.parametrize("is_passing", [True, False])
def test_a_submission_that_is_refused_is_tried_again_only_where_that_may_help(
    office: Office, is_passing: bool
) -> None:
    cluster = Cluster(SparkSubmits(office.settings.state_dir, spark_submit=("/bin/true",)))
    cluster.alter = ending(Failure("submission", "Refused", "queue etl is full", is_passing=is_passing))
    office.worker(runner=cluster)
    retry = {"attempts": 1, "submissions": 2, "delay": "100ms"}
    detail = office.wait(office.submit("pass", retry=retry))
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert detail.job.error.message == "queue etl is full"
    assert detail.job.attempt == (2 if is_passing else 1)


class Forgets:
    """Lists nothing, or a submission that ended before any driver was seen."""

    def __init__(self, *, lists_launcher: bool = False) -> None:
        self.lists_launcher = lists_launcher
        self.said = 0

    def __call__(self, found: list[Submission]) -> list[Submission]:
        self.said += 1
        unseen = [replace(each, state=RunState.GONE, exit_code=None, is_end_observed=False) for each in found]
        return unseen if self.lists_launcher else []


@pytest.mark.parametrize("lists_launcher", [False, True])
def test_a_driver_that_its_cluster_has_forgotten_is_lost_when_it_shows_no_life_for_its_lease_either(
    office: Office,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    lists_launcher: bool,
) -> None:
    monkeypatch.setattr("orchestrator.handlers.supervision._SILENCE_SECONDS", 1.0)
    monkeypatch.setattr("orchestrator.handlers.supervision._LOOKS_PER_LEASE", 50)
    job_id = running(office, cluster, tmp_path / "go", timeout={"lease": 5})
    run = office.client.detail(job_id).run_key + "-1"
    forgets = cluster.alter = Forgets(lists_launcher=lists_launcher)
    wait_until(lambda: forgets.said > 20, 30, "the worker has often heard that nothing is known of it")
    attempt = office.client.attempt(office.client.get(job_id))
    assert attempt is not None
    assert not office.client.get(job_id).is_final, "as long as it shows life it is not lost"
    cluster.submits.kill(run, grace_seconds=0)
    session = office.session()
    wait_until(lambda: session.exists(attempt.alive) is None, 30, "it shows no life any more")
    heard = forgets.said
    wait_until(lambda: forgets.said > heard + 20, 30, "that nothing is known of it is heard again")
    assert not office.client.get(job_id).is_final, "it may run on without contact for as long as its lease"
    words = "its driver shows no life: after 35 s of that it counts as lost"
    wait_until(lambda: office.client.get(job_id).warning == words, 30, "the warning is shown")
    monkeypatch.setattr("orchestrator.handlers.liveness._LEASE_MARGIN_SECONDS", -4.0)
    detail = office.wait(job_id)
    assert detail.job.error is not None
    assert detail.job.error.error_class == "lost"
    assert "its driver has shown no life for" in detail.job.error.message


@pytest.mark.parametrize("state", [RunState.GONE, RunState.EXITED])
def test_a_driver_that_shows_life_is_not_lost_whatever_its_cluster_says_of_its_end(
    office: Office, cluster: Cluster, tmp_path: Path, state: RunState
) -> None:
    job_id = running(office, cluster, tmp_path / "go")
    talker = cluster.alter = Wrong(state)
    wait_until(lambda: talker.said > 20, 30, "the worker has often heard that it has ended")
    assert not office.client.get(job_id).is_final
    (tmp_path / "go").touch()
    assert office.wait(job_id).job.status is Status.SUCCESS


@pytest.mark.parametrize("is_limit", [False, True], ids=["by an operator", "timeout.run"])
def test_a_driver_that_its_cluster_has_forgotten_is_killed_when_it_can_not_run_any_more(
    office: Office, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_limit: bool
) -> None:
    monkeypatch.setattr("orchestrator.handlers.kill._UNSEEN_LOOK_SECONDS", 0.1)
    monkeypatch.setattr("orchestrator.handlers.supervision._LOOK_SECONDS", 0.1)
    limits = {"lease": 5, "on_run": "retry", **({"run": 5} if is_limit else {})}
    job_id = running(office, cluster, tmp_path / "go", timeout=limits, retry={"attempts": 2, "delay": "0s"})
    first = office.client.detail(job_id).run_key + "-1"
    cluster.alter = lambda found: [] if found and found[0].run == first else found
    attempt = office.client.attempt(office.client.get(job_id))
    assert attempt is not None
    cluster.submits.kill(first, grace_seconds=0)  # a cut: no sign of life and no observed end
    session = office.session()
    wait_until(lambda: session.exists(attempt.alive) is None, 30, "it shows no life any more")
    kills, end = [], cluster.kill

    def count(run: str, *, grace_seconds: float) -> None:
        kills.append(run)
        end(run, grace_seconds=grace_seconds)

    monkeypatch.setattr(cluster, "kill", count)
    if not is_limit:
        office.client.kill(job_id)
    wait_until(lambda: len(kills) > 5, 30, "its cluster has often said that nothing of it is left")
    detail = office.client.detail(job_id)
    assert ([each["state"] for each in detail.attempts], detail.job.is_final) == (["started"], False)
    (tmp_path / "go").touch()
    monkeypatch.setattr("orchestrator.handlers.liveness._LEASE_MARGIN_SECONDS", -5.0)
    assert office.wait(job_id).job.status is (Status.SUCCESS if is_limit else Status.KILL)


class Wrong:
    """Reports running drivers as ended."""

    def __init__(self, state: RunState) -> None:
        self.state, self.said = state, 0

    def __call__(self, found: list[Submission]) -> list[Submission]:
        self.said += 1
        code = 137 if self.state is RunState.EXITED else None
        return [replace(each, state=self.state, exit_code=code) for each in found]


@pytest.mark.parametrize("is_retried", [False, True])
def test_what_somebody_ended_on_its_cluster_is_killed_and_runs_again_only_where_that_is_asked_for(
    office: Office, cluster: Cluster, tmp_path: Path, *, is_retried: bool
) -> None:
    go = tmp_path / "go"
    on = ["lost", "killed"] if is_retried else ["lost"]
    retry = {"attempts": 2, "delay": "0s", "on": on}
    job_id = running(office, cluster, go, retry=retry)
    first = office.client.detail(job_id).run_key + "-1"
    failure = Failure("killed", "Killed", "Application application_1 was killed by user root")

    def killed(found: list[Submission]) -> list[Submission]:
        return ending(failure)(found) if found and found[0].run == first else found

    cluster.alter = killed
    cluster.submits.kill(first, grace_seconds=0)
    go.touch()
    detail = office.wait(job_id)
    states = [attempt["state"] for attempt in detail.attempts]
    if is_retried:
        assert (detail.job.status, states) == (Status.SUCCESS, ["killed", "succeeded"])
        return
    assert (detail.job.status, states) == (Status.KILL, ["killed"])
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.message) == ("killed", failure.message)


def test_a_submission_that_was_ended_on_its_cluster_before_its_begin_is_cancelled(office: Office) -> None:
    cluster = Cluster(SparkSubmits(office.settings.state_dir, spark_submit=("/bin/true",)))
    cluster.alter = ending(Failure("killed", "PodDeleted", "the pod was deleted"))
    office.worker(runner=cluster)
    detail = office.wait(office.submit("pass", retry={"attempts": 2, "delay": "0s"}))
    assert (detail.job.status, len(detail.attempts)) == (Status.CANCEL, 1)


def test_submissions_that_leave_no_trace_at_all_are_not_repeated_for_ever(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "_LOOK_SECONDS", 0.2)
    cluster = Cluster(SparkSubmits(office.settings.state_dir, spark_submit=("/bin/true",)))
    cluster.alter = lambda _found: []
    office.worker(runner=cluster)
    detail = office.wait(office.submit("pass", retry={"attempts": 1, "submissions": 1}))
    assert detail.job.error is not None
    assert "it was submitted 5 times" in detail.job.error.message


def test_the_reason_for_an_unfinished_kill_is_reported_until_it_finishes(
    office: Office, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = running(office, cluster, tmp_path / "go")
    end = cluster.kill

    def fail(_run: str, *, grace_seconds: float) -> None:
        raise KillError(f"whether pods are left is not known, grace {grace_seconds:g} s")

    monkeypatch.setattr(cluster, "kill", fail)
    office.client.kill(job_id)
    words = wait_until(lambda: office.client.get(job_id).warning, 30, "the reason")
    tried = r"try \d to go on has failed, again in \d+ s: whether pods are left is not known"
    assert re.search(tried, words)  # a busy machine sees a later one first
    monkeypatch.setattr(cluster, "kill", end)
    detail = office.wait(job_id)
    assert (detail.job.status, detail.job.warning) == (Status.KILL, None)
