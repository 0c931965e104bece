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
from tests.scripted.ledger import Ledger
from tests.servers.kubernetes.container import JAVA_IMAGE
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]  # the API server may have to be built

END_S = 180


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jars")
    for name in ("Program", "Steps"):
        make_jar(name, folder)
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


def nothing_is_left(site: KubernetesSite) -> None:
    """But the code of today."""
    (code,) = site.cluster.names(site.namespace, "secrets")
    assert code.startswith("orch-driver-")
    site.cluster.wait_until_nothing_is_left(site.namespace, code)


def test_a_jar_runs_with_executors_where_there_is_no_python(
    kit: Kit, jars: Path, tmp_path: Path, kubernetes_site: KubernetesSite
) -> None:
    attempt = kit.attempt()
    submit(kit, attempt, jars / "program.jar", "7", "write", str(tmp_path / "rows"))
    (ended,) = kit.wait_ended(attempt.run)
    words = "".join(log.path.read_text("utf-8") for log in kit.runner.logs(attempt.run))
    assert (ended.state, ended.exit_code) == (RunState.EXITED, 0), words[-5000:]
    assert (tmp_path / "rows").read_text("utf-8") == "7 mine"
    recorded = kit.read(attempt.path)
    assert recorded.state is AttemptState.SUCCEEDED
    assert recorded.document["application_id"].startswith("spark-")
    assert ended.outcome == {"state": "succeeded", "exit_code": 0}
    kit.runner.cleanup(attempt.run)
    nothing_is_left(kubernetes_site)


def test_a_second_pod_is_refused_by_its_name_and_a_later_one_by_the_attempt(
    kit: Kit, jars: Path, tmp_path: Path, kubernetes_site: KubernetesSite
) -> None:
    site, ledger = kubernetes_site, tmp_path / "starts"
    attempt = kit.attempt()
    steps = (str(ledger), "wait", str(tmp_path / "never"))
    first = submit(kit, attempt, jars / "steps.jar", *steps)
    wait_until(ledger.exists, END_S, "the program runs")
    second = submit(kit, attempt, jars / "steps.jar", *steps)
    wait_until(lambda: found(kit, attempt, second).state is RunState.EXITED, END_S, "the second is refused")
    refused = found(kit, attempt, second)
    assert (refused.exit_code, refused.failure) == (exit_codes.SUPERSEDED, None)
    assert found(kit, attempt, first).state is RunState.RUNNING
    assert kit.read(attempt.path).incarnation == first.incarnation

    kit.runner.kill(attempt.run, grace_seconds=2)
    site.cluster.wait_until_gone(site.namespace, pod_name(attempt.run))  # so that its name is free
    late = submit(kit, attempt, jars / "steps.jar", *steps)
    wait_until(lambda: found(kit, attempt, late).state is RunState.EXITED, END_S, "the late one has ended")
    assert found(kit, attempt, late).exit_code == exit_codes.SUPERSEDED
    assert Ledger(ledger).starts() == {attempt.run: 1}, "its program did not run a second time"
    kit.runner.cleanup(attempt.run)
    nothing_is_left(site)
