"""The state of a submission, from the documents of the Kubernetes API and the last output of spark-submit."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol import exit_codes
from spark_runner.runners.base import Failure, RunState, Submission
from spark_runner.runners.kubernetes.launch import submission_of_launcher
from spark_runner.runners.kubernetes.pod import DRIVER_CONTAINER, INCARNATION_LABEL, RUN_LABEL, Pod
from spark_runner.runners.run_directory import RunDirectory

RUN, INCARNATION = "a-run-1", "an-incarnation"


def pod(
    phase: str = "Running", *, containers: tuple[str, ...] = (DRIVER_CONTAINER,), **status: Any
) -> dict[str, Any]:
    labels = {RUN_LABEL: RUN, INCARNATION_LABEL: INCARNATION, "spark-role": "driver"}
    return {
        "metadata": {
            "name": "orch-a-run-1-driver",
            "uid": "a-uid",
            "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [{"name": name} for name in containers]},
        "status": {"phase": phase, **status},
    }


def container(name: str = DRIVER_CONTAINER, **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


def ended(code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    return container(terminated={"exitCode": code, "reason": reason, **more})


def said(document: dict[str, Any]) -> Submission:
    return Pod.of(document).submission()


@pytest.mark.parametrize(
    ("document", "state", "code"),
    [
        (pod("Pending"), RunState.RUNNING, None),
        (pod("Running"), RunState.RUNNING, None),
        (pod("Unknown"), RunState.UNKNOWN, None),
        (pod("Succeeded"), RunState.EXITED, 0),
        (pod("Succeeded", containerStatuses=[ended(0, "Completed")]), RunState.EXITED, 0),
        (pod("Failed", containerStatuses=[ended(3)]), RunState.EXITED, 3),
        (pod("Failed"), RunState.GONE, None),
    ],
)
def test_the_phase_and_the_exit_code_make_the_state(
    document: dict[str, Any], state: RunState, code: int | None
) -> None:
    found = said(document)
    assert (found.run, found.incarnation, found.state, found.exit_code) == (RUN, INCARNATION, state, code)
    assert found.failure is None


def test_the_end_of_the_container_is_that_of_the_driver() -> None:
    at = "2026-01-01T00:00:00Z"
    assert said(pod("Failed", containerStatuses=[ended(3, finishedAt=at)])).ended == at
    assert said(pod("Failed", containerStatuses=[ended(3)])).ended == ""


def test_a_driver_has_ended_although_a_container_beside_it_still_runs() -> None:
    document = pod(
        "Running",
        containers=("proxy", DRIVER_CONTAINER),
        containerStatuses=[container("proxy", running={}), ended(4)],
    )
    assert (said(document).state, said(document).exit_code) == (RunState.EXITED, 4)


def test_the_exit_code_of_a_container_beside_the_driver_says_nothing() -> None:
    proxy = container("proxy", terminated={"exitCode": 0, "reason": "Completed"})
    document = pod(containers=("proxy", DRIVER_CONTAINER), containerStatuses=[proxy, container(running={})])
    assert said(document).state is RunState.RUNNING


@pytest.mark.parametrize(
    ("document", "error_class", "reason"),
    [
        (pod("Failed", containerStatuses=[ended(137, "OOMKilled")]), "memory", "OOMKilled"),
        (pod("Failed", reason="Evicted", message="low on memory"), "infrastructure", "Evicted"),
        (
            pod("Failed", reason="NodeShutdown", containerStatuses=[ended(143)]),
            "infrastructure",
            "NodeShutdown",
        ),
        (
            pod(
                "Failed",
                containerStatuses=[ended(143)],
                conditions=[
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                ],
            ),
            "infrastructure",
            "PreemptionByScheduler",
        ),
        (pod("Failed", containerStatuses=[ended(128, "StartError")]), "submission", "StartError"),
    ],
)
def test_an_end_that_only_the_cluster_reports_is_its_failure(
    document: dict[str, Any], error_class: str, reason: str
) -> None:
    found = said(document)
    assert found.state is RunState.EXITED
    assert found.failure is not None
    assert (found.failure.error_class, found.failure.type) == (error_class, reason)


def test_a_driver_that_ended_well_is_no_failure_though_its_pod_was_taken_away_then() -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    found = said(pod("Succeeded", containerStatuses=[ended(0, "Completed")], conditions=[disrupted]))
    assert (found.exit_code, found.failure) == (0, None)


@pytest.mark.parametrize("statuses", [[], [container(running={})], [ended(143)], [ended(137)]])
def test_a_driver_that_the_api_has_deleted_for_no_reason_of_its_own_was_killed(
    statuses: list[dict[str, Any]],
) -> None:
    found = Pod.of(pod("Running", containerStatuses=statuses)).gone().submission()
    assert (found.state, found.is_end_observed) == (RunState.EXITED, True)
    assert found.failure is not None
    assert (found.failure.error_class, found.failure.type) == ("killed", "PodDeleted")


def test_a_driver_that_could_not_begin_and_was_deleted_may_be_submitted_again() -> None:
    waiting = [container(waiting={"reason": "ImagePullBackOff"})]
    failure = Pod.of(pod("Pending", containerStatuses=waiting)).gone().submission().failure
    assert failure is not None
    assert (failure.error_class, failure.is_passing) == ("submission", True)


@pytest.mark.parametrize("reason", ["DeletionByTaintManager", "DeletionByPodGC"])
def test_the_end_of_a_driver_whose_node_is_lost_is_unobserved(reason: str) -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    lost = Pod.of(pod("Failed", conditions=[disrupted])).gone().submission()
    assert (lost.state, lost.is_end_observed) == (RunState.EXITED, False)
    found = Pod.of(pod("Failed", conditions=[disrupted], containerStatuses=[ended(143)])).gone().submission()
    assert found.is_end_observed, "its node reported the end before"


def test_a_driver_whose_end_was_seen_keeps_it_when_the_api_has_forgotten_it() -> None:
    seen = Pod.of(pod("Failed", containerStatuses=[ended(3)])).gone().submission()
    assert (seen.state, seen.exit_code) == (RunState.EXITED, 3)


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ('{"state": "failed", "exit_code": 1}', {"state": "failed", "exit_code": 1}),
        ("Killed by something else", None),
        ('{"state": "fai', None),
        ('{"other": 1}', None),
        ("", None),
    ],
)
def test_the_outcome_in_the_status_file_is_that_of_the_driver(
    message: str, outcome: dict[str, Any] | None
) -> None:
    assert said(pod("Failed", containerStatuses=[ended(1, message=message)])).outcome == outcome


def test_a_waiting_pod_shows_the_reason_unless_it_is_a_passing_state_of_its_start() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    waits = pod("Pending", conditions=[unscheduled])
    assert said(waits).detail == "pod orch-a-run-1-driver: Unschedulable: no node"
    creating = pod("Pending", containerStatuses=[container(waiting={"reason": "ContainerCreating"})])
    assert said(creating).detail == ""
    refused = pod(
        "Pending", containerStatuses=[container(waiting={"reason": "ErrImagePull", "message": "no"})]
    )
    assert said(refused).detail == "pod orch-a-run-1-driver: ErrImagePull: no"


def test_a_pod_is_stuck_since_it_has_its_node() -> None:
    since = (datetime.now(UTC) - timedelta(seconds=50)).strftime("%Y-%m-%dT%H:%M:%SZ")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
    waiting = [container(waiting={"reason": "ImagePullBackOff"})]
    found = Pod.of(pod("Pending", conditions=[scheduled], containerStatuses=waiting))
    assert 45 < found.stuck_seconds() < 60
    assert Pod.of(pod("Pending", conditions=[scheduled])).stuck_seconds() == 0


def launcher(
    folder: Path, code: int | None, words: str = "", state: RunState = RunState.EXITED
) -> Submission:
    directory = RunDirectory(folder / RUN / INCARNATION)
    directory.path.mkdir(parents=True)
    (directory.path / "stderr.log").write_text(words, "utf-8")
    return submission_of_launcher(Submission(RUN, INCARNATION, state, code), directory)


def refusal(code: int, reason: str, message: str) -> str:
    return (
        "26/01/01 00:00:00 INFO SparkKubernetesClientFactory: Auto-configuring K8S client\n"
        'Exception in thread "main" io.fabric8.kubernetes.client.KubernetesClientException: '
        f"Failure executing: POST at: https://10.0.0.1/api/v1/namespaces/etl/pods. Message: {message}. "
        f"Received status: Status(apiVersion=v1, code={code}, details=StatusDetails(kind=pods), kind=Status, "
        f"message={message}, metadata=ListMeta(), reason={reason}, status=Failure, more={{}}).\n"
        "\tat io.fabric8.kubernetes.client.KubernetesClientException.copyAsCause(X.java:205)\n"
    )


def test_a_second_submission_ends_as_superseded(tmp_path: Path) -> None:
    found = launcher(tmp_path, 1, refusal(409, "AlreadyExists", 'pods "x" already exists'))
    assert (found.exit_code, found.failure) == (exit_codes.SUPERSEDED, None)
    assert 'pods "x" already exists' in found.detail


@pytest.mark.parametrize(
    ("code", "reason", "message", "passing"),
    [
        (403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q, requested: pods=1', True),
        (403, "Forbidden", 'pods is forbidden: User "u" cannot create resource "pods"', False),
        (404, "NotFound", 'namespaces "etl" not found', False),
        (422, "Invalid", 'Pod "x" is invalid: spec.containers[0].image: Required value', False),
        (429, "TooManyRequests", "slow down", True),
        (500, "InternalError", "etcdserver: request timed out", True),
    ],
)
def test_a_refusal_has_the_words_of_the_api_and_is_tried_again_where_that_may_help(
    tmp_path: Path, code: int, reason: str, message: str, passing: bool
) -> None:
    failure = launcher(tmp_path, 1, refusal(code, reason, message)).failure
    words = f"Kubernetes refused the driver: {message}"
    assert failure == Failure("submission", reason, words, is_passing=passing)


def test_an_unreachable_cluster_is_distinguished_from_a_failed_program(tmp_path: Path) -> None:
    words = 'Exception in thread "main" java.net.ConnectException: Connection refused: /10.0.0.1:6443\n'
    failure = launcher(tmp_path / "a", 1, words).failure
    assert failure is not None
    assert (failure.type, failure.is_passing) == ("Unreachable", True)
    words = 'Exception in thread "main" org.apache.spark.SparkException: Please specify upload path\n'
    failure = launcher(tmp_path / "b", 1, words).failure
    assert failure is not None
    assert (failure.type, failure.is_passing) == ("SparkSubmit", False)
    assert "Please specify upload path" in failure.message


def test_a_submission_without_a_pod_runs_while_it_is_handed_over_and_is_gone_afterwards(
    tmp_path: Path,
) -> None:
    assert launcher(tmp_path / "a", None, state=RunState.RUNNING).state is RunState.RUNNING
    for number, (state, code) in enumerate(((RunState.EXITED, 0), (RunState.GONE, None))):
        found = launcher(tmp_path / str(number), code, state=state)
        assert (found.state, found.is_end_observed) == (RunState.GONE, False), "of a driver it says nothing"


def test_the_end_of_a_spark_submit_is_not_that_of_a_driver_that_has_begun(tmp_path: Path) -> None:
    assert not launcher(tmp_path, 137, "Killed").is_end_observed
