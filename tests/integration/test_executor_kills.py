"""Executors of a cluster are killed by -9, again and again, while a job drains files into a database.

In one table rows replace each other by their key, and another one has no key. Spark runs the tasks again,
while Python workers of dead executors may still write. A job that fails is tried again, as by a worker.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.sampling import chance, sample, times
from tests.servers.databases import DatabaseServer, driver_jars
from tests.servers.standalone import SMALL_APPLICATION, Standalone
from tests.spark_programs import start_stream_driver
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.drawn("kills of writers"),
    pytest.mark.spark,
    pytest.mark.timeout(7200),
]

KILLS = times(1, 50)
FILES = 2 * KILLS + 2  # each of them is a micro-batch: they last longer than the kills
ROWS = times(1_000, 2_000)  # of a file
HALF = ROWS // 2  # the keys that a file has again from the one before
DELETED = 7  # rows with a multiple of it delete their key
INSERTS = """EXECUTE STATEMENT SET BEGIN
  INSERT INTO dst SELECT id, n, (id + n) % 7 = 0 AS gone FROM src;
  INSERT INTO log SELECT id, n FROM src;
END"""
START_S = 180
EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.fixture(params=sample(("postgres", "mariadb"), 1, "targets of executors"))
def database(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


class Drain:
    """The drivers of one job, one after the other, while executors die."""

    def __init__(self, script: str, folder: Path, standalone: Standalone, writes: Callable[[], bool]) -> None:
        self._script, self._folder, self._standalone = script, folder, standalone
        self._writes = writes  # whether rows are on their way into a table
        self._driver: subprocess.Popen[bytes] | None = None
        self.failed = 0  # drivers

    def executors(self) -> list[psutil.Process]:
        found = []
        for process in self._standalone.local().processes():
            with suppress(psutil.Error):
                found += [process] if any(EXECUTOR in each for each in process.cmdline()) else []
        return found

    def kill_executor(self, seconds: float) -> None:
        """Kill the executor, not its Python workers, after a write of a new micro-batch has begun."""
        begun = self._begun()
        wait_until(lambda: self._runs() and self._begun() > begun and self._writes(), START_S, "it writes")
        with suppress(subprocess.TimeoutExpired):
            self._of_now().wait(seconds)
        killed = 0
        for executor in wait_until(self.executors, START_S, "an executor is there"):
            with suppress(psutil.NoSuchProcess):
                executor.send_signal(signal.SIGKILL)
                killed += 1
        assert killed

    def end(self) -> None:
        """Wait for the end of the job."""
        while self._runs() or self._of_now().returncode:
            with suppress(subprocess.TimeoutExpired):
                self._of_now().wait(1)

    def close(self) -> None:
        """Kill the driver; its executors end with it."""
        if self._driver is not None and self._driver.poll() is None:
            os.killpg(self._driver.pid, signal.SIGKILL)
            self._driver.wait()
        wait_until(lambda: not self.executors(), START_S, "the executors end with their application")

    def log(self) -> str:
        """What the drivers have written."""
        return (self._folder / "driver.log").read_text("utf-8", "replace")

    def _runs(self) -> bool:
        """Whether a driver runs; one that has failed is followed by another one."""
        if self._driver is None or self._driver.poll():
            self.failed += self._driver is not None
            assert self.failed <= KILLS, self.log()[-3000:]
            self._driver = start_stream_driver(
                *(self._script, self._folder, driver_jars(), self._folder / "driver.log"),
                master=self._standalone.url,
                conf=SMALL_APPLICATION | {"spark.cores.max": "2"},
            )
        return self._driver.poll() is None

    def _of_now(self) -> "subprocess.Popen[bytes]":
        assert self._driver is not None
        return self._driver

    def _begun(self) -> int:
        offsets = self._folder.glob("checkpoints/**/offsets/*")
        return max((int(each.name) for each in offsets if each.name.isdigit()), default=-1)


@pytest.fixture
def drain(database: DatabaseServer, standalone: Standalone, tmp_path: Path) -> Iterator[Drain]:
    database.run(
        "CREATE TABLE kept (id bigint PRIMARY KEY, n bigint); CREATE TABLE added (id bigint, n bigint)"
    )
    declared = f"""SET job.mode = 'available-now';
    CREATE TABLE src (id BIGINT, n BIGINT) USING json
      OPTIONS (path '{tmp_path}/in', max_files_per_trigger '1');
    CREATE TABLE dst (id BIGINT, n BIGINT, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
      {database.options("kept", delete_column="gone")};
    CREATE TABLE log (id BIGINT, n BIGINT) {database.options("added")};"""
    script = f"{declared}\n{INSERTS}"
    staged = (
        "SELECT count(*) FROM information_schema.tables"  # noqa: S608 - a database of this test
        " WHERE table_name LIKE 'orchestrator_staging%'"
        f" AND '{database.database}' IN (table_schema, table_catalog)"
    )

    def writes() -> bool:
        ((count,),) = database.run(staged)
        return count.isdigit() and int(count) > 0  # an error of the server is no number

    made = Drain(script, tmp_path, standalone, writes)
    try:
        yield made
    finally:
        made.close()


def test_each_row_is_there_once_whenever_executors_are_killed(
    drain: Drain, database: DatabaseServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "in").mkdir()
    expected = dict[str, str]()
    for file in range(FILES):
        rows = [{"id": file * HALF + number, "n": file} for number in range(ROWS)]
        (tmp_path / "in" / f"{file:03}.json").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        expected |= {str(row["id"]): str(row["n"]) for row in rows}
    random = chance(f"executor kills of {database.kind}")
    for _ in range(KILLS):
        drain.kill_executor(random.uniform(0, 0.5))
    drain.end()
    record_property("drivers_that_failed", drain.failed)
    lost = drain.log().count("Lost task")
    record_property("tasks_that_were_lost", lost)
    assert lost >= KILLS // 10, "most kills have met no task: the campaign shows nothing"
    alive = {key: n for key, n in expected.items() if (int(key) + int(n)) % DELETED}
    assert dict(database.run("SELECT id, n FROM kept")) == alive
    counted = database.run("SELECT count(*), sum(id), sum(n) FROM added")
    ids, ns = sum(file * HALF + number for file in range(FILES) for number in range(ROWS)), range(FILES)
    assert counted == [[str(FILES * ROWS), str(ids), str(ROWS * sum(ns))]]
    assert database.run("SELECT count(*) FROM (SELECT DISTINCT id, n FROM added) d") == [[str(FILES * ROWS)]]
