"""Class archives with real Spark and Java: the drivers that get one, and a JVM with one that does not fit."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import RunState, SparkTarget, SubmitRequest
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.class_archive.store import Fit, fit_of
from spark_runner.runners.launch import driver_environment
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import SHORT_JOB_FLAGS, for_drivers
from spark_runner.runners.spark_submits import SparkSubmits
from tests.class_archive import archives as archives_of_tests
from tests.class_archive import make_archive
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

START_SECONDS = 240.0  # beside other tests; a few seconds on an idle host
LOOK = """
import json, os
from pathlib import Path
maps = Path(f"/proc/{os.getppid()}/maps").read_text()
archive = ".jsa" in maps.replace("classes.jsa", "")
"""
DRIVER = f"""{LOOK}
json.dump({{"archive": archive}}, open("outcome.json", "w"))
"""
SPARK_DRIVER = f"""{LOOK}
from pyspark.sql import SparkSession
rows = SparkSession.builder.getOrCreate().range(1000).count()
json.dump({{"rows": rows, "archive": archive}}, open("outcome.json", "w"))
"""


@pytest.fixture(scope="module", autouse=True)
def _without_options_of_the_tests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_CONF_DIR"):
            patch.delenv(name, raising=False)
        yield


def fit(archives: ClassArchives, *flags: str) -> Fit:
    conf_dir = archives.conf_dir(Path("/nowhere"))
    request = SubmitRequest("x-1", "y", "a name", {})
    environment = driver_environment(request, RunDirectory(conf_dir), conf_dir, for_drivers(()))
    found = fit_of(environment, {}, flags, conf_dir)
    assert found is not None
    return found


def spark_submit(made: Fit) -> str:
    return str(Path(made.spark_home, "bin", "spark-submit"))


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> ClassArchives:
    """With an archive of the classes before the session of a driver: made in a tenth of the time."""
    folder = tmp_path_factory.mktemp("archives")
    sample = folder / "sample.py"
    sample.touch()
    archives = ClassArchives(folder / "cáche dir", make=False)
    short = fit(archives, *SHORT_JOB_FLAGS)
    with pytest.MonkeyPatch.context() as patch, archives.store.locked():
        patch.setattr("spark_runner.runners.class_archive.maker._SAMPLE", sample)
        # Beside other tests a niced process takes ten times as long.
        patch.setattr("spark_runner.runners.class_archive.maker._niced", lambda made: [spark_submit(made)])
        archives.maker.make(short)
    assert not processes_of(f"class-archive-{short.key}")
    return archives


class Drivers:
    """Runs drivers one after the other."""

    def __init__(self, folder: Path, archives: ClassArchives, program: str = DRIVER) -> None:
        self.main = folder / "driver.py"
        self.main.write_text(program, "utf-8")
        self.runner = LocalRunner(SparkSubmits(folder / "state", quick_start=archives), driver_main=self.main)

    def outcome(self, **more: Any) -> dict[str, Any]:
        """The outcome of a driver that succeeded without a message of the JVM about archives."""
        request = SubmitRequest(
            f"{uuid.uuid4()}-1", uuid.uuid4().hex, "a name", {}, target=SparkTarget("local[1]"), **more
        )
        self.runner.submit(request)
        try:
            wait_until(
                lambda: self.runner.find(request.run)[0].state is not RunState.RUNNING,
                START_SECONDS,
                "its end",
            )
        finally:
            self.runner.kill(request.run, grace_seconds=0)
        found = self.runner.find(request.run)[0]
        said = {log.stream: log.path.read_text("utf-8") for log in self.runner.logs(request.run)}
        assert found.exit_code == 0, said
        assert not any("archive" in said[stream].lower() for stream in ("stdout", "stderr")), said
        return dict(found.outcome or {})


@pytest.fixture
def drivers(tmp_path: Path, archives: ClassArchives) -> Drivers:
    return Drivers(tmp_path, archives)


def test_a_short_job_runs_with_an_archive_of_all_that_the_sample_loads(tmp_path: Path) -> None:
    assert make_archive()  # as all tests use it; `make tests` makes it before
    assert Drivers(tmp_path, archives_of_tests(), SPARK_DRIVER).outcome(is_short=True) == {
        "rows": 1000,
        "archive": True,
    }


def test_another_collector_runs_without(drivers: Drivers) -> None:
    conf = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    assert drivers.outcome(is_short=True, conf=conf) == {"archive": False}


def test_what_stands_behind_on_the_class_path_and_blanks_in_the_path_of_the_cache_do_no_harm(
    drivers: Drivers, tmp_path: Path
) -> None:
    (tmp_path / "hadoop").mkdir()
    (tmp_path / "hadoop/core-site.xml").write_text("<configuration/>", "ascii")
    environment = {"HADOOP_CONF_DIR": str(tmp_path / "hadoop")}
    assert drivers.outcome(is_short=True, environment=environment) == {"archive": True}


@pytest.mark.parametrize("content", ["another class path", "garbage"])
def test_the_jvm_goes_without_an_archive_that_does_not_fit(
    tmp_path: Path, archives: ClassArchives, content: str
) -> None:
    """Although it is passed: its checksum is right, and its key is that of this driver."""
    strange = ClassArchives(tmp_path / "cache", make=False)
    key = fit(strange, *SHORT_JOB_FLAGS).key
    real = archives.store.find(fit(archives, *SHORT_JOB_FLAGS).key)
    assert real is not None
    draft = tmp_path / "draft"
    draft.write_bytes(real.read_bytes() if content != "garbage" else b"garbage " * (1 << 20))
    with strange.store.locked():
        strange.store.publish(key, draft)
    assert strange.store.find(key) is not None
    outcome = Drivers(tmp_path, strange, SPARK_DRIVER).outcome(is_short=True)
    assert outcome == {"rows": 1000, "archive": False}
