"""Programs and clusters that Spark does not expect: the output of `job show` after a real run."""

import re
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
import yaml

from queues.embedded.java import find_jars
from spark_runner.protocol.log_limit import MAX_LOG_BYTES
from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK, SPARK_TIMEOUT_S, Shell
from tests.servers.standalone import SMALL_APPLICATION, Standalone

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def served(shared_shell: Shell) -> Shell:
    """A shell with a worker."""
    start_worker(shared_shell)
    return shared_shell


def start_worker(shell: Shell) -> None:
    worker = shell.start("worker", "--slots", "2")
    worker.wait_for_words("2 slots", COMMAND_TIMEOUT_S)


def submit(shell: Shell, name: str, program: str, **fields: object) -> None:
    """Enqueue a program."""
    definition = {"name": name, "python": f"{name}.py", "spark": SPARK, "retry": {"attempts": 1}, **fields}
    shell.write(f"{name}.py", program)
    shell.write(f"{name}.yaml", yaml.safe_dump(definition))
    assert shell.type("job", "submit", f"{name}.yaml", "--id", name).code == 0


def show(shell: Shell, name: str) -> str:
    """Wait for the end of a job, and return the output of `job show`."""
    shell.type("job", "wait", name, "--timeout", f"{2 * SPARK_TIMEOUT_S}s", timeout=3 * SPARK_TIMEOUT_S)
    return shell.type("job", "show", name).stdout


def run(shell: Shell, name: str, program: str, **fields: object) -> str:
    """Submit a job, wait for its end, and return the output of `job show`."""
    submit(shell, name, program, **fields)
    return show(shell, name)


# ---------------------------------------------------------------------- programs
FORKS = """
import os, sys
child = os.fork()
if not child:
    sys.exit(9)
os.waitpid(child, 0)
print("the parent has ended")
"""


def test_programs_that_spark_never_hears_of_fork_or_leave_without_a_word(served: Shell) -> None:
    submit(served, "no-session", "print('no Spark in here')\n")
    submit(served, "leaves", "import os\nos._exit(3)\n")
    submit(served, "forks", FORKS)
    assert "SUCCESS, in queue finish" in show(served, "no-session")
    assert "no Spark in here" in served.type("job", "logs", "no-session", "--stream", "stdout").stdout

    left = show(served, "leaves")
    assert "ERROR_FAIL, in queue finish" in left
    assert "error (user):\nits driver ended with exit code 3 and reported no error\n" in left

    assert "SUCCESS, in queue finish" in show(served, "forks"), "the child's exit code is not the job's"
    assert "the parent has ended" in served.type("job", "logs", "forks", "--stream", "stdout").stdout


def test_a_program_that_prints_without_end_fills_no_disk(stand_in_shell: Shell) -> None:
    program = f"""
import sys
line = "x" * 1023 + "\\n"
for _ in range({3 * MAX_LOG_BYTES} // 1024 // 64):
    sys.stdout.write(line * 64)
print("the last words")
"""
    start_worker(stand_in_shell)
    assert "SUCCESS, in queue finish" in run(stand_in_shell, "prints", program)
    (submission,) = stand_in_shell.submissions()
    kept = {path.name: path.stat().st_size for path in submission.glob("stdout.log*")}
    assert sum(kept.values()) <= 2 * MAX_LOG_BYTES, kept
    last = stand_in_shell.type("job", "logs", "prints", "--stream", "stdout").stdout
    assert last.endswith("the last words\n")


# ---------------------------------------------------------------------- packages
@pytest.fixture
def empty_repository(tmp_path: Path) -> Iterator[str]:
    """The address of an empty repository on loopback."""
    folder = tmp_path / "repository"
    folder.mkdir()
    server = HTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Write no log."""


def with_packages(shell: Shell, repository: str) -> dict[str, object]:
    """Settings that make this the only repository of Ivy."""
    resolver = f'<ibiblio name="here" m2compatible="true" root="{repository}"/>'
    settings = shell.write(
        "ivy.xml",
        f'<ivysettings><settings defaultResolver="here"/><resolvers>{resolver}</resolvers></ivysettings>',
    )
    conf = {"spark.jars.ivySettings": str(settings), "spark.jars.ivy": str(shell.directory / "ivy")}
    return {**SPARK, "packages": ["org.example:nothing:1.0"], "conf": conf}


def test_packages_that_are_nowhere_fail_the_job_at_once(served: Shell, empty_repository: str) -> None:
    retry = {"attempts": 2, "submissions": 2, "delay": "1s"}
    shown = run(served, "packages", "print()\n", spark=with_packages(served, empty_repository), retry=retry)
    assert "ERROR_FAIL, in queue finish" in shown
    assert "error (definition):\npackages org.example:nothing:1.0 are in no repository: correct" in shown
    assert "attempts: 1\n" in shown, "a retry would not find them either"


def test_packages_whose_repository_does_not_answer_are_tried_again(served: Shell) -> None:
    spark = with_packages(served, "http://127.0.0.1:1/")
    retry = {"attempts": 1, "submissions": 2, "delay": "1s"}
    shown = run(served, "packages", "print()\n", spark=spark, retry=retry)
    assert "error (submission):\npackages org.example:nothing:1.0 could not be fetched" in shown
    assert "http://127.0.0.1:1/org/example/nothing" in shown
    assert "attempts: 2\n" in shown


# ---------------------------------------------------------------------- clusters
CLIENT = "org/apache/spark/deploy/client/StandaloneAppClient.class"
TRY_SECONDS = re.compile(rb"\x10\x14(\xb5..\x2a\x06\xb5)", re.DOTALL)
"""`bipush 20, putfield`, before `iconst_3, putfield`: three attempts of 20 s, which no option changes."""


def impatient_client(folder: Path) -> Path:
    """Spark's own client of a master, with one second between its attempts."""
    (core,) = find_jars().glob("spark-core_*.jar")
    with zipfile.ZipFile(core) as jar:
        patched, found = TRY_SECONDS.subn(lambda found: b"\x10\x01" + found[1], jar.read(CLIENT))
    assert found == 1, "the constants of Spark have changed"
    file = folder / "impatient.jar"
    with zipfile.ZipFile(file, "w") as jar:
        jar.writestr(CLIENT, patched)
    return file


@pytest.mark.drawn("jobs on clusters")
def test_a_driver_on_a_node_that_finds_no_master(
    standalone: Standalone, served: Shell, tmp_path: Path
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{held.getsockname()[1]}"
        addresses = {"ui": standalone.ui, "rest": standalone.rest, "staging": standalone.staging}
        conf = {**SMALL_APPLICATION, "spark.driver.extraClassPath": str(impatient_client(tmp_path))}
        spark = {"master": master, "deploy_mode": "cluster", "standalone": addresses, "conf": conf}
        shown = run(served, "lonely", "print()\n", spark=spark)
    assert f"error (infrastructure):\nSpark was stopped while it started: {master} did not answer" in shown


# ---------------------------------------------------------------------- versions
OURS = f"3.{sys.version_info.minor}"
COUNTS_IN_PYTHON = """
from pyspark.sql import SparkSession
print(SparkSession.builder.getOrCreate().sparkContext.parallelize([1, 2], 1).map(lambda n: n + 1).sum())
"""
PRETENDS = """\
import sys
known = sys.version_info
class Version(tuple):
    major, minor, micro, releaselevel, serial = known.major, {minor}, *known[2:]
sys.version_info = Version((known.major, {minor}, *known[2:]))
"""


def other_python(folder: Path) -> tuple[Path, str]:
    """A Python of another version, as on a node, and its version; else ours that reports another version."""
    installed = Path.home() / ".pyenv" / "versions"
    for version in ("3.12", "3.13", "3.10"):
        found = (Path(shutil.which(f"python{version}") or ""), *installed.glob(f"{version}.*/bin/python3"))
        for python in found:
            if version != OURS and _version_of(python) == version:
                return python, version
    minor = sys.version_info.minor + 1
    (folder / "sitecustomize.py").write_text(PRETENDS.format(minor=minor), "utf-8")
    wrapper = folder / "python"
    paths = f'PYTHONPATH="{folder}:$PYTHONPATH"'
    wrapper.write_text(f'#!/bin/sh\n{paths} exec {sys.executable} "$@"\n', "utf-8")
    wrapper.chmod(0o755)
    return wrapper, f"3.{minor}"


def _version_of(python: Path) -> str:
    command = [str(python), "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


@pytest.mark.drawn("jobs on clusters")
def test_nodes_with_another_python(standalone: Standalone, served: Shell) -> None:
    python, version = other_python(served.directory)
    conf = SMALL_APPLICATION | {
        "spark.pyspark.python": str(python),
        "spark.pyspark.driver.python": sys.executable,
    }
    spark = {"master": standalone.url, "standalone": {"ui": standalone.ui}, "conf": conf}
    shown = run(served, "versions", COUNTS_IN_PYTHON, spark=spark)
    assert "ERROR_FAIL, in queue finish" in shown
    assert f"the executors run Python {version}, the driver runs Python {OURS}" in shown
    assert "set spark.pyspark.python to that one" in shown
