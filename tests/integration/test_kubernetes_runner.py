"""Drivers in pods: their ends, refusals, discovery and removal."""

import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_runner.protocol import exit_codes
from spark_runner.protocol.errors import KillError, RefusedSubmission, SparkRunnerError, SubmissionError
from spark_runner.runners.base import Failure, Runner, RunState, SparkTarget, Submission, SubmitRequest
from spark_runner.runners.kubernetes.api import KubernetesError
from spark_runner.runners.kubernetes.backend import KubernetesBackend
from spark_runner.runners.kubernetes.launch import pod_name
from spark_runner.runners.kubernetes.pod import INCARNATION_LABEL, RUN_LABEL
from spark_runner.runners.kubernetes.pods import PodWatch
from spark_runner.runners.kubernetes.runner import KubernetesRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.kubernetes_support import KubernetesSite
from tests.servers.kubernetes.pod import ABSENT_IMAGE
from tests.standin_pod_submit import PLAIN
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)  # the API server is built where it is not in the cache yet

DRIVER = "import json, sys; exec(json.load(open(sys.argv[1]))['code'])"
SLEEPS = "import time; print('up', flush=True); time.sleep(600)"
IGNORES_TERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"
END_S = 60


class Harness:
    """One worker's runner, with helpers of the tests."""

    def __init__(self, site: KubernetesSite, runner: KubernetesRunner) -> None:
        self.site = site
        self.runner = runner
        self.run = f"{uuid.uuid4()}-1"

    def submit(
        self, code: str, target: SparkTarget | None = None, conf: Mapping[str, str] | None = None
    ) -> SubmitRequest:
        properties = {PLAIN: "true", **(conf or {})}
        request = SubmitRequest(
            self.run, uuid.uuid4().hex, "a name", {"code": code}, target or self.site.target(), properties
        )
        self.runner.submit(request)
        return request

    def only(self, runner: Runner | None = None) -> Submission:
        (found,) = (runner or self.runner).poll_many([self.run])[self.run]
        return found

    def wait(self, state: RunState) -> Submission:
        wait_until(lambda: self.only().state is state, END_S, f"{state}")
        return self.only()

    def wait_up(self) -> None:
        wait_until(lambda: self.phase() == "Running", END_S, "the pod runs")
        log = f"/api/v1/namespaces/{self.site.namespace}/pods/{pod_name(self.run)}/log"
        # Before that, the program has not set its handlers: it does not ignore a TERM yet.
        wait_until(lambda: "up" in self.site.cluster.api.text(log), END_S, "its program runs")

    def phase(self) -> str:
        pod = self.site.cluster.pod(self.site.namespace, pod_name(self.run))
        return pod["status"]["phase"] if pod else ""

    def failure(self) -> Failure:
        failure = self.wait(RunState.EXITED).failure
        assert failure is not None
        return failure


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "main.py"
    path.write_text(DRIVER, "utf-8")
    return path


@pytest.fixture
def harness(kubernetes_site: KubernetesSite, main: Path, process_mark: str) -> Harness:
    assert process_mark
    return Harness(kubernetes_site, kubernetes_site.runner(driver_main=main))


def test_a_driver_reports_its_exit_code_keeps_its_log_and_is_removed_completely(
    harness: Harness,
) -> None:
    submitted = harness.submit("print('said'); raise SystemExit(3)")
    ended = harness.wait(RunState.EXITED)
    assert (ended.incarnation, ended.exit_code, ended.failure) == (submitted.incarnation, 3, None)
    assert harness.runner.find(harness.run) == [ended]
    (log,) = harness.runner.logs(harness.run)
    assert (log.stream, log.path.read_text("utf-8")) == ("stdout", "said\n")
    assert log.path.stat().st_mode & 0o077 == 0

    harness.runner.cleanup(harness.run)
    assert harness.runner.find(harness.run) == []
    assert harness.runner.logs(harness.run) == []
    harness.site.check_nothing_is_left()


def test_kubernetes_refuses_a_second_driver_of_a_run_and_that_is_no_failure(harness: Harness) -> None:
    first = harness.submit(SLEEPS)
    harness.wait_up()
    second = harness.submit(SLEEPS)

    def both() -> dict[str, Submission]:
        return {found.incarnation: found for found in harness.runner.find(harness.run)}

    wait_until(lambda: both()[second.incarnation].state is RunState.EXITED, END_S, "the second is refused")
    found = both()
    assert found[first.incarnation].state is RunState.RUNNING
    assert (found[second.incarnation].exit_code, found[second.incarnation].failure) == (
        exit_codes.SUPERSEDED,
        None,
    )
    assert "already exists" in found[second.incarnation].detail
    assert len(harness.site.cluster.pods(harness.site.namespace)) == 1


def test_a_driver_that_needs_more_memory_than_it_may_have_ended_for_its_memory(harness: Harness) -> None:
    harness.submit(SLEEPS)
    harness.wait_up()
    harness.site.cluster.kubelet.oom_kill(harness.site.namespace, pod_name(harness.run))
    failure = harness.failure()
    assert (failure.error_class, failure.type, failure.short_of) == (
        "memory",
        "OOMKilled",
        "driver.container",
    )
    assert harness.only().exit_code == 137


@pytest.mark.parametrize(
    ("accident", "reason", "is_seen"),
    [
        ("evict", "Evicted", True),
        ("preempt", "PreemptionByScheduler", True),
        ("lose_node", "DeletionByTaintManager", False),
    ],
)
def test_a_driver_that_its_cluster_takes_away_ended_for_its_infrastructure(
    harness: Harness, accident: str, reason: str, *, is_seen: bool
) -> None:
    harness.submit(SLEEPS)
    harness.wait_up()
    wait_until(harness.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001
    getattr(harness.site.cluster.kubelet, accident)(harness.site.namespace, pod_name(harness.run))
    failure = harness.failure()
    assert (failure.error_class, failure.type) == ("infrastructure", reason)
    assert harness.only().is_end_observed is is_seen


@pytest.mark.parametrize("grace_seconds", [0, 5])
def test_a_pod_that_somebody_deleted_was_killed_and_is_never_a_success(
    harness: Harness, grace_seconds: int
) -> None:
    harness.submit(SLEEPS)
    harness.wait_up()
    wait_until(harness.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001
    path = f"/api/v1/namespaces/{harness.site.namespace}/pods/{pod_name(harness.run)}"
    harness.site.cluster.api.delete(path, grace_seconds=grace_seconds)
    failure = harness.failure()
    assert (failure.error_class, failure.type) == ("killed", "PodDeleted")
    harness.site.cluster.wait_until_gone(harness.site.namespace, pod_name(harness.run))
    assert harness.only().failure == failure, "it is still reported when its pod is gone"
    assert harness.only().is_end_observed


def test_a_pod_that_is_only_not_listed_any_more_is_not_taken_for_ended(harness: Harness) -> None:
    harness.submit(SLEEPS)
    harness.wait_up()
    wait_until(harness.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001
    path = f"/api/v1/namespaces/{harness.site.namespace}/pods/{pod_name(harness.run)}"
    labels = {"metadata": {"labels": {RUN_LABEL: None}}}
    harness.site.cluster.api.patch(path, labels)
    wait_until(lambda: harness.only().state is RunState.GONE, END_S, "nothing is known of it")
    assert not harness.only().is_end_observed
    assert harness.runner.find(harness.run) == [harness.only()]
    harness.site.cluster.api.patch(path, {"metadata": {"labels": {RUN_LABEL: harness.run}}})
    assert harness.wait(RunState.RUNNING)


def test_an_image_that_is_not_to_be_had_ends_after_its_time_in_the_words_of_the_api(
    kubernetes_site: KubernetesSite, main: Path
) -> None:
    harness = Harness(kubernetes_site, kubernetes_site.runner(driver_main=main, stuck_seconds=2))
    harness.submit(SLEEPS, kubernetes_site.target(image=f"{ABSENT_IMAGE}/spark:1"))
    failure = harness.failure()
    assert failure.error_class == "submission"
    assert failure.type in {"ErrImagePull", "ImagePullBackOff"}
    assert f'failed to pull image "{ABSENT_IMAGE}/spark:1"' in failure.message
    assert failure.is_passing
    kubernetes_site.cluster.wait_until_gone(kubernetes_site.namespace, pod_name(harness.run))
    assert harness.only().failure == failure, "it is still reported when its pod is gone"


def test_a_driver_that_is_too_big_for_every_node_waits_and_says_for_what(harness: Harness) -> None:
    harness.submit(SLEEPS, conf={"spark.driver.memory": "900g"})
    wait_until(lambda: "Insufficient memory" in harness.only().detail, END_S, "the reason is reported")
    assert harness.only().state is RunState.RUNNING
    harness.runner.kill(harness.run, grace_seconds=1)
    assert harness.only().state is RunState.EXITED


def test_a_quota_that_is_full_is_a_submission_that_may_be_tried_again(harness: Harness) -> None:
    harness.site.cluster.quota(harness.site.namespace, {"pods": "0"})
    harness.submit(SLEEPS)
    failure = harness.failure()
    assert (failure.error_class, failure.type, failure.is_passing) == ("submission", "Forbidden", True)
    assert "exceeded quota" in failure.message


def test_a_worker_without_rights_says_which_it_lacks(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = harness.site
    token = site.cluster.account(site.namespace, "nobody", [])
    config = site.cluster.kubeconfig(site.folder / "nobody", site.namespace, token)
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(SubmissionError, match="cannot create resource"):
        harness.submit(SLEEPS)
    with pytest.raises(KubernetesError, match="cannot list resource"):
        harness.runner.find(harness.run)


def test_kill_ends_driver_and_executors_that_ignore_a_term_and_stays_what_it_was(harness: Harness) -> None:
    submitted = harness.submit(IGNORES_TERM)
    harness.wait_up()
    labels = {RUN_LABEL: harness.run, INCARNATION_LABEL: submitted.incarnation, "spark-role": "executor"}
    deaf = {"name": "main", "image": "any", "command": [sys.executable, "-c", IGNORES_TERM]}
    executor = {
        "metadata": {"name": "executor", "labels": labels},
        "spec": {"containers": [deaf], "restartPolicy": "Never"},
    }
    path = f"/api/v1/namespaces/{harness.site.namespace}/pods"
    harness.site.cluster.api.create(path, executor)
    with pytest.raises(SparkRunnerError, match="kill it before"):
        harness.runner.cleanup(harness.run)
    started = time.monotonic()
    harness.runner.kill(harness.run, grace_seconds=2)
    assert time.monotonic() - started < 20
    # All have ended. The node reports that to the API first, and then that the pod may be removed.
    wait_until(lambda: not harness.site.cluster.pods(harness.site.namespace), END_S, "the pods are forgotten")
    killed = harness.only()
    assert (killed.state, killed.exit_code) == (RunState.EXITED, exit_codes.KILLED)
    assert "up" in harness.runner.logs(harness.run)[0].path.read_text("utf-8"), "the log outlives the pod"
    harness.runner.kill(harness.run, grace_seconds=2)
    assert harness.only() == killed


def test_kill_ends_a_spark_submit_that_is_still_under_way(
    kubernetes_site: KubernetesSite, main: Path, process_mark: str
) -> None:
    assert process_mark
    slow = (sys.executable, "-c", "import time; time.sleep(600)")
    harness = Harness(kubernetes_site, kubernetes_site.runner(driver_main=main, spark_submit=slow))
    harness.submit(SLEEPS)
    assert harness.only().state is RunState.RUNNING
    harness.runner.kill(harness.run, grace_seconds=2)
    assert harness.only().state in {RunState.EXITED, RunState.GONE}
    harness.runner.cleanup(harness.run)
    assert harness.runner.find(harness.run) == []


def test_kill_says_so_when_a_pod_does_not_go(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_runner.runners.kubernetes.pods.FORCED_SECONDS", 1)
    harness.submit(SLEEPS)
    harness.wait_up()
    path = f"/api/v1/namespaces/{harness.site.namespace}/pods/{pod_name(harness.run)}"
    stays = {"metadata": {"finalizers": ["tests/stays"]}}
    with harness.site.cluster.kubelet.away():
        harness.site.cluster.api.patch(path, stays)
        with pytest.raises(KillError, match=pod_name(harness.run)):
            harness.runner.kill(harness.run, grace_seconds=1)
        harness.site.cluster.api.patch(path, {"metadata": {"finalizers": None}})


def test_a_worker_on_another_host_finds_watches_and_ends_what_was_submitted_here(
    harness: Harness, main: Path
) -> None:
    submitted = harness.submit(SLEEPS)
    harness.wait_up()
    backend = KubernetesBackend(SparkSubmits(harness.site.folder / "other"), driver_main=main)
    other = backend.runner_at(harness.runner.place())
    assert other is not None
    assert other is backend.runner_for(harness.site.target())
    assert harness.only(other) == harness.only()
    assert harness.only(other).incarnation == submitted.incarnation
    other.kill(harness.run, grace_seconds=2)
    wait_until(lambda: harness.only().state is not RunState.RUNNING, END_S, "the first worker has noticed")
    other.cleanup(harness.run)


def test_polling_lists_no_pods_while_the_watch_is_complete(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.submit(SLEEPS)
    harness.wait_up()
    wait_until(harness.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001

    def refuse(*_: object) -> None:
        raise AssertionError("a list of all pods")

    monkeypatch.setattr(harness.runner._api, "pods", refuse)  # noqa: SLF001
    for _ in range(10):
        assert harness.only().state is RunState.RUNNING
    harness.site.cluster.kubelet.oom_kill(harness.site.namespace, pod_name(harness.run))
    assert harness.failure().type == "OOMKilled"


def test_while_the_api_is_away_nothing_is_known_and_afterwards_everything_is_listed_again(
    harness: Harness,
) -> None:
    submitted = harness.submit(SLEEPS)
    harness.wait_up()
    plane = harness.site.cluster.plane
    plane.stop_api()
    try:
        with pytest.raises(KubernetesError, match="does not answer"):
            harness.runner.find(harness.run)
        wait_until(lambda: _raises(harness), END_S, "the watch has seen it too")
        with pytest.raises(KillError):
            harness.runner.kill(harness.run, grace_seconds=1)
        with pytest.raises(SubmissionError, match="does not answer"):
            harness.submit(SLEEPS)
    finally:
        plane.start_api()
    found = harness.runner.find(harness.run)
    assert [(each.incarnation, each.state) for each in found] == [(submitted.incarnation, RunState.RUNNING)]

    api = harness.runner._api  # noqa: SLF001 - the fault is between two parts
    with pytest.raises(KubernetesError) as error:  # the API keeps events only since its start
        list(api.watch_pods(harness.site.namespace, RUN_LABEL, "1"))
    assert error.value.status == 410
    real, versions = api.pods, list[str]()

    def stale(namespace: str, selector: str) -> tuple[list[dict[str, Any]], str]:
        documents, version = real(namespace, selector)
        versions.append(version)
        return documents, "1" if len(versions) == 1 else version

    watching = SimpleNamespace(pods=stale, watch_pods=api.watch_pods)
    watch = PodWatch(watching, harness.site.namespace)  # type: ignore[arg-type] # the parts that it uses
    wait_until(lambda: watch.pods() and len(versions) == 2, END_S, "the pods are listed again")
    harness.site.cluster.kubelet.oom_kill(harness.site.namespace, pod_name(harness.run))

    def ended() -> bool:
        return [pod.exit_code for pod in watch.pods() or ()] == [137]

    wait_until(ended, END_S, "the end of the driver is seen by watching")
    assert len(versions) == 2, "once too old, once again, and then nothing but events"


def _raises(harness: Harness) -> bool:
    try:
        harness.runner.poll_many([harness.run])
    except KubernetesError:
        return True
    return False


@pytest.mark.parametrize(
    ("options", "conf", "words"),
    [
        ({"image": ""}, {}, "no image"),
        ({"pod_template": "/nowhere/template.yaml"}, {}, "not a file"),
        ({}, {"spark.kubernetes.namespace": "other"}, "cannot set spark.kubernetes.namespace"),
    ],
)
def test_an_impossible_pod_is_refused_before_anything_is_created(
    harness: Harness, options: dict[str, str], conf: dict[str, str], words: str
) -> None:
    with pytest.raises(RefusedSubmission, match=words):
        harness.submit(SLEEPS, harness.site.target(**options), conf)
    assert harness.runner.find(harness.run) == []
    assert harness.site.cluster.names(harness.site.namespace, "secrets") == set()


def test_a_pod_that_the_watch_does_not_show_yet_is_not_gone(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness.runner._watch, "pods", list)  # noqa: SLF001 - it lags behind
    harness.submit(SLEEPS)
    harness.wait_up()
    launchers = harness.runner._submits  # noqa: SLF001 - to check that only the pod shows it
    wait_until(lambda: launchers.find(harness.run)[0].exit_code == 0, END_S, "the pod was handed over")
    assert harness.only().state is RunState.RUNNING
