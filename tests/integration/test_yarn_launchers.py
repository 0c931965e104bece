"""The state of a submission from the launcher on this host and from YARN, whose pages are stand-ins here."""

import json
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from orchestrator.compose import DRIVER_MAIN
from spark_runner.protocol.errors import BackendUnreachable, KillError, SparkRunnerError
from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import RunState, SparkTarget, SubmitRequest
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.api import ResourceManager
from spark_runner.runners.yarn.cluster_mode import YarnClusterRunner
from spark_runner.runners.yarn.launch import incarnation_tag, run_tag
from tests.servers.pages import Reply, serve_pages
from tests.waiting import wait_until

FULL = "AccessControlException: Queue root.full already has 0 applications, cannot accept submission"


class Cluster:
    """The pages of a ResourceManager, and of a node with one outcome."""

    def __init__(self) -> None:
        self.applications: list[dict[str, object]] = []
        self.outcome: dict[str, object] | None = None
        self.is_down = False
        self.url = ""

    def page(self, method: str, path: str) -> Reply:
        if self.is_down:
            return 503, {}, "down"
        parts = urlsplit(path)
        if parts.path.endswith("/logs/outcome.json") and self.outcome is not None:
            return 200, {}, json.dumps(self.outcome)
        if method != "GET" or parts.path != "/ws/v1/cluster/apps":
            return 404, {}, ""
        tags = set(parse_qs(parts.query)["applicationTags"][0].split(","))
        found = [each for each in self.applications if tags & set(str(each["applicationTags"]).split(","))]
        return 200, {}, json.dumps({"apps": {"app": found}})

    def add(self, run: str, incarnation: str, state: str, final_status: str, diagnostics: str = "") -> None:
        self.applications.append(
            {
                "id": f"application_1_{len(self.applications):04}",
                "state": state,
                "finalStatus": final_status,
                "diagnostics": diagnostics,
                "applicationTags": f"{run_tag(run)},{incarnation_tag(incarnation)}",
                "startedTime": len(self.applications),
                "amContainerLogs": f"{self.url}/node/containerlogs/container_1_1_01_000001/me",
            }
        )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    with serve_pages(made.page) as made.url:
        yield made


@pytest.fixture
def run() -> str:
    return f"{uuid.uuid4()}-1"


Start = Callable[[str], YarnClusterRunner]


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path, process_mark: str) -> Iterator[Start]:
    """Yield a function that makes a runner whose launchers are this Python program."""
    assert process_mark
    with ExitStack() as stack:

        def make(program: str) -> YarnClusterRunner:
            submits = SparkSubmits(tmp_path, spark_submit=(sys.executable, "-c", program), owned=True)
            stack.callback(submits.close)
            manager = ResourceManager([cluster.url], user="me")
            return YarnClusterRunner(submits, manager, driver_main=DRIVER_MAIN)

        yield make


def submit(runner: YarnClusterRunner, run: str) -> str:
    incarnation = uuid.uuid4().hex
    runner.submit(SubmitRequest(run, incarnation, "name", {}, SparkTarget("yarn", "cluster")))
    return incarnation


def wait_ended(runner: YarnClusterRunner, run: str) -> None:
    wait_until(lambda: runner.find(run)[0].state is not RunState.RUNNING, 20, "it has ended")


def test_a_submission_that_yarn_accepted_and_lists_no_more_is_gone(start: Start, run: str) -> None:
    runner = start("")
    submit(runner, run)
    wait_ended(runner, run)
    (found,) = runner.find(run)
    assert (found.state, found.exit_code, found.failure) == (RunState.GONE, None, None)
    assert "no longer lists it" in found.detail
    assert not found.is_end_observed, "no end of a driver was observed"


def test_a_driver_on_a_node_that_yarn_has_lost_was_not_seen_to_end(
    start: Start, cluster: Cluster, run: str
) -> None:
    runner = start("")
    words = "AM Container for appattempt_1_1_000001 exited with  exitCode: -100\nlost node"
    cluster.add(run, submit(runner, run), "FAILED", "FAILED", words)
    (found,) = runner.find(run)
    assert (found.state, found.is_end_observed) == (RunState.EXITED, False)


def test_the_error_of_a_submission_that_yarn_refused_says_why(start: Start, run: str) -> None:
    runner = start(f"import sys; sys.exit({FULL!r})")
    submit(runner, run)
    wait_ended(runner, run)
    (found,) = runner.find(run)
    assert (found.state, found.exit_code) == (RunState.EXITED, 1)
    assert found.failure is not None
    assert (found.failure.error_class, found.failure.type) == ("submission", "QueueFull")
    assert found.failure.is_passing


def test_a_launcher_that_failed_after_yarn_had_taken_it_decides_nothing(
    start: Start, cluster: Cluster, run: str
) -> None:
    runner = start("import sys; sys.exit('lost the connection')")
    cluster.add(run, submit(runner, run), "RUNNING", "UNDEFINED")
    wait_until(lambda: not processes_of(run), 20, "the launcher has ended")
    (found,) = runner.find(run)
    assert (found.state, found.failure) == (RunState.RUNNING, None)
    with pytest.raises(SparkRunnerError, match="kill it before"):
        runner.cleanup(run)


def test_a_submission_of_another_host_is_found_and_comes_first(
    start: Start, cluster: Cluster, run: str
) -> None:
    runner = start("import time; time.sleep(60)")
    cluster.add(run, "theirs", "FINISHED", "SUCCEEDED")
    ours = submit(runner, run)
    found = runner.find(run)
    assert [(each.incarnation, each.state, each.exit_code) for each in found] == [
        ("theirs", RunState.EXITED, 0),
        (ours, RunState.RUNNING, None),
    ]


def test_a_driver_reports_of_its_end_what_yarn_does_not(start: Start, cluster: Cluster, run: str) -> None:
    runner = start("")
    cluster.add(run, "one", "FINISHED", "UNDEFINED")
    assert runner.find(run)[0].state is RunState.UNKNOWN
    cluster.outcome = {"state": "failed", "exit_code": 4}
    other = start("")
    (found,) = other.find(run)
    assert (found.state, found.exit_code, found.outcome) == (RunState.EXITED, 4, cluster.outcome)


def test_while_yarn_is_silent_nothing_is_known_and_what_is_here_is_ended(
    start: Start, cluster: Cluster, run: str
) -> None:
    runner = start("import time; time.sleep(60)")
    submit(runner, run)
    wait_until(lambda: processes_of(run), 20, "the launcher runs")
    cluster.is_down = True
    with pytest.raises(BackendUnreachable, match="503"):
        runner.find(run)
    with pytest.raises(KillError, match="cannot verify"):
        runner.kill(run, grace_seconds=0)
    assert processes_of(run) == []
    cluster.is_down = False
    runner.kill(run, grace_seconds=0)
    runner.cleanup(run)
    assert runner.find(run) == []
