"""Jobs in a JVM that is kept for them: what they get, what is left of them, what its end does to them."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from orchestrator.client import JobDetail
from orchestrator.models.definition import Definition, build_definition
from orchestrator.settings import Settings
from orchestrator.states import Status
from orchestrator.wiring import DRIVER_MAIN
from spark_runner import exit_codes
from spark_runner.attempt import run_name
from spark_runner.errors import SparkRunnerError
from spark_runner.runners.base import RunState
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.run_directory import RunDirectory, run_directories
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.warm.files import LINK, ServerFiles
from tests.class_archive import archives
from tests.jobs_support import Office
from tests.waiting import wait_until
from tests.warm_support import SPEC, WarmHouse, look_into, warm_house

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

END_S = 120
# As many rows as the file says, times so many: no end within a test, or at once. Its tasks cannot be stopped.
ENDLESS, FEW = 1_000_000, 1
SCRIPT = """
CREATE TABLE numbers (n BIGINT) USING json OPTIONS (path 'numbers');
CREATE TABLE counts USING json OPTIONS (path 'counts-${number}');
INSERT INTO counts
SELECT COUNT(*) AS n FROM (SELECT EXPLODE(SEQUENCE(1, n)) AS i FROM numbers) CROSS JOIN RANGE(1000000)
WHERE HASH(i, id) <> 0;
"""
STOPPABLE = """
CREATE TABLE counts USING json OPTIONS (path 'counts-${number}');
INSERT INTO counts SELECT COUNT(*) AS n FROM RANGE(100000000000000) WHERE HASH(id) <> 0;
"""


NOTHING: dict[str, list[object]] = {"jobs": [], "threads": [], "tasks": []}


class Bench:
    """An office in whose default pool scripts start warm."""

    def __init__(self, office: Office, house: WarmHouse, folder: Path) -> None:
        self.office, self.house, self.folder = office, house, folder
        self._submitted = 0
        self.submits = SparkSubmits(office.settings.state_dir, quick_start=archives())
        self.runner = LocalRunner(self.submits, driver_main=DRIVER_MAIN, warm=house.keeper)
        office.worker(runner=self.runner)

    def rows(self, number: int) -> None:
        """What the next query is going to count."""
        (self.folder / "numbers").mkdir(exist_ok=True)
        (self.folder / "numbers" / "part-0.json").write_text(f'{{"n": {number}}}', "ascii")

    def submit(self, **fields: object) -> str:
        self._submitted += 1  # each writes to a place of its own
        return self.office.client.submit(script_job(self.folder, self._submitted, **fields)).id

    def written(self) -> list[Path]:
        return list(self.folder.glob("counts-*/part-*"))

    def wait_at_work(self, job_id: str, *, rows: int = 0) -> None:
        """Until tasks of its query run, after so many rows have been read from files."""
        client = self.office.client

        def at_work() -> bool:
            shown = client.progress(client.get(job_id)) or {}
            return bool(shown.get("stages")) and shown["read"]["rows"] >= rows

        wait_until(at_work, END_S, f"the query of {job_id} runs")

    def directory(self, job_id: str, attempt: int = 1) -> RunDirectory:
        run = run_name(self.office.client.detail(job_id).run_key, attempt)
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
    """End the process of a driver, and wait until its shim has written that down."""
    record = directory.shim()
    assert record is not None
    os.kill(record.driver.pid, signal.SIGKILL)
    wait_until(lambda: directory.exit_code() is not None, 10, "the shim has ended")


def process_of(server: ServerFiles, name: str) -> psutil.Process:
    """The process below its shim that runs this program or file first."""
    shim = RunDirectory(server.path).shim()
    assert shim is not None
    below = psutil.Process(shim.shim.pid).children(recursive=True)
    alive = [process for process in below if process.status() != psutil.STATUS_ZOMBIE]
    return next(process for process in alive if any(name in word for word in process.cmdline()[:2]))


@contextmanager
def stopped(server: ServerFiles) -> Iterator[None]:
    """The server looks after nothing."""
    python = process_of(server, "server_main.py")
    python.suspend()
    yield
    if python.is_running():
        python.resume()


def warm_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"spark": {"*": {"start": "warm", "master": SPEC.master}}})


def open_bench(office: Office, house: WarmHouse, folder: Path) -> Bench:
    house.wait_open()
    office.settings = warm_settings(office.settings)
    made = Bench(office, house, folder)
    made.rows(FEW)
    return made


@pytest.fixture
def bench(warm: WarmHouse, office: Office, tmp_path: Path) -> Bench:
    return open_bench(office, warm, tmp_path)


@contextmanager
def own_bench(
    office: Office, folder: Path, recycling: Mapping[str, float] | None = None
) -> Iterator[tuple[Bench, ServerFiles]]:
    """A bench of whose servers nobody else takes any harm, and the first of them."""
    with warm_house(folder, recycling, rehearsal=False) as house:
        yield open_bench(office, house, folder), house.wait_open()
        office.close()  # the worker goes before its servers


def test_a_script_runs_in_the_server_by_a_driver_without_a_jvm(bench: Bench) -> None:
    server = bench.house.wait_open()
    first, second = bench.submit(), bench.submit()
    for job_id in (first, second):
        detail = bench.office.wait(job_id, END_S)
        assert detail.job.status is Status.SUCCESS, detail
        assert bench.server(job_id) == server
        assert not (bench.directory(job_id).path / "spark.log").exists()
        metrics = detail.attempts[-1]["metrics"]
        assert (metrics["shared"], metrics["output_rows"]) == (True, 1)  # its own alone
        assert "executors" not in metrics
    assert len(bench.written()) == 2
    assert look_into(server) == NOTHING


def test_a_killed_job_leaves_no_query_in_the_server(bench: Bench) -> None:
    server = bench.house.wait_open()
    job_id = bench.submit(script=STOPPABLE)
    bench.wait_at_work(job_id)
    seen = look_into(server)
    assert len(seen["jobs"]) == 1
    assert len(seen["threads"]) == 1
    assert seen["tasks"]
    bench.office.client.kill(job_id)
    assert bench.office.wait(job_id, 20).job.status is Status.KILL
    assert look_into(server) == NOTHING
    assert list(server.tenants()) == []
    assert not bench.written()
    after = bench.submit()
    assert bench.office.wait(after, END_S).job.status is Status.SUCCESS
    assert bench.server(after) == server


def test_a_driver_that_is_killed_has_ended_when_its_query_has(bench: Bench) -> None:
    server = bench.house.wait_open()
    job_id = bench.submit(script=STOPPABLE)
    bench.wait_at_work(job_id)
    directory = bench.directory(job_id)
    with stopped(server):  # it cannot see the driver off meanwhile
        kill_driver(directory)
        assert [found.state for found in bench.runner.find(directory.run)] == [RunState.RUNNING]
        with pytest.raises(SparkRunnerError, match="is running"):
            bench.runner.cleanup(directory.run)
    detail = bench.office.wait(job_id, END_S)
    assert (detail.job.status, bench.attempts(detail)) == (
        Status.ERROR_FAIL,
        [("failed", "infrastructure")],
    )
    assert look_into(server) == NOTHING


def test_a_job_with_settings_of_its_own_and_a_program_get_jvms_of_their_own(bench: Bench) -> None:
    own = bench.submit(spark={"conf": {"spark.sql.ansi.enabled": "false"}})
    python = bench.office.submit("from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate()")
    for job_id in (own, python):
        assert bench.office.wait(job_id, END_S).job.status is Status.SUCCESS
        assert bench.server(job_id) is None
        assert (bench.directory(job_id).path / "spark.log").exists()


def test_the_jobs_of_a_server_that_crashes_are_lost_and_run_again_in_jvms_of_their_own(
    office: Office, tmp_path: Path
) -> None:
    with own_bench(office, tmp_path) as (bench, server):
        bench.rows(ENDLESS)
        retry = {"attempts": 2, "delay": "10ms", "on": ["lost"]}
        jobs = [bench.submit(retry=retry), bench.submit(retry=retry)]
        for job_id in jobs:
            bench.wait_at_work(job_id, rows=1)
        bench.rows(FEW)
        process_of(server, "java").kill()
        for job_id in jobs:
            detail = office.wait(job_id, END_S)
            assert detail.job.status is Status.SUCCESS, detail
            assert bench.attempts(detail) == [("lost", "lost"), ("succeeded", "")]
            assert detail.attempts[0]["error"]["type"] == "JvmGone"
            assert (bench.server(job_id, 1), bench.server(job_id, 2)) == (server, None)
        assert bench.house.wait_open(other_than=server)


def test_a_job_that_comes_too_late_for_a_server_is_submitted_again_in_the_same_attempt(
    office: Office, tmp_path: Path
) -> None:
    with own_bench(office, tmp_path) as (bench, server):
        bench.house.keeper.stop()  # from now on it believes that the server is open
        bench.house.servers.submits.kill(server.run, grace_seconds=0)
        job_id = bench.submit()
        detail = office.wait(job_id, END_S)
        assert (detail.job.status, bench.attempts(detail)) == (Status.SUCCESS, [("succeeded", "")])
        first, second = run_directories(bench.submits.state_dir, run_name(detail.run_key, 1))
        assert ((first.path / LINK).readlink(), first.exit_code()) == (server.path, exit_codes.NO_CONTACT)
        assert "cannot be used" in (first.path / "stderr.log").read_text("utf-8")
        assert not (second.path / LINK).exists()


def test_a_query_that_cannot_be_cancelled_costs_the_server_and_no_more(
    office: Office, tmp_path: Path
) -> None:
    with own_bench(office, tmp_path) as (bench, server):
        bench.rows(ENDLESS)
        job_id = bench.submit()
        bench.wait_at_work(job_id, rows=1)
        office.client.kill(job_id)
        assert office.wait(job_id, 20).job.status is Status.KILL
        assert not bench.house.servers.runs(server)
        assert not bench.written()
        bench.rows(FEW)
        bench.house.wait_open(other_than=server)
        after = bench.submit()
        assert office.wait(after, END_S).job.status is Status.SUCCESS
        assert bench.server(after) not in {None, server}


def test_who_kills_a_job_ends_a_server_that_hangs(office: Office, tmp_path: Path) -> None:
    with own_bench(office, tmp_path) as (bench, server):
        job_id = bench.submit(script=STOPPABLE)
        bench.wait_at_work(job_id)
        with stopped(server):
            office.client.kill(job_id)
            assert office.wait(job_id, 30).job.status is Status.KILL
            assert not bench.house.servers.runs(server)


def test_a_server_is_replaced_after_so_many_jobs_and_ends_without_workers(
    office: Office, tmp_path: Path
) -> None:
    with own_bench(office, tmp_path, {"jobs": 2, "alone": 0.1, "late": 0.1}) as (bench, first):
        jobs = [bench.submit() for _ in range(2)]
        assert [office.wait(job_id, END_S).job.status for job_id in jobs] == [Status.SUCCESS] * 2
        assert [bench.server(job_id) for job_id in jobs] == [first, first]
        wait_until(lambda: not bench.house.servers.runs(first), END_S, "the first server has ended")
        assert RunDirectory(first.path).exit_code() == 0
        assert "2 drivers have come" in (first.path / "stdout.log").read_text("utf-8")
        second = bench.house.wait_open(other_than=first)
        office.close()
        bench.house.keeper.stop()
        wait_until(lambda: not bench.house.servers.runs(second), END_S, "the second server has ended")
        assert RunDirectory(second.path).exit_code() == 0
