"""Class archives with a Spark that is a shell script: when they are made, by which worker, and when never."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.class_archive.store import Fit, fit_of
from spark_runner.runners.kubernetes.launch import launch_pod
from spark_runner.runners.kubernetes.program import PodProgram
from spark_runner.runners.launch import Launch, launch_driver
from spark_runner.runners.run_directory import RunDirectory, run_directory
from spark_runner.runners.yarn.launch import launch_on_cluster
from tests.waiting import wait_until

# As spark-submit: reads the settings from the file after --properties-file; writes the archive like the JVM.
SPARK_SUBMIT = """#!/bin/sh
options=$(grep extraJavaOptions "$2")
archive=$(expr "$options" : '.*ArchiveClassesAtExit\\\\=\\([^"]*\\)"')
echo run >> "{folder}/runs"
nice >> "{folder}/nice"
[ -z "$archive" ] || {dump}
{then}
"""
DUMP = 'head -c 2000000 /dev/zero > "$archive"'


class Host:
    """A host whose Java and Spark are shell scripts, with a cache directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("java/bin/java", "java/lib/modules", "java/lib/server/libjvm.so", "spark/jars/core.jar"):
            path = folder / name
            path.parent.mkdir(parents=True)
            path.write_text("#!/bin/sh\n", "ascii")
        (folder / "java/bin/java").chmod(0o755)
        (folder / "spark/bin").mkdir()
        self.spark(DUMP)
        self.cache = folder / "cache"

    def spark(self, dump: str, then: str = "exit 0") -> None:
        program = self.folder / "spark/bin/spark-submit"
        program.write_text(SPARK_SUBMIT.format(folder=self.folder, dump=dump, then=then), "ascii")
        program.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {"JAVA_HOME": str(self.folder / "java"), "SPARK_HOME": str(self.folder / "spark")}

    def archives(self, *, is_idle: Callable[[Path], bool] = lambda _folder: True) -> ClassArchives:
        return ClassArchives(self.cache, is_idle=is_idle, look_seconds=0.05)

    def launch(self, archives: ClassArchives, *, options: str = "") -> tuple[RunDirectory, str]:
        """The run directory of a driver and its settings."""
        conf = {"spark.driver.extraJavaOptions": options} if options else {}
        request = SubmitRequest(
            f"{uuid.uuid4()}-1", uuid.uuid4().hex, "a name", {}, conf=conf, environment=self.environment
        )
        directory = run_directory(self.folder / "state", request.run, request.incarnation)
        directory.create()
        launch_driver(
            request,
            directory,
            driver_main=Path("driver.py"),
            conf_dir=self.folder / "state/spark-conf",
            quick_start=archives,
        )
        return directory, (directory.path / "spark.properties").read_text("ascii")

    def hand_over(self, archives: ClassArchives, backend: str) -> Launch:
        """The launch by which spark-submit would hand a driver over."""
        target = SparkTarget("", "cluster", {"image": "spark"})
        request = SubmitRequest(
            f"{uuid.uuid4()}-1", uuid.uuid4().hex, "a name", {}, target, environment=self.environment
        )
        directory = run_directory(self.folder / "state", request.run, request.incarnation)
        directory.create()
        state_dir = self.folder / "state"
        if backend == "yarn":
            return launch_on_cluster(
                request, directory, driver_main=Path("driver.py"), shared_dir=state_dir, quick_start=archives
            )
        secret = {"metadata": {"name": "some"}}
        program = PodProgram("local:///driver.py", (), code={"/opt/code": secret}, plan=secret)
        conf_dir = state_dir / "spark-conf"
        return launch_pod(
            request, program, directory, "here", context="", conf_dir=conf_dir, quick_start=archives
        )

    def fit(self, archives: ClassArchives, *flags: str) -> Fit:
        found = fit_of(self.environment, {}, flags, archives.conf_dir(self.cache))
        assert found is not None
        return found

    def runs(self) -> int:
        path = self.folder / "runs"
        return len(path.read_text("ascii").splitlines()) if path.exists() else 0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    return Host(tmp_path)


@pytest.fixture
def archives(host: Host) -> Iterator[ClassArchives]:
    archives = host.archives()
    yield archives
    archives.close()
    assert not processes_of(f"class-archive-{host.fit(archives).key}")


def wait_made(host: Host, archives: ClassArchives) -> Path:
    key = host.fit(archives).key
    path = wait_until(lambda: archives.store.find(key), 30, "the archive")
    wait_until(lambda: not archives.maker.is_busy(), 10, "the maker's rest")
    return path


def test_the_first_driver_starts_without_and_the_next_ones_with_an_archive(
    host: Host, archives: ClassArchives
) -> None:
    _, first = host.launch(archives)
    assert "SharedArchiveFile" not in first
    path = wait_made(host, archives)
    _, second = host.launch(archives)
    assert f"SharedArchiveFile\\={path}" in second
    assert "Xshare\\:auto" in second
    assert host.runs() == 2  # the dump, and a driver that tests it
    assert set((host.folder / "nice").read_text("ascii").split()) == {"19"}
    assert not archives.store.making.exists()


@pytest.mark.parametrize("backend", ["kubernetes", "yarn"])
def test_the_launcher_of_a_driver_in_a_cluster_has_the_archive_too(
    host: Host, archives: ClassArchives, backend: str
) -> None:
    host.launch(archives, options="-XX:+UseSerialGC")  # as for short jobs
    key = host.fit(archives, "-XX:+UseSerialGC").key
    path = wait_until(lambda: archives.store.find(key), 30, "the archive")
    launch = host.hand_over(archives, backend)
    assert f'"-XX:SharedArchiveFile={path}"' in launch.environment["SPARK_SUBMIT_OPTS"].split()
    assert launch.environment["SPARK_CONF_DIR"] == str(archives.conf_dir(host.folder))


def test_another_worker_uses_what_one_has_made(host: Host, archives: ClassArchives) -> None:
    host.launch(archives)
    wait_made(host, archives)
    other = ClassArchives(host.cache, make=False)
    assert "SharedArchiveFile" in host.launch(other)[1]


def test_the_empty_conf_dir_is_shared_and_an_other_one_gets_no_archive(
    host: Host, archives: ClassArchives
) -> None:
    otherwise = host.folder / "state/spark-conf"
    shared = archives.conf_dir(otherwise)
    assert (shared, list(shared.iterdir())) == (host.cache / "spark-conf", [])
    host.launch(archives)
    wait_made(host, archives)
    shared.chmod(0o700)
    (shared / "spark-defaults.conf").write_text("spark.x 1", "ascii")
    assert archives.conf_dir(otherwise) == otherwise
    assert "SharedArchiveFile" not in host.launch(archives)[1]
    (shared / "spark-defaults.conf").unlink()
    shared.chmod(0o777)  # any user may put settings there
    assert archives.conf_dir(otherwise) == otherwise


def test_the_users_own_archive_stays(host: Host, archives: ClassArchives) -> None:
    host.launch(archives)
    wait_made(host, archives)
    _, settings = host.launch(archives, options="-XX:SharedArchiveFile=/mine.jsa")
    assert settings.count("SharedArchiveFile") == 1
    assert "/mine.jsa" in settings


@pytest.mark.parametrize(
    ("dump", "then"),
    [
        ("exit 1", "exit 0"),
        ("true", "exit 0"),
        ('echo x > "$archive"', "exit 0"),
        (DUMP, '[ -n "$archive" ]'),
    ],
    ids=["a failing dump", "no archive", "a scrap", "a driver that fails with it"],
)
def test_a_faulty_archive_is_not_used_and_not_made_again(
    host: Host, archives: ClassArchives, dump: str, then: str
) -> None:
    host.spark(dump, then)
    host.launch(archives)
    wait_until(lambda: host.runs() >= 1 and not archives.maker.is_busy(), 30, "the end of the try")
    runs = host.runs()
    assert "SharedArchiveFile" not in host.launch(archives)[1]
    assert not archives.maker.is_busy()
    assert host.runs() == runs
    assert {path.name for path in archives.store.directory.iterdir()} == {"lock"}


def test_a_busy_host_makes_none(host: Host) -> None:
    looks: list[Path] = []

    def is_busy_now(folder: Path) -> bool:
        looks.append(folder)
        return False

    archives = host.archives(is_idle=is_busy_now)
    host.launch(archives)
    wait_until(lambda: len(looks) > 3, 20, "several looks")
    archives.close()
    assert host.runs() == 0


def test_while_another_worker_makes_one_this_one_waits(host: Host, archives: ClassArchives) -> None:
    looks: list[Path] = []

    def is_idle_now(folder: Path) -> bool:
        looks.append(folder)
        return True

    waiting = host.archives(is_idle=is_idle_now)
    with archives.store.locked() as mine:
        assert mine
        host.launch(waiting)
        assert not waiting.maker.try_to_make(host.fit(waiting))
        assert not looks
    wait_made(host, waiting)
    waiting.close()


def test_a_cache_that_cannot_be_used_costs_nothing(host: Host) -> None:
    host.cache.write_text("a file", "ascii")
    archives = host.archives()
    assert "SharedArchiveFile" not in host.launch(archives)[1]
    archives.close()
    assert host.runs() == 0


def test_an_archive_with_which_a_jvm_crashed_is_given_up(host: Host, archives: ClassArchives) -> None:
    host.launch(archives)
    path = wait_made(host, archives)
    ended, _ = host.launch(archives)
    ended.write("exit.json", '{"exit_code": 1}')
    assert "SharedArchiveFile" in host.launch(archives)[1]  # a failed program proves nothing about it
    crashed, _ = host.launch(archives)
    crashed.write("exit.json", '{"exit_code": 139}')
    assert "SharedArchiveFile" not in host.launch(archives)[1]
    assert not path.exists()
    assert "SharedArchiveFile" not in host.launch(archives)[1]
    assert host.runs() == 2  # and it is not made again


def test_a_truncated_archive_is_not_given_to_a_jvm(host: Host, archives: ClassArchives) -> None:
    """It would end the JVM by SIGBUS, whatever -Xshare says."""
    host.launch(archives)
    path = wait_made(host, archives)
    assert "SharedArchiveFile" in host.launch(archives)[1]
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    for each in (archives, ClassArchives(host.cache, make=False)):
        assert "SharedArchiveFile" not in host.launch(each)[1]


def test_the_maker_of_an_archive_ends_with_its_worker(host: Host, archives: ClassArchives) -> None:
    host.spark("sleep 600")
    run = f"class-archive-{host.fit(archives).key}"
    worker = (
        "import sys, threading; from pathlib import Path\n"
        "from tests.integration.test_class_archive import Host\n"
        "host = object.__new__(Host); host.folder = Path(sys.argv[1]); host.cache = Path(sys.argv[2])\n"
        "archives = host.archives(); host.launch(archives); threading.Event().wait()"
    )
    process = subprocess.Popen([sys.executable, "-c", worker, str(host.folder), str(host.cache)])
    try:
        wait_until(lambda: host.runs() == 1, 30, "a dump that is under way")
        assert processes_of(run)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_until(lambda: not processes_of(run), 20, "the end of the dump")
    with archives.store.locked() as mine:
        assert mine  # the next worker may make it
    assert archives.store.find(host.fit(archives).key) is None
