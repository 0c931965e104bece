"""Jars on Kubernetes: the pod is the JVM, and its image has no Python."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_runner import exit_codes
from spark_runner.attempt import Attempt, AttemptState
from spark_runner.runners.base import RunState, Submission, SubmitRequest
from spark_runner.runners.kubernetes.launch import pod_name
from tests.jar_support import make_jar
from tests.kubernetes_support import KubernetesSite
from tests.runner_kits import Kit, open_kit
from tests.servers.kubernetes.container import JAVA_IMAGE
from tests.waiting import wait_until

# The API server may have to be built.
pytestmark = [pytest.mark.spark, pytest.mark.kubernetes, pytest.mark.timeout(1800)]

END_S = 180


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jars")
    make_jar("Program", folder)
    return folder


@pytest.fixture
def kit(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    with open_kit(
        "kubernetes", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path
    ) as opened:
        opened.target = replace(opened.target, options={**opened.target.options, "image": JAVA_IMAGE})
        yield opened


def submit(kit: Kit, attempt: Attempt, jar: Path, *arguments: str) -> SubmitRequest:
    asked = kit.request(attempt, "pass")
    plan = {key: value for key, value in asked.plan.items() if key != "python"}
    plan["jar"] = {"class": jar.stem.title(), "arguments": list(arguments)}
    conf = {**asked.conf, "spark.jars": f"local://{jar}"}
    request = replace(asked, plan=plan, conf=conf)
    kit.runner.submit(request)
    return request


def found(kit: Kit, attempt: Attempt, request: SubmitRequest) -> Submission:
    return next(each for each in kit.runner.find(attempt.run) if each.incarnation == request.incarnation)


def test_a_jar_runs_once_with_executors_where_there_is_no_python(
    kit: Kit, jars: Path, tmp_path: Path, kubernetes_site: KubernetesSite
) -> None:
    attempt = kit.attempt()
    arguments = ("7", "write", str(tmp_path / "rows"))
    submit(kit, attempt, jars / "program.jar", *arguments)
    (ended,) = kit.wait_ended(attempt.run)
    words = "".join(log.path.read_text("utf-8") for log in kit.runner.logs(attempt.run))
    assert (ended.state, ended.exit_code) == (RunState.EXITED, 0), words[-5000:]
    assert (tmp_path / "rows").read_text("utf-8") == "7 mine"
    recorded = kit.read(attempt.path)
    assert recorded.state is AttemptState.SUCCEEDED
    assert recorded.document["application_id"].startswith("spark-")
    assert ended.outcome == {"state": "succeeded", "exit_code": 0}

    path = f"/api/v1/namespaces/{kubernetes_site.namespace}/pods/{pod_name(attempt.run)}"
    kubernetes_site.cluster.api.delete(path, grace_seconds=0)
    kubernetes_site.cluster.wait_until_gone(kubernetes_site.namespace, pod_name(attempt.run))
    (tmp_path / "rows").unlink()
    late = submit(kit, attempt, jars / "program.jar", *arguments)  # the name of its pod is free
    wait_until(lambda: found(kit, attempt, late).state is RunState.EXITED, END_S, "the late one has ended")
    refused = found(kit, attempt, late)
    assert (refused.exit_code, refused.failure) == (exit_codes.SUPERSEDED, None)
    assert not (tmp_path / "rows").exists(), "its program did not run a second time"
    assert kit.read(attempt.path).document == recorded.document
    kit.runner.cleanup(attempt.run)
    kit.check_removed()
