"""What is special about drivers that are pods: how they end there, are refused, found again and removed."""

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


class Desk:
    """One worker's runner, with what the tests ask of it."""

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
        # Only then is its program what it will be: one that has just begun does not ignore a TERM yet.
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
def desk(kubernetes_site: KubernetesSite, main: Path, process_mark: str) -> Desk:
    assert process_mark
    return Desk(kubernetes_site, kubernetes_site.runner(driver_main=main))


def test_a_driver_runs_tells_its_exit_code_keeps_its_log_and_is_removed_without_a_rest(desk: Desk) -> None:
    submitted = desk.submit("print('said'); raise SystemExit(3)")
    ended = desk.wait(RunState.EXITED)
    assert (ended.incarnation, ended.exit_code, ended.failure) == (submitted.incarnation, 3, None)
    assert desk.runner.find(desk.run) == [ended]
    (log,) = desk.runner.logs(desk.run)
    assert (log.stream, log.path.read_text("utf-8")) == ("stdout", "said\n")
    assert log.path.stat().st_mode & 0o077 == 0

    desk.runner.cleanup(desk.run)
    assert desk.runner.find(desk.run) == []
    assert desk.runner.logs(desk.run) == []
    desk.site.check_nothing_is_left()


def test_kubernetes_refuses_a_second_driver_of_a_run_and_that_is_no_failure(desk: Desk) -> None:
    first = desk.submit(SLEEPS)
    desk.wait_up()
    second = desk.submit(SLEEPS)

    def both() -> dict[str, Submission]:
        return {found.incarnation: found for found in desk.runner.find(desk.run)}

    wait_until(lambda: both()[second.incarnation].state is RunState.EXITED, END_S, "the second is refused")
    found = both()
    assert found[first.incarnation].state is RunState.RUNNING
    assert (found[second.incarnation].exit_code, found[second.incarnation].failure) == (
        exit_codes.SUPERSEDED,
        None,
    )
    assert "already exists" in found[second.incarnation].detail
    assert len(desk.site.cluster.pods(desk.site.namespace)) == 1


def test_a_driver_that_needs_more_memory_than_it_may_have_ended_for_its_memory(desk: Desk) -> None:
    desk.submit(SLEEPS)
    desk.wait_up()
    desk.site.cluster.kubelet.oom_kill(desk.site.namespace, pod_name(desk.run))
    failure = desk.failure()
    assert (failure.error_class, failure.type) == ("memory", "OOMKilled")
    assert desk.only().exit_code == 137


@pytest.mark.parametrize(
    ("accident", "reason", "is_seen"),
    [
        ("evict", "Evicted", True),
        ("preempt", "PreemptionByScheduler", True),
        ("lose_node", "DeletionByTaintManager", False),
    ],
)
def test_a_driver_that_its_cluster_takes_away_ended_for_its_infrastructure(
    desk: Desk, accident: str, reason: str, *, is_seen: bool
) -> None:
    desk.submit(SLEEPS)
    desk.wait_up()
    wait_until(desk.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001
    getattr(desk.site.cluster.kubelet, accident)(desk.site.namespace, pod_name(desk.run))
    failure = desk.failure()
    assert (failure.error_class, failure.type) == ("infrastructure", reason)
    assert desk.only().is_end_observed is is_seen


@pytest.mark.parametrize("grace_seconds", [0, 5])
def test_a_pod_that_somebody_deleted_was_killed_and_is_never_a_success(
    desk: Desk, grace_seconds: int
) -> None:
    desk.submit(SLEEPS)
    desk.wait_up()
    wait_until(desk.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001
    path = f"/api/v1/namespaces/{desk.site.namespace}/pods/{pod_name(desk.run)}"
    desk.site.cluster.api.delete(path, grace_seconds=grace_seconds)
    failure = desk.failure()
    assert (failure.error_class, failure.type) == ("killed", "PodDeleted")
    desk.site.cluster.wait_until_gone(desk.site.namespace, pod_name(desk.run))
    assert desk.only().failure == failure, "it is still known when its pod is gone"
    assert desk.only().is_end_observed


def test_a_pod_that_is_only_not_listed_any_more_is_not_taken_for_ended(desk: Desk) -> None:
    desk.submit(SLEEPS)
    desk.wait_up()
    wait_until(desk.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001
    path = f"/api/v1/namespaces/{desk.site.namespace}/pods/{pod_name(desk.run)}"
    labels = {"metadata": {"labels": {RUN_LABEL: None}}}
    desk.site.cluster.api.patch(path, labels)
    wait_until(lambda: desk.only().state is RunState.GONE, END_S, "nothing is known of it")
    assert not desk.only().is_end_observed
    assert desk.runner.find(desk.run) == [desk.only()]
    desk.site.cluster.api.patch(path, {"metadata": {"labels": {RUN_LABEL: desk.run}}})
    assert desk.wait(RunState.RUNNING)


def test_an_image_that_is_not_to_be_had_ends_after_its_time_in_the_words_of_the_api(
    kubernetes_site: KubernetesSite, main: Path
) -> None:
    desk = Desk(kubernetes_site, kubernetes_site.runner(driver_main=main, stuck_seconds=2))
    desk.submit(SLEEPS, kubernetes_site.target(image=f"{ABSENT_IMAGE}/spark:1"))
    failure = desk.failure()
    assert failure.error_class == "submission"
    assert failure.type in {"ErrImagePull", "ImagePullBackOff"}
    assert f'failed to pull image "{ABSENT_IMAGE}/spark:1"' in failure.message
    assert failure.is_passing
    kubernetes_site.cluster.wait_until_gone(kubernetes_site.namespace, pod_name(desk.run))
    assert desk.only().failure == failure, "it is still known when its pod is gone"


def test_a_driver_that_is_too_big_for_every_node_waits_and_says_for_what(desk: Desk) -> None:
    desk.submit(SLEEPS, conf={"spark.driver.memory": "900g"})
    wait_until(lambda: "Insufficient memory" in desk.only().detail, END_S, "the reason is told")
    assert desk.only().state is RunState.RUNNING
    desk.runner.kill(desk.run, grace_seconds=1)
    assert desk.only().state is RunState.EXITED


def test_a_quota_that_is_full_is_a_submission_that_may_be_tried_again(desk: Desk) -> None:
    desk.site.cluster.quota(desk.site.namespace, {"pods": "0"})
    desk.submit(SLEEPS)
    failure = desk.failure()
    assert (failure.error_class, failure.type, failure.is_passing) == ("submission", "Forbidden", True)
    assert "exceeded quota" in failure.message


def test_a_worker_without_rights_says_which_it_lacks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    site = desk.site
    token = site.cluster.account(site.namespace, "nobody", [])
    config = site.cluster.kubeconfig(site.folder / "nobody", site.namespace, token)
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(SubmissionError, match="cannot create resource"):
        desk.submit(SLEEPS)
    with pytest.raises(KubernetesError, match="cannot list resource"):
        desk.runner.find(desk.run)


def test_kill_ends_driver_and_executors_that_ignore_a_term_and_stays_what_it_was(desk: Desk) -> None:
    submitted = desk.submit(IGNORES_TERM)
    desk.wait_up()
    labels = {RUN_LABEL: desk.run, INCARNATION_LABEL: submitted.incarnation, "spark-role": "executor"}
    deaf = {"name": "main", "image": "any", "command": [sys.executable, "-c", IGNORES_TERM]}
    executor = {
        "metadata": {"name": "executor", "labels": labels},
        "spec": {"containers": [deaf], "restartPolicy": "Never"},
    }
    path = f"/api/v1/namespaces/{desk.site.namespace}/pods"
    desk.site.cluster.api.create(path, executor)
    with pytest.raises(SparkRunnerError, match="kill it before"):
        desk.runner.cleanup(desk.run)
    started = time.monotonic()
    desk.runner.kill(desk.run, grace_seconds=2)
    assert time.monotonic() - started < 20
    # All have ended. The node tells the API of that first, and then that it may forget the pod.
    wait_until(lambda: not desk.site.cluster.pods(desk.site.namespace), END_S, "the pods are forgotten")
    killed = desk.only()
    assert (killed.state, killed.exit_code) == (RunState.EXITED, exit_codes.KILLED)
    assert "up" in desk.runner.logs(desk.run)[0].path.read_text("utf-8"), "the log outlives the pod"
    desk.runner.kill(desk.run, grace_seconds=2)
    assert desk.only() == killed


def test_kill_ends_a_spark_submit_that_is_still_under_way(
    kubernetes_site: KubernetesSite, main: Path, process_mark: str
) -> None:
    assert process_mark
    slow = (sys.executable, "-c", "import time; time.sleep(600)")
    desk = Desk(kubernetes_site, kubernetes_site.runner(driver_main=main, spark_submit=slow))
    desk.submit(SLEEPS)
    assert desk.only().state is RunState.RUNNING
    desk.runner.kill(desk.run, grace_seconds=2)
    assert desk.only().state in {RunState.EXITED, RunState.GONE}
    desk.runner.cleanup(desk.run)
    assert desk.runner.find(desk.run) == []


def test_kill_says_so_when_a_pod_does_not_go(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_runner.runners.kubernetes.pods.FORCED_SECONDS", 1)
    desk.submit(SLEEPS)
    desk.wait_up()
    path = f"/api/v1/namespaces/{desk.site.namespace}/pods/{pod_name(desk.run)}"
    stays = {"metadata": {"finalizers": ["tests/stays"]}}
    with desk.site.cluster.kubelet.away():
        desk.site.cluster.api.patch(path, stays)
        with pytest.raises(KillError, match=pod_name(desk.run)):
            desk.runner.kill(desk.run, grace_seconds=1)
        desk.site.cluster.api.patch(path, {"metadata": {"finalizers": None}})


def test_a_worker_on_another_host_finds_watches_and_ends_what_was_submitted_here(
    desk: Desk, main: Path
) -> None:
    submitted = desk.submit(SLEEPS)
    desk.wait_up()
    backend = KubernetesBackend(SparkSubmits(desk.site.folder / "other"), driver_main=main)
    other = backend.runner_at(desk.runner.place())
    assert other is not None
    assert other is backend.runner_for(desk.site.target())
    assert desk.only(other) == desk.only()
    assert desk.only(other).incarnation == submitted.incarnation
    other.kill(desk.run, grace_seconds=2)
    wait_until(lambda: desk.only().state is not RunState.RUNNING, END_S, "the first worker knows")
    other.cleanup(desk.run)


def test_polling_asks_the_api_for_nothing_while_the_watch_tells_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.submit(SLEEPS)
    desk.wait_up()
    wait_until(desk.runner._watch.pods, END_S, "the pods are watched")  # noqa: SLF001

    def refuse(*_: object) -> None:
        raise AssertionError("a list of all pods")

    monkeypatch.setattr(desk.runner._api, "pods", refuse)  # noqa: SLF001
    for _ in range(10):
        assert desk.only().state is RunState.RUNNING
    desk.site.cluster.kubelet.oom_kill(desk.site.namespace, pod_name(desk.run))
    assert desk.failure().type == "OOMKilled"


def test_while_the_api_is_away_nothing_is_known_and_afterwards_everything_is_listed_again(desk: Desk) -> None:
    submitted = desk.submit(SLEEPS)
    desk.wait_up()
    plane = desk.site.cluster.plane
    plane.stop_api()
    try:
        with pytest.raises(KubernetesError, match="does not answer"):
            desk.runner.find(desk.run)
        wait_until(lambda: _raises(desk), END_S, "the watch has seen it too")
        with pytest.raises(KillError):
            desk.runner.kill(desk.run, grace_seconds=1)
        with pytest.raises(SubmissionError, match="does not answer"):
            desk.submit(SLEEPS)
    finally:
        plane.start_api()
    found = desk.runner.find(desk.run)
    assert [(each.incarnation, each.state) for each in found] == [(submitted.incarnation, RunState.RUNNING)]

    api = desk.runner._api  # noqa: SLF001 - what goes wrong between two parts
    with pytest.raises(KubernetesError) as error:  # what the API remembers of the past begins with its start
        list(api.watch_pods(desk.site.namespace, RUN_LABEL, "1"))
    assert error.value.status == 410
    real, versions = api.pods, list[str]()

    def stale(namespace: str, selector: str) -> tuple[list[dict[str, Any]], str]:
        documents, version = real(namespace, selector)
        versions.append(version)
        return documents, "1" if len(versions) == 1 else version

    watching = SimpleNamespace(pods=stale, watch_pods=api.watch_pods)
    watch = PodWatch(watching, desk.site.namespace)  # type: ignore[arg-type] # what it asks for
    wait_until(lambda: watch.pods() and len(versions) == 2, END_S, "the pods are listed again")
    desk.site.cluster.kubelet.oom_kill(desk.site.namespace, pod_name(desk.run))

    def ended() -> bool:
        return [pod.exit_code for pod in watch.pods() or ()] == [137]

    wait_until(ended, END_S, "the end of the driver is seen by watching")
    assert len(versions) == 2, "once too old, once again, and then nothing but events"


def _raises(desk: Desk) -> bool:
    try:
        desk.runner.poll_many([desk.run])
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
def test_what_can_never_be_a_pod_is_refused_before_anything_is_made(
    desk: Desk, options: dict[str, str], conf: dict[str, str], words: str
) -> None:
    with pytest.raises(RefusedSubmission, match=words):
        desk.submit(SLEEPS, desk.site.target(**options), conf)
    assert desk.runner.find(desk.run) == []
    assert desk.site.cluster.names(desk.site.namespace, "secrets") == set()


def test_a_pod_that_the_watch_does_not_show_yet_is_not_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.runner._watch, "pods", list)  # noqa: SLF001 - it lags behind
    desk.submit(SLEEPS)
    desk.wait_up()
    launchers = desk.runner._submits  # noqa: SLF001 - to know that nothing but the pod can tell
    wait_until(lambda: launchers.find(desk.run)[0].exit_code == 0, END_S, "the pod was handed over")
    assert desk.only().state is RunState.RUNNING
