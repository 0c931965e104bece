"""Another user of the host, with Spark's own client and without a secret, against Spark on loopback."""

import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import RunState, SparkTarget, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.class_archive import archives
from tests.hostile.targets import listening
from tests.hostile.thief import loot
from tests.opened_ports import OPENINGS, all_of
from tests.waiting import wait_until
from tests.warm_support import WarmHouse

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

START_SECONDS = 120.0
ROW = "row-that-is-for-its-job-alone"
KEEP = f"""
spark.range(3).selectExpr("concat('{ROW}', id) AS row").coalesce(1).cache().count()
"""
DRIVER = f"""
import pathlib, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
{KEEP}
pathlib.Path(sys.argv[1]).with_name("kept").touch()
time.sleep(300)
"""
TENANT = f"""
import sys
from pathlib import Path
from spark_runner.driver.jvm import WarmJvm
jvm = WarmJvm(Path(sys.argv[1]), "keeps")
jvm.enter()
spark = jvm.session()
{KEEP}
print("kept", flush=True)
sys.stdin.read()
spark.catalog.clearCache()
jvm.leave()
"""


@pytest.fixture
def runner(tmp_path: Path) -> LocalRunner:
    main = tmp_path / "driver.py"
    main.write_text(DRIVER, "utf-8")
    return LocalRunner(SparkSubmits(tmp_path / "state", quick_start=archives()), driver_main=main)


@pytest.fixture
def run(runner: LocalRunner) -> Iterator[str]:
    run = f"{uuid.uuid4()}-1"
    yield run
    runner.kill(run, grace_seconds=0)


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder that each user may read; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def keep_rows(runner: LocalRunner, run: str, conf: Mapping[str, str], tmp_path: Path) -> None:
    """Start a driver with these settings and wait until it has rows in its cache."""
    target = SparkTarget("local[1]")
    runner.submit(SubmitRequest(run, str(uuid.uuid4()), "a name", {}, target, conf, is_short=True))
    directory = next((tmp_path / "state" / "runs" / run).iterdir())

    def kept() -> bool:
        assert runner.find(run)[0].state is RunState.RUNNING, (directory / "stderr.log").read_text("utf-8")
        return (directory / "kept").exists()

    wait_until(kept, START_SECONDS, "the driver keeps rows")


def ports(run: str) -> tuple[int, ...]:
    """The addresses on which the processes of a run listen, as any user can read them in /proc/net/tcp."""
    found = listening(tuple(processes_of(run)))
    assert found, "a driver listens on loopback"
    return found


def test_a_driver_that_asks_for_it_gives_its_rows_to_each_user_of_the_host(
    runner: LocalRunner, run: str, tmp_path: Path, shelf: Path
) -> None:
    keep_rows(runner, run, {"spark.authenticate": "false"}, tmp_path)
    assert ROW in loot(ports(run), shelf)


def test_a_driver_gives_its_rows_to_no_other_user_of_the_host(
    runner: LocalRunner, run: str, tmp_path: Path, shelf: Path
) -> None:
    keep_rows(runner, run, {}, tmp_path)
    said = loot(ports(run), shelf)
    assert "Expected SaslMessage" in said
    assert " gave " not in said


@pytest.mark.parametrize("conf", [{}, {"spark.ui.enabled": "true"}], ids=["plain", "pages of the operator"])
def test_a_driver_with_a_local_master_listens_on_loopback_alone(
    runner: LocalRunner, run: str, tmp_path: Path, conf: Mapping[str, str]
) -> None:
    keep_rows(runner, run, conf, tmp_path)
    assert len(ports(run)) == 4 + len(conf), "gateway, RPC, blocks, what Python counts; pages"


def test_the_settings_that_a_definition_cannot_have_open_ports_beyond_loopback(
    runner: LocalRunner, run: str, tmp_path: Path
) -> None:
    """`test_policy_ports` refuses working settings, since the pages on loopback have no login."""
    keep_rows(runner, run, all_of(OPENINGS), tmp_path)
    with pytest.raises(AssertionError, match="reached from other hosts") as beyond:
        ports(run)
    assert str(beyond.value).count("addr(") >= len(OPENINGS) - 1, "RPC and blocks, Connect, JMX, a debugger"


def test_a_warm_server_gives_the_rows_of_its_jobs_to_no_other_user_of_the_host(
    warm: WarmHouse, shelf: Path
) -> None:
    server = warm.wait_open()
    command = [sys.executable, "-c", TENANT, str(server.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tenant:
        assert tenant.stdout is not None
        assert tenant.stdout.readline() == "kept\n"
        said = loot(ports(server.run), shelf)
        tenant.communicate()
    assert "Expected SaslMessage" in said
    assert " gave " not in said
