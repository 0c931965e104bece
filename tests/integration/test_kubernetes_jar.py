"""Jars on Kubernetes: the pod is the JVM, and its image has no Python."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.runners.base import RunState
from tests.jar_support import make_jar
from tests.runner_kits import Kit, open_kit
from tests.servers.kubernetes.container import JAVA_IMAGE

# The API server may have to be built.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.drawn("jobs on clusters"),
    pytest.mark.kubernetes,
    pytest.mark.timeout(1800),
]


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


def submit(kit: Kit, attempt: Attempt, jar: Path, *arguments: str) -> None:
    asked = kit.request(attempt, "pass")
    plan = {key: value for key, value in asked.plan.items() if key != "python"}
    plan["jar"] = {"class": jar.stem.title(), "arguments": list(arguments)}
    conf = {**asked.conf, "spark.jars": f"local://{jar}"}
    kit.runner.submit(replace(asked, plan=plan, conf=conf))


def test_a_jar_runs_with_executors_where_there_is_no_python(kit: Kit, tmp_path: Path) -> None:
    attempt = kit.attempt()
    make_jar("Program", tmp_path)
    submit(kit, attempt, tmp_path / "program.jar", "7", "write", str(tmp_path / "rows"))
    (ended,) = kit.wait_ended(attempt.run)
    words = "".join(log.path.read_text("utf-8") for log in kit.runner.logs(attempt.run))
    assert (ended.state, ended.exit_code) == (RunState.EXITED, 0), words[-5000:]
    assert (tmp_path / "rows").read_text("utf-8") == "7 mine"
    recorded = kit.read(attempt.path)
    assert recorded.state is AttemptState.SUCCEEDED
    assert recorded.document["application_id"].startswith("spark-")
    assert ended.outcome == {"state": "succeeded", "exit_code": 0}
    kit.runner.cleanup(attempt.run)
    kit.check_removed()
