"""Environments of packages on one host, by real pip: installed once, complete or absent, and bounded."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.packages.environment import Environment, Wanted
from spark_runner.runners.packages.installer import Installer
from spark_runner.runners.packages.store import UNUSED_SECONDS, EnvironmentStore, last_use
from tests.another_user import as_another_user
from tests.waiting import wait_until
from tests.wheels import make_wheel

pytestmark = pytest.mark.timeout(300)

SPARK = "4.1.0"


@pytest.fixture(autouse=True)
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only index."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "words", "1.0")
    make_wheel(folder, "words", "2.1")
    make_wheel(folder, "greeting", needs=["words>=2", "pyspark[sql]>=4"])
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> EnvironmentStore:
    return EnvironmentStore(tmp_path / "packages")


def wanted(*requirements: str, packed: bool = False) -> Wanted:
    return Wanted(requirements, sys.executable, SPARK, packed=packed)


def imported(found: Environment, program: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(found.folder)}
    return subprocess.run(
        [sys.executable, "-c", program], check=True, env=environment, capture_output=True, text=True
    ).stdout.strip()


INSTALL = """
import sys
import tempfile
from pathlib import Path
from typing import Any
from spark_runner.runners.packages.environment import Wanted
from spark_runner.runners.packages.store import EnvironmentStore
wanted = Wanted(tuple(sys.argv[2:]), sys.executable, "4.1.0")
print(EnvironmentStore(Path(sys.argv[1])).environment(wanted).folder)
"""


def installing(folder: Path, *requirements: str) -> "subprocess.Popen[str]":
    """Another worker of the host that installs."""
    command = [sys.executable, "-c", INSTALL, str(folder), *requirements]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)


def test_what_packages_need_is_installed_and_spark_is_not(store: EnvironmentStore) -> None:
    found = store.environment(wanted("greeting"))
    assert found.installed == ("greeting==1.0", "words==2.1")
    assert imported(found, "import words; print(words.version)") == "2.1"
    assert not list(found.folder.glob("pyspark*")), "the Spark of the pool is the one that counts"
    assert not found.compiled
    assert found.folder.stat().st_mode & 0o777 == 0o755, "drivers of other users read it"
    assert {path.stat().st_mode & 0o777 for path in found.folder.glob("*.py")} == {0o644}


def test_workers_of_one_host_install_once(store: EnvironmentStore) -> None:
    others = [installing(store.folder, "greeting==1.0") for _ in range(3)]
    folders = {str(store.environment(wanted("greeting==1.0")).folder)}
    folders.update(other.communicate(timeout=200)[0].strip() for other in others)
    assert len(folders) == 1
    assert [path for path in store.folder.iterdir() if path.is_dir()] == [Path(*folders)]


class Counting(EnvironmentStore):
    """A store that remembers what it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.calls: list[Wanted] = []

    def environment(self, wanted: Wanted) -> Environment:
        self.calls.append(wanted)
        return super().environment(wanted)


def test_jobs_that_ask_at_once_share_one_installation(tmp_path: Path) -> None:
    store, done = Counting(tmp_path / "packages"), threading.Event()
    installer = Installer(store)
    installer.on_change(done.set)
    assert [installer.ready(wanted("words")) for _ in range(20)] == [None] * 20, "no caller waits"
    assert done.wait(120)
    assert installer.ready(wanted("words")) is not None
    assert store.calls == [wanted("words")]


def test_many_environments_are_installed_two_at_once_and_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.runners.packages.installer._MOST_ASKED", 5)
    done = threading.Semaphore(0)

    class Refusing(EnvironmentStore):
        def environment(self, wanted: Wanted) -> Environment:
            at_once.append(sum(each.name == "packages" for each in threading.enumerate()))
            raise RefusedSubmission(f"no {wanted}")

    at_once = list[int]()
    installer = Installer(Refusing(tmp_path / "packages"))
    installer.on_change(done.release)
    sets = [wanted(f"p{number}") for number in range(50)]
    assert [installer.ready(each) for each in sets] == [None] * 50
    for _ in sets:
        assert done.acquire(timeout=60)
    assert max(at_once) <= 2
    with pytest.raises(RefusedSubmission, match="no 1 package: p49"):
        installer.ready(sets[-1])
    assert installer.ready(sets[0]) is None, "it is forgotten, and tried again"


def test_a_listener_that_fails_ends_no_installation(tmp_path: Path) -> None:
    done = threading.Semaphore(0)

    def fails() -> None:
        done.release()
        raise RuntimeError

    installer = Installer(Counting(tmp_path / "packages" / "\0"))
    installer.on_change(fails)
    for number in range(4):
        assert installer.ready(wanted(f"p{number}")) is None
        assert done.acquire(timeout=60)


KILL = """
import os, pathlib, signal, zipfile

def kill(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

unlink = pathlib.Path.unlink
"""


def killed_in(folder: Path, act: str, *, packed: bool = False) -> None:
    """Another worker of the host, which is killed at an act of its own."""
    install = INSTALL.replace('"4.1.0"', f'"4.1.0", packed={packed}')
    command = [sys.executable, "-c", f"{KILL}{act}{install}", str(folder), "words"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGKILL


def test_after_a_kill_the_half_of_an_archive_is_removed(store: EnvironmentStore) -> None:
    killed_in(store.folder, "zipfile.ZipFile.write = kill", packed=True)
    before = {path for path in store.folder.rglob("*") if path.name == "archive" or ".zip" in path.name}
    assert before, "it was in the middle"
    found = store.environment(wanted("words", packed=True))
    assert imported_from_zip(found.archive) == "2.1"
    assert not any(path.exists() for path in before)


def test_after_a_kill_during_a_removal_the_rest_is_removed(store: EnvironmentStore) -> None:
    old = store.environment(wanted("words==1.0", packed=True))
    age(old, UNUSED_SECONDS + 60)
    at_archive = "lambda path, **named: kill() if path.suffix == '.zip' else unlink(path, **named)"
    killed_in(store.folder, f"pathlib.Path.unlink = {at_archive}")
    assert old.archive.exists(), "it was in the middle"
    store.environment(wanted("greeting"))
    assert not list(store.folder.glob(f"{old.folder.name}*"))


def test_after_a_kill_in_the_middle_nothing_of_it_is_used(
    store: EnvironmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an index that never answers
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        worker = installing(store.folder, "words==1.0")
        wait_until(lambda: pips(worker.pid), 60, "pip runs")
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            below = pips(worker.pid)
            worker.kill()
            worker.communicate()
        wait_until(lambda: not any(each.is_running() for each in below), 20, "pip has ended with its worker")
    assert list(store.folder.glob(".build-*")), "it was in the middle"
    assert not list(store.folder.glob("*.json"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    found = store.environment(wanted("words==1.0"))
    assert imported(found, "import words; print(words.version)") == "1.0"
    assert not list(store.folder.glob(".build-*")), "what the killed worker left is removed"


def pips(pid: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children(recursive=True) if "install" in words_of(each)]


def words_of(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess):  # it has just ended, or is a zombie
        return process.cmdline()
    return []


def test_a_folder_without_its_manifest_is_not_used_and_is_removed(store: EnvironmentStore) -> None:
    before = store.environment(wanted("words"))
    for manifest in store.folder.glob("*.json"):
        manifest.unlink()
    (before.folder / "words.py").write_text("half of it", "utf-8")
    after = store.environment(wanted("words"))
    assert after.folder != before.folder
    assert not before.folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda found: (found.folder / "words.py").unlink(),
        lambda found: (found.folder / "words.py").write_text("", "utf-8"),
        lambda found: next(found.folder.parent.glob("*.json")).write_text("{", "utf-8"),
        lambda found: next(found.folder.parent.glob("*.json")).write_text('{"folder": "../../etc"}', "utf-8"),
    ],
)
def test_a_damaged_environment_is_installed_again(store: EnvironmentStore, damage: object) -> None:
    before = store.environment(wanted("words"))
    assert callable(damage)
    damage(before)
    after = store.environment(wanted("words"))
    assert after.is_intact()
    assert imported(after, "import words; print(words.version)") == "2.1"


def age(found: Environment, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(found.lock, (at, at))


def test_what_no_job_uses_for_long_is_removed_and_what_a_driver_uses_stays(store: EnvironmentStore) -> None:
    old, used = store.environment(wanted("words==1.0")), store.environment(wanted("words==2.1"))
    for each in (old, used):
        age(each, UNUSED_SECONDS + 60)
    with used.lock.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a driver does
        store.environment(wanted("greeting"))
        assert not old.folder.exists()
        assert used.is_intact()
    store.environment(wanted("words"))
    assert not used.folder.exists()


def test_beyond_the_limit_the_longest_unused_go_first(tmp_path: Path) -> None:
    store = EnvironmentStore(tmp_path / "packages", max_bytes=1)
    first, second = store.environment(wanted("words==1.0")), store.environment(wanted("words==2.1"))
    age(first, 7200)
    store.environment(wanted("greeting"))
    assert not first.folder.exists()
    assert second.is_intact(), "a job that was just submitted may start with it"


def test_a_use_is_noted(store: EnvironmentStore) -> None:
    found = store.environment(wanted("words"))
    age(found, 1000)
    store.environment(wanted("words"))
    assert time.time() - last_use(found) < 500


def test_the_login_of_an_index_changes_no_environment(
    store: EnvironmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = set()
    for password in ("hunter21", "hunter22"):
        monkeypatch.setenv("PIP_INDEX_URL", f"https://ann:{password}@pypi.example.org/simple")
        folders.add(store.environment(wanted("words")).folder)
    assert len(folders) == 1
    monkeypatch.setenv("PIP_INDEX_URL", "https://other.example.org/simple")
    assert store.environment(wanted("words")).folder not in folders


def test_the_archive_for_other_hosts_is_complete_or_absent(store: EnvironmentStore) -> None:
    found = store.environment(wanted("words"))
    assert not found.archive.exists()
    again = store.environment(wanted("words", packed=True))
    assert again == found
    assert imported_from_zip(found.archive) == "2.1"


def imported_from_zip(archive: Path) -> str:
    program = f"import sys; sys.path.insert(0, {str(archive)!r}); import words; print(words.version)"
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.strip()


# ---------------------------------------------------------------------- errors
def test_an_unknown_version_is_refused_with_the_nearest(store: EnvironmentStore) -> None:
    with pytest.raises(
        RefusedSubmission, match=r"there is no words==2\.2; the nearest is 2\.1; the latest are"
    ):
        store.environment(wanted("words==2.2"))


def test_an_unknown_package_is_refused(store: EnvironmentStore) -> None:
    with pytest.raises(RefusedSubmission, match=r"no wheel of no-such-package for Python 3\.\d+ on linux"):
        store.environment(wanted("no-such-package"))


def test_a_source_distribution_is_not_built(store: EnvironmentStore, wheels: Path) -> None:
    source = wheels / "evil-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(wheels / 'ran')!r}, 'w')\n", "utf-8")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n", "utf-8")
    subprocess.run(["tar", "czf", "evil-1.0.tar.gz", "evil-1.0"], check=True, cwd=wheels)
    with pytest.raises(RefusedSubmission, match="Source distributions are not built"):
        store.environment(wanted("evil"))
    assert not (wheels / "ran").exists()


def test_packages_that_contradict_each_other_are_refused(store: EnvironmentStore) -> None:
    with pytest.raises(RefusedSubmission, match=r"greeting.* depends on words>=2"):
        store.environment(wanted("greeting", "words==1.0"))


def test_a_package_for_another_spark_is_refused(store: EnvironmentStore, wheels: Path) -> None:
    make_wheel(wheels, "old_delta", needs=["pyspark<4"])
    with pytest.raises(RefusedSubmission, match=r"pyspark"):
        store.environment(wanted("old-delta"))
    with pytest.raises(
        RefusedSubmission, match=r"pyspark==3\.5\.1 is not the Spark of the pool, which is 4\.1\.0"
    ):
        store.environment(wanted("pyspark==3.5.1"))
    assert store.environment(wanted("pyspark==4.1.0", "words")).installed == ("words==2.1",)


def test_an_index_that_does_not_answer_is_no_fault_of_the_job(
    store: EnvironmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_RETRIES", "0")  # pip would then report a missing package
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("PIP_INDEX_URL", f"http://ann:hunter22@127.0.0.1:{port}/simple")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(SubmissionError, match=r"index of this worker is unreachable: .*refused") as caught:
        store.environment(wanted("words"))
    assert not isinstance(caught.value, RefusedSubmission)
    assert "hunter22" not in str(caught.value)


@contextmanager
def index_that_answers(status: int) -> Iterator[str]:
    """The address of an index with one answer for all requests; with a login."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://ann:hunt@er22@127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refuses the login of this worker"),
        (403, r"refuses words \(403\)"),
        (429, "unreachable: 429 Client Error: Too Many Requests"),
        (500, "unreachable: .*500"),
        (503, "unreachable: .*503"),
    ],
)
def test_what_an_index_refuses_or_fails_to_answer_is_no_fault_of_the_job(
    store: EnvironmentStore, monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with index_that_answers(status) as url:
        monkeypatch.setenv("PIP_INDEX_URL", url)
        with pytest.raises(SubmissionError, match=words) as caught:
            store.environment(wanted("words"))
    assert not isinstance(caught.value, RefusedSubmission)
    assert "er22" not in str(caught.value)


def test_a_package_that_no_index_has_is_refused(
    store: EnvironmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with index_that_answers(404) as url:
        monkeypatch.setenv("PIP_INDEX_URL", url)
        with pytest.raises(RefusedSubmission, match="no wheel of words"):
            store.environment(wanted("words"))


def test_an_index_that_refuses_other_packages_changes_no_error(
    store: EnvironmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")  # words is found in the folder
    with index_that_answers(403) as url:
        monkeypatch.setenv("PIP_INDEX_URL", url)
        with pytest.raises(RefusedSubmission, match=r"there is no words==2\.2"):
            store.environment(wanted("words==2.2"))


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""


def test_without_space_nothing_is_published_and_a_later_try_succeeds(
    store: EnvironmentStore, wheels: Path
) -> None:
    make_wheel(wheels, "large", text=f"data = '{'x' * 100_000}'\n")
    program = f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN){FULL}{INSTALL}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(store.folder), "large"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "SubmissionError" in done.stderr, done
    assert not list(store.folder.glob("*.json"))
    assert not list(store.folder.glob(".build-*"))
    assert store.environment(wanted("large")).installed == ("large==1.0",)


def test_a_manifest_is_readable_by_people(store: EnvironmentStore) -> None:
    found = store.environment(wanted("words"))
    (manifest,) = store.folder.glob("*.json")
    document = json.loads(manifest.read_text("utf-8"))
    assert document["installed"] == ["words==2.1"]
    assert document["folder"] == found.folder.name


def test_the_user_of_a_driver_reads_and_holds_an_environment_and_changes_nothing() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        found = EnvironmentStore(Path(folder, "packages")).environment(wanted("words"))
        module = found.folder / "words.py"
        acts: dict[str, Callable[[], Any]] = {
            "read": module.read_text,
            "hold": lambda: fcntl.flock(os.open(found.lock, os.O_RDONLY), fcntl.LOCK_SH),
            "change": lambda: module.write_text("evil"),
            "add": (found.folder / "evil.py").touch,
            "replace": lambda: found.folder.rename(found.folder.with_name("other")),
            "manifest": lambda: next(found.folder.parent.glob("*.json")).write_text("{}"),
        }
        answers = {name: as_another_user(act) for name, act in acts.items()}
    assert answers == {
        "read": "version = '2.1'\n",
        "hold": None,
        **dict.fromkeys(("change", "add", "replace", "manifest"), "PermissionError"),
    }
