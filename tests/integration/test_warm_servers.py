"""Jobs in a warm JVM: their isolation, their traces, and the effect of its end."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from orchestrator.admin.views import JobDetail
from orchestrator.compose import DRIVER_MAIN
from orchestrator.config.settings import Settings
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.states import Status
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import run_name
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.warm_files import LINK, Recycling, ServerFiles
from spark_runner.runners.base import RunState
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.run_directory import RunDirectory, run_directories
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.warm import WarmServers, WarmSpec, WarmSupervisor
from spark_runner.sql.restrictions import JAVA_FUNCTIONS
from tests.class_archive import archives
from tests.jobs_support import STAND_IN, Deployment, command_line
from tests.waiting import wait_until
from tests.warm_support import SPEC, WarmHouse, ask, look_into, warm_house

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

END_S = 120
# The rows of the file times a factor: it ends at once, or not within a test. Its tasks cannot be stopped.
ENDLESS, FEW = 1_000_000, 1
SCRIPT = """
CREATE TABLE numbers (n BIGINT) USING json OPTIONS (path 'numbers');
CREATE TABLE counts USING json OPTIONS (path 'counts-${number}');
INSERT INTO counts
SELECT COUNT(*) AS n
FROM (SELECT EXPLODE(SEQUENCE(1, n)) AS i FROM numbers) CROSS JOIN RANGE(0, 1000000, 1, 1)
WHERE HASH(i, id) <> 0;
"""
# The same without a tight loop: Spark checks for a stop before each row of a shuffle, and each row
# takes a millisecond. The delay looks random to Spark: otherwise it would be computed before the shuffle.
PATIENT = """
CREATE TABLE numbers (n BIGINT) USING json OPTIONS (path 'numbers');
CREATE TABLE counts USING json OPTIONS (path 'counts-${number}');
INSERT INTO counts
SELECT COUNT(*) AS n
FROM (SELECT /*+ REPARTITION(2) */ EXPLODE(SEQUENCE(1, n)) AS i FROM (SELECT MAX(n) AS n FROM numbers))
WHERE AGGREGATE(SEQUENCE(i, i + 10000), RAND(), (sum, k) -> sum + k) >= 0;
"""
ENDS_ITS_JVM = """
CREATE TABLE counts USING json OPTIONS (path 'counts-${number}');
INSERT INTO counts SELECT COUNT(*) AS n FROM RANGE(3) WHERE JAVA_METHOD('java.lang.System', 'exit', 0) <> '';
"""

NOTHING: dict[str, list[object]] = {"jobs": [], "threads": [], "tasks": []}


class Bench:
    """A deployment in whose default pool scripts start warm."""

    def __init__(
        self,
        deployment: Deployment,
        house: WarmHouse,
        folder: Path,
        *,
        keeper: WarmSupervisor | None = None,
        spark_submit: Sequence[str] | None = None,
    ) -> None:
        deployment.settings = warm_settings(deployment.settings)
        self.deployment, self.house, self.folder = deployment, house, folder
        self._submitted = 0
        state_dir = deployment.settings.state_dir
        self.submits = SparkSubmits(state_dir, spark_submit=spark_submit, quick_start=archives())
        self.runner = LocalRunner(self.submits, driver_main=DRIVER_MAIN, warm=keeper or house.keeper)
        deployment.worker(runner=self.runner)
        self.rows(FEW)

    def rows(self, number: int) -> None:
        """Set the number of rows of the next query."""
        (self.folder / "numbers").mkdir(exist_ok=True)
        (self.folder / "numbers" / "part-0.json").write_text(f'{{"n": {number}}}', "ascii")

    def submit(self, **fields: object) -> str:
        self._submitted += 1  # each writes to another folder
        return self.deployment.client.submit(script_job(self.folder, self._submitted, **fields)).id

    def written(self) -> list[Path]:
        return list(self.folder.glob("counts-*/part-*"))

    def wait_at_work(self, job_id: str, *, rows: int = 0) -> None:
        """Wait until tasks of its query run, after this many rows were read from files."""
        client = self.deployment.client

        def at_work() -> bool:
            shown = client.progress(client.get(job_id)) or {}
            return bool(shown.get("stages")) and shown["read"]["rows"] >= rows

        wait_until(at_work, END_S, f"the query of {job_id} runs")

    def directory(self, job_id: str, attempt: int = 1) -> RunDirectory:
        run = run_name(self.deployment.client.detail(job_id).run_key, attempt)
        return run_directories(self.submits.state_dir, run)[-1]

    def server(self, job_id: str, attempt: int = 1) -> ServerFiles | None:
        link = self.directory(job_id, attempt).path / LINK
        return ServerFiles(link.readlink()) if link.is_symlink() else None

    def attempts(self, detail: JobDetail) -> list[tuple[str, str]]:
        def error_class(error: dict[str, str]) -> str:
            return error.get("class") or error.get("error_class", "")

        return [(each["state"], error_class(each.get("error") or {})) for each in detail.attempts]


def script_job(folder: Path, number: int, **fields: object) -> Definition:
    document = {
        "name": "counts",
        "script": SCRIPT,
        "file": "counts.sql",
        "directory": str(folder),
        "variables": {"number": str(number)},
    }
    return build_definition({**document, "retry": {"attempts": 1}, **fields}, "test")


def kill_driver(directory: RunDirectory) -> None:
    """End the process of a driver and wait until its shim has recorded it."""
    record = directory.shim()
    assert record is not None
    os.kill(record.driver.pid, signal.SIGKILL)
    wait_until(lambda: directory.exit_code() is not None, 10, "the shim has ended")


def process_of(server: ServerFiles, name: str) -> psutil.Process:
    """The first process below its shim that runs this program or file."""
    shim = RunDirectory(server.path).shim()
    assert shim is not None
    below = psutil.Process(shim.shim.pid).children(recursive=True)
    return next(process for process in below if any(name in word for word in command_line(process)[:2]))


@contextmanager
def stopped(server: ServerFiles) -> Iterator[None]:
    """Suspend the process of the server."""
    python = process_of(server, "server_main.py")
    python.suspend()
    yield
    if python.is_running():
        python.resume()


def warm_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"spark": {"*": {"start": "warm", "master": SPEC.master}}})


class Trusting(WarmSupervisor):
    """Always chooses this server, as if it were open."""

    def __init__(self, servers: WarmServers, server: ServerFiles) -> None:
        super().__init__(servers, [SPEC])
        self._server = server

    def choose_server(self, spec: WarmSpec) -> ServerFiles | None:
        return self._server if spec == SPEC else None


@pytest.fixture
def server(warm: WarmHouse) -> ServerFiles:
    """The open server."""
    return warm.wait_open()


@pytest.fixture
def bench(server: ServerFiles, warm: WarmHouse, deployment: Deployment, tmp_path: Path) -> Bench:
    assert server
    return Bench(deployment, warm, tmp_path)


@pytest.fixture
def ended(warm: WarmHouse) -> ServerFiles:
    """A server that has ended: by another test, or now."""
    server = warm.wait_open()
    gone = [each for each in warm.servers.of(SPEC) if each.was_opened() and not warm.servers.runs(each)]
    if gone:
        return gone[-1]  # the keeper keeps it
    warm.servers.submits.kill(server.run, grace_seconds=0)
    return server


def test_a_script_runs_in_the_server_by_a_driver_without_a_jvm(bench: Bench, server: ServerFiles) -> None:
    first, second = bench.submit(), bench.submit()
    for job_id in (first, second):
        detail = bench.deployment.wait(job_id, END_S)
        assert detail.job.status is Status.SUCCESS, detail
        assert bench.server(job_id) == server
        assert not (bench.directory(job_id).path / "spark.log").exists()
        metrics = detail.attempts[-1]["metrics"]
        assert (metrics["shared"], metrics["output_rows"]) == (True, 1)  # its own alone
        assert "executors" not in metrics
    assert len(bench.written()) == 2
    assert look_into(server) == NOTHING


def test_a_killed_job_leaves_no_query_in_the_server(bench: Bench, server: ServerFiles) -> None:
    bench.rows(ENDLESS)
    job_id = bench.submit(script=PATIENT)
    bench.wait_at_work(job_id)

    def with_tasks() -> dict[str, list[object]] | None:
        found = look_into(server)
        return found if found["tasks"] else None  # between two stages of the query there are none

    seen = wait_until(with_tasks, END_S, "a task of the query runs in the server")
    assert len(seen["jobs"]) == 1
    assert len(seen["threads"]) == 1
    bench.deployment.client.kill(job_id)
    assert bench.deployment.wait(job_id, 20).job.status is Status.KILL
    assert look_into(server) == NOTHING
    assert list(server.tenants()) == []
    assert not bench.written()
    bench.rows(FEW)
    after = bench.submit()
    assert bench.deployment.wait(after, END_S).job.status is Status.SUCCESS
    assert bench.server(after) == server


def test_a_driver_that_is_killed_has_ended_when_its_query_has(bench: Bench, server: ServerFiles) -> None:
    bench.rows(ENDLESS)
    job_id = bench.submit(script=PATIENT)
    bench.wait_at_work(job_id)
    directory = bench.directory(job_id)
    with stopped(server):  # it cannot end the driver meanwhile
        kill_driver(directory)
        assert [found.state for found in bench.runner.find(directory.run)] == [RunState.RUNNING]
        with pytest.raises(SparkRunnerError, match="is running"):
            bench.runner.cleanup(directory.run)
    detail = bench.deployment.wait(job_id, END_S)
    assert (detail.job.status, bench.attempts(detail)) == (
        Status.ERROR_FAIL,
        [("failed", "infrastructure")],
    )
    assert look_into(server) == NOTHING


def test_a_job_with_settings_of_its_own_and_a_program_do_not_run_in_the_server(
    server: ServerFiles, warm: WarmHouse, deployment: Deployment, tmp_path: Path
) -> None:
    bench = Bench(deployment, warm, tmp_path, spark_submit=STAND_IN)
    own = bench.submit(spark={"conf": {"spark.sql.ansi.enabled": "false"}})
    python = deployment.submit("pass")
    for job_id in (own, python):
        assert deployment.wait(job_id, END_S).job.is_final
        assert bench.server(job_id) is None
        assert (bench.directory(job_id).path / "spark.properties").exists()  # for another JVM
    assert deployment.client.get(python).status is Status.SUCCESS
    assert warm.wait_open() == server


def test_the_jobs_of_a_server_that_crashes_are_lost_and_run_again_in_a_jvm_of_their_own(
    bench: Bench, server: ServerFiles
) -> None:
    bench.rows(ENDLESS)
    again, once = jobs = [
        bench.submit(script=PATIENT, retry={"attempts": 2, "delay": "10ms", "on": ["lost"]}),
        bench.submit(script=PATIENT),
    ]
    for job_id in jobs:
        bench.wait_at_work(job_id, rows=1)
    bench.rows(FEW)
    process_of(server, "java").kill()
    details = {job_id: bench.deployment.wait(job_id, END_S) for job_id in jobs}
    for job_id, detail in details.items():
        assert bench.server(job_id, 1) == server
        assert detail.attempts[0]["error"]["type"] == "JvmGone"
    assert bench.attempts(details[once]) == [("lost", "lost")]
    assert details[again].job.status is Status.SUCCESS, details[again]
    assert bench.attempts(details[again]) == [("lost", "lost"), ("succeeded", "")]
    assert bench.server(again, 2) is None
    assert bench.house.wait_open(other_than=server)


def test_a_script_that_ends_its_jvm_gets_one_of_its_own_and_is_no_success(
    bench: Bench, server: ServerFiles
) -> None:
    job_id = bench.submit(script=ENDS_ITS_JVM)
    detail = bench.deployment.wait(job_id, END_S)
    assert bench.attempts(detail) == [("failed", "no_outcome")]
    assert detail.job.status is Status.ERROR_FAIL
    assert bench.server(job_id) is None
    assert bench.directory(job_id).exit_code() == 0
    assert not bench.written()
    assert bench.house.wait_open() == server


def test_a_driver_refuses_what_no_plan_should_bring_into_a_server(
    bench: Bench, server: ServerFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.sql.compiler.planner.may_share", lambda _statement: True)
    job_id = bench.submit(script=ENDS_ITS_JVM)
    detail = bench.deployment.wait(job_id, END_S)
    assert bench.server(job_id) == server
    assert bench.attempts(detail) == [("failed", "definition")]
    assert "may not run in a JVM that other jobs use" in detail.attempts[0]["error"]["message"]
    assert bench.house.wait_open() == server


@pytest.mark.parametrize("function", JAVA_FUNCTIONS)
def test_a_server_has_no_function_that_calls_java(warm: WarmHouse, function: str) -> None:
    server = warm.wait_open()
    answer = ask(server, f"SELECT {function}('java.lang.System', 'exit', 0)")
    assert "UNRESOLVED_ROUTINE" in answer, answer
    assert warm.wait_open() == server


def test_a_job_that_comes_too_late_for_a_server_is_submitted_again_in_the_same_attempt(
    ended: ServerFiles, warm: WarmHouse, deployment: Deployment, tmp_path: Path
) -> None:
    bench = Bench(deployment, warm, tmp_path, keeper=Trusting(warm.servers, ended))
    job_id = bench.submit()
    detail = deployment.wait(job_id, END_S)
    assert (detail.job.status, bench.attempts(detail)) == (Status.SUCCESS, [("succeeded", "")])
    first, second = run_directories(bench.submits.state_dir, run_name(detail.run_key, 1))
    assert ((first.path / LINK).readlink(), first.exit_code()) == (ended.path, exit_codes.NO_CONTACT)
    assert "cannot be used" in (first.path / "stderr.log").read_text("utf-8")
    assert not (second.path / LINK).exists()


def test_a_query_that_cannot_be_cancelled_costs_the_server_and_no_more(
    bench: Bench, server: ServerFiles
) -> None:
    bench.rows(ENDLESS)
    job_id = bench.submit()
    bench.wait_at_work(job_id, rows=1)
    bench.deployment.client.kill(job_id)
    assert bench.deployment.wait(job_id, 20).job.status is Status.KILL
    assert not bench.house.servers.runs(server)
    assert not bench.written()
    bench.rows(FEW)
    bench.house.wait_open(other_than=server)
    after = bench.submit()
    assert bench.deployment.wait(after, END_S).job.status is Status.SUCCESS
    assert bench.server(after) not in {None, server}


def test_who_kills_a_job_ends_a_server_that_hangs(
    bench: Bench, server: ServerFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.runners.warm._EVICTION_SECONDS", 1.0)
    bench.rows(ENDLESS)
    job_id = bench.submit(script=PATIENT)
    bench.wait_at_work(job_id)
    with stopped(server):
        bench.deployment.client.kill(job_id)
        assert bench.deployment.wait(job_id, 30).job.status is Status.KILL
        assert not bench.house.servers.runs(server)


def test_a_server_is_replaced_after_so_many_jobs_and_ends_without_workers(
    deployment: Deployment, tmp_path: Path
) -> None:
    with warm_house(tmp_path, Recycling(jobs=2, alone=0.1, late=0.1)) as house:
        first = house.wait_open()
        bench = Bench(deployment, house, tmp_path)
        jobs = [bench.submit() for _ in range(2)]
        assert [deployment.wait(job_id, END_S).job.status for job_id in jobs] == [Status.SUCCESS] * 2
        assert [bench.server(job_id) for job_id in jobs] == [first, first]
        wait_until(lambda: not house.servers.runs(first), END_S, "the first server has ended")
        assert RunDirectory(first.path).exit_code() == 0
        assert "2 drivers have used it" in (first.path / "stdout.log").read_text("utf-8")
        second = house.wait_open(other_than=first)
        deployment.close()  # the worker ends before its servers
        house.keeper.stop()
        wait_until(lambda: not house.servers.runs(second), END_S, "the second server has ended")
        assert RunDirectory(second.path).exit_code() == 0
