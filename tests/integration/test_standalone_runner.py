"""The ends of a driver on a standalone cluster, and the failures of the cluster under it."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import psutil
import pytest

from orchestrator.compose import DRIVER_MAIN
from orchestrator.handlers.verdict import verdict_of_attempt, verdict_of_exit
from orchestrator.model.states import Status
from spark_runner.protocol.attempt import Attempt
from spark_runner.protocol.errors import BackendUnreachable, SubmissionError
from spark_runner.protocol.process import processes_of
from spark_runner.runners import run_directory
from spark_runner.runners.base import Runner, RunState, SparkTarget, Submission
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.address import StandaloneCluster as Cluster
from spark_runner.runners.standalone.api import Addresses, StandaloneMasters
from spark_runner.runners.standalone.applications import end_applications
from spark_runner.runners.standalone.backend import StandaloneBackend
from spark_runner.runners.standalone.launch import is_application_of
from tests.runner_kits import Kit, open_kit
from tests.servers.memory_group import memory_group
from tests.servers.standalone import Standalone, StandaloneCluster, standalone_cluster
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.drawn("runners of clusters"),
    pytest.mark.spark,
    pytest.mark.standalone,
    pytest.mark.timeout(600),
]

AT_ONCE = 4
"""Drivers that start together, as on a busy cluster; two cores are shared."""

END_S = 240
GONE_S = 20

NO_EXECUTOR = {"spark.executor.memory": "100g"}
"""For programs without tasks: the application waits for ever, and no executor starts needlessly."""

SPARK = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()\n"
TASKS = SPARK + "print(spark.range(1000).count())"
# One task: a second one may fail first, with the reason that its executor is ending.
TASK_NEEDS_TOO_MUCH = SPARK + "spark.range(0, 1, 1, 1).selectExpr('length(repeat(id, 1500000000))').collect()"

Act = Callable[[Kit, Attempt], None]
End = tuple[Status, str, int | None]


@dataclass(frozen=True)
class Case:
    """A program, the act on it, and the expected report."""

    program: str
    end: End
    conf: Mapping[str, str] = field(default_factory=lambda: NO_EXECUTOR)
    act: Act = lambda kit, attempt: None  # noqa: ARG005 - no act


@pytest.fixture
def client(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    with open_kit(
        "standalone-client", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path
    ) as kit:
        yield kit


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path
) -> Iterator[Kit]:
    with open_kit(
        "standalone-cluster", request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path
    ) as kit:
        yield kit


def submitted(kit: Kit, program: str, conf: Mapping[str, str] = NO_EXECUTOR) -> Attempt:
    attempt = kit.attempt()
    kit.runner.submit(replace(kit.request(attempt, program), conf={**kit.conf, **conf}))
    return attempt


def end_of(kit: Kit, attempt: Attempt) -> End:
    """The verdict of a worker, and the exit code."""
    after, submission = kit.read(attempt.path), kit.only(attempt.run)
    if after.state.is_open:
        verdict, _ = verdict_of_exit(after, submission)
    else:
        verdict = verdict_of_attempt(after)
    return verdict.status, verdict.error.error_class if verdict.error else "", submission.exit_code


def ends(kit: Kit, cases: Mapping[str, Case]) -> dict[str, End]:
    """The ends of the drivers of these cases, when nothing of them is left."""
    found: dict[str, End] = {}
    left = iter(cases.items())
    while batch := dict(islice(left, AT_ONCE)):
        attempts = {name: submitted(kit, case.program, case.conf) for name, case in batch.items()}
        for name, attempt in attempts.items():
            batch[name].act(kit, attempt)
        for name, attempt in attempts.items():
            wait_until(lambda run=attempt.run: is_over(kit.runner.find(run)), END_S, f"the end: {name}")  # type: ignore[misc]
            found[name] = end_of(kit, attempt)
            wait_until(lambda run=attempt.run: not processes_of(run), GONE_S, f"no process: {name}")  # type: ignore[misc]
            wait_until(lambda run=attempt.run: not applications(kit, run), GONE_S, f"no application: {name}")  # type: ignore[misc]
    return found


def is_over(submissions: list[Submission]) -> bool:
    return all(found.state in {RunState.EXITED, RunState.GONE} for found in submissions)


def applications(kit: Kit, run: str) -> list[str]:
    found = Cluster.of(kit.target).masters().snapshot().applications
    return [application.id for application in found if is_application_of(application.name, run)]


def ends_on_the_page(kit: Kit, attempt: Attempt) -> None:
    """The application did not end by itself, so it is ended as by the link on the master's page."""
    kit.wait_started(attempt)
    (application,) = wait_until(lambda: applications(kit, attempt.run), END_S, "it is registered")
    assert "waits for executors with 102400 MiB each; none of the 1 nodes" in kit.only(attempt.run).detail
    end_applications(Cluster.of(kit.target).masters(), attempt.run)
    assert application not in applications(kit, attempt.run)
    Path(kit.ledger.path.parent, "go").touch()


def expected(cases: Mapping[str, Case]) -> dict[str, End]:
    return {name: case.end for name, case in cases.items()}


def failed(error_class: str, code: int | None) -> End:
    return Status.ERROR_FAIL, error_class, code


PYTHON_DIES = "os.kill(os.getpid(), 9); hang()"
JAVA_IS_ENDED = "os.kill(os.getppid(), 15); hang()"


def test_each_end_of_a_driver_on_this_host_is_told_as_it_was_and_leaves_nothing(
    client: Kit, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    with memory_group(200) as group:
        cases = {
            # Without control groups, the kernel ends it on request of the test.
            "without memory": Case(grows(group) if group else PYTHON_DIES, failed("infrastructure", 137)),
            "SIGTERM of Java": Case(JAVA_IS_ENDED, failed("infrastructure", 143)),
            "ended on the page": Case(f"until({str(go)!r})", (Status.SUCCESS, "", 0), act=ends_on_the_page),
            "executor without memory": Case(
                TASK_NEEDS_TOO_MUCH, failed("memory", 1), {"spark.task.maxFailures": "1"}
            ),
        }
        assert ends(client, cases) == expected(cases)


def grows(group: Path) -> str:
    """A program that the kernel ends when it reaches the limit of this control group."""
    enter = f"pathlib.Path({str(group)!r}).write_text(str(os.getpid())); kept = []\n"
    return f"{enter}while True: kept.append(bytearray(2**20))"


def test_a_driver_on_a_node_that_dies_failed_as_far_as_its_master_can_tell_and_leaves_nothing(
    cluster: Kit,
) -> None:
    cases = {
        "SIGKILL of Python": Case(PYTHON_DIES, failed("infrastructure", None)),
        "SIGTERM of Java": Case(JAVA_IS_ENDED, failed("infrastructure", None)),
    }
    assert ends(cluster, cases) == expected(cases)


def words(kit: Kit, run: str) -> str:
    return "".join(
        log.path.read_text("utf-8")
        for log in kit.runner.logs(run)
        if log.stream == "stdout" and not log.executor
    )


def test_a_driver_that_no_node_can_hold_waits_with_a_reason_and_can_be_ended_there(cluster: Kit) -> None:
    attempt = submitted(cluster, "pass", {"spark.driver.memory": "500g"})
    waiting = cluster.only(attempt.run)
    assert waiting.state is RunState.RUNNING
    assert "512000 MiB" in waiting.detail
    assert "none of the 1 nodes is as large: they have 8192 MiB and 8 cores at most" in waiting.detail
    cluster.runner.kill(attempt.run, grace_seconds=5)
    assert cluster.only(attempt.run).exit_code == 143
    assert not cluster.ledger.starts()


@contextmanager
def mute(upstream: str, *, deliver: bool) -> Iterator[str]:
    """A server that forwards requests or drops them, and closes each connection without a reply."""
    host, port = upstream.removeprefix("http://").split(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller, socket.create_connection((host, int(port))) as server:
                    caller.settimeout(0.5)
                    request = b""
                    while piece := _read(caller):
                        request += piece
                    if deliver:
                        server.sendall(request)
                        server.recv(65536)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _read(caller: socket.socket) -> bytes:
    try:
        return caller.recv(65536)
    except TimeoutError:
        return b""


def through(kit: Kit, rest: str) -> Runner:
    target = replace(kit.target, options={**kit.target.options, "rest": rest})
    submits = SparkSubmits(Path(kit.ledger.path.parent, "state"))
    return StandaloneBackend(submits, driver_main=DRIVER_MAIN).runner_for(target)


BROUGHT = """
import mine
with open(f"/proc/{os.getppid()}/cmdline") as command:
    assert "correct-horse" not in command.read(), "every user of the node can read it"
assert spark.conf.get("spark.secret") == "correct-horse"
say(mine.__file__)
"""


def test_a_submission_whose_reply_was_lost_is_found_by_the_announcement_of_its_driver(
    cluster: Kit, standalone: Standalone, tmp_path: Path
) -> None:
    module = tmp_path / "mine.py"
    module.write_text("")
    attempt = cluster.attempt()
    request = cluster.request(attempt, SPARK + BROUGHT)
    conf = {
        **cluster.conf,
        **NO_EXECUTOR,
        "spark.secret": "correct-horse",
        "spark.submit.pyFiles": str(module),
    }
    with mute(standalone.rest, deliver=True) as rest:
        replied = through(cluster, rest).submit(replace(request, conf=conf))
    assert (replied.state, "reply was lost" in replied.detail) == (RunState.RUNNING, True)
    cluster.wait_ended(attempt.run)
    assert end_of(cluster, attempt) == (Status.SUCCESS, "", 0)
    assert cluster.ledger.starts() == {attempt.run: 1}
    assert {log.stream for log in cluster.runner.logs(attempt.run)} == {"stdout", "stderr", "spark"}
    assert not words(cluster, attempt.run).startswith(str(tmp_path / "mine.py")), "the nodes have a copy"


def test_a_submission_that_was_lost_on_its_way_is_gone_after_a_while_and_not_at_once(
    cluster: Kit, standalone: Standalone, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mute(standalone.rest, deliver=False) as rest:
        attempt = cluster.attempt()
        through(cluster, rest).submit(cluster.request(attempt, "pass"))
    assert cluster.only(attempt.run).state is RunState.RUNNING
    monkeypatch.setattr(run_directory, "YOUNG_SECONDS", 0.0)
    gone = cluster.only(attempt.run)
    assert (gone.state, gone.detail) == (RunState.GONE, "it did not reach its master")


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_while_no_master_answers_nothing_is_submitted_and_the_reason_is_said(
    request: pytest.FixtureRequest, mode: str
) -> None:
    kit: Kit = request.getfixturevalue(mode)
    target = SparkTarget(
        "spark://127.0.0.1:1", mode, {**kit.target.options, "ui": "127.0.0.1:1", "rest": "127.0.0.1:1"}
    )
    submits = SparkSubmits(Path(kit.ledger.path.parent, "state"))
    runner = StandaloneBackend(submits, driver_main=DRIVER_MAIN).runner_for(target)
    attempt = kit.attempt()
    with pytest.raises(SubmissionError, match=r"no master leads: http://127.0.0.1:1/json/ does not answer"):
        runner.submit(kit.request(attempt, "pass"))
    assert runner.find(attempt.run) == []


def test_drivers_go_on_when_masters_are_lost_and_those_of_a_lost_node_are_gone(
    client: Kit, tmp_path: Path
) -> None:
    counted, goes, ends = (tmp_path / name for name in ("counted", "goes", "ends"))
    with standalone_cluster(tmp_path / "pair", masters=2, workers=2) as pair:
        options = {"rest": pair.rest, "ui": pair.ui, "staging": str(tmp_path / "staging")}
        backend = StandaloneBackend(SparkSubmits(tmp_path / "state"), driver_main=DRIVER_MAIN)
        targets = {mode: SparkTarget(pair.url, mode, options) for mode in ("client", "cluster")}
        kits = {
            mode: replace(client, runner=backend.runner_for(target), target=target)
            for mode, target in targets.items()
        }
        program = (
            f"until({str(goes)!r})\n{TASKS}\npathlib.Path({str(counted)!r}).touch()\nuntil({str(ends)!r})"
        )
        here = submitted(kits["client"], program, {})
        there = submitted(kits["cluster"], "hang()")
        client.wait_started(here)
        client.wait_started(there)

        first = pair.leader
        check_who_leads_is_asked(pair)
        first.process.kill()
        wait_until(lambda: pair.leader is not first and pair.alive_workers() == 2, 90, "the other leads")
        assert kits["client"].only(here.run).state is RunState.RUNNING
        wait_until(
            lambda: kits["cluster"].only(there.run).state is RunState.RUNNING, 60, "the driver is known to it"
        )
        waiting = submitted(kits["cluster"], "pass", {"spark.driver.memory": "500g"})
        assert "512000 MiB" in kits["cluster"].only(waiting.run).detail, "it takes drivers as well"

        node = node_of(pair, there.run)
        node.kill()
        wait_until(
            lambda: is_over(kits["cluster"].runner.find(there.run)), 90, "the driver is known to be gone"
        )
        assert end_of(kits["cluster"], there) == failed("lost", None)
        assert not processes_of(there.run)

        goes.touch()
        wait_until(counted.exists, END_S, "its tasks have run on the other node")
        for master in pair.masters:
            master.process.kill()
        for _ in range(3):
            with pytest.raises(BackendUnreachable, match="no master leads"):
                kits["cluster"].runner.find(waiting.run)
        assert kits["client"].only(here.run).state is RunState.RUNNING
        assert processes_of(here.run), "a driver still runs without masters"
        ends.touch()
        kits["client"].wait_ended(here.run)
        assert end_of(kits["client"], here) == (Status.SUCCESS, "", 0)


def check_who_leads_is_asked(pair: StandaloneCluster) -> None:
    """Two masters, each named first once."""
    first = pair.leader
    (standby,) = [master for master in pair.masters if master is not first]
    alone = StandaloneMasters([Addresses(standby.ui, standby.rest)])
    with pytest.raises(BackendUnreachable, match="is STANDBY"):
        alone.snapshot()
    wrong_way = StandaloneMasters([Addresses(first.ui, standby.rest)])
    with pytest.raises(BackendUnreachable, match="STANDBY"):
        wrong_way.driver_status("driver-20200101000000-0000")
    with pytest.raises(SubmissionError, match="STANDBY"):
        wrong_way.create_driver(
            {
                "action": "CreateSubmissionRequest",
                "clientSparkVersion": "4.0.0",
                "appResource": "",
                "mainClass": "any",
                "appArgs": [],
                "environmentVariables": {},
                "sparkProperties": {"spark.app.name": "x", "spark.master": pair.url},
            }
        )


def node_of(pair: StandaloneCluster, run: str) -> psutil.Process:
    """The worker that started the driver of this run."""
    workers = {worker.pid for worker in pair.workers}
    for pid in processes_of(run):
        for parent in psutil.Process(pid).parents():
            if parent.pid in workers:
                return parent
    raise AssertionError("no worker has it")
