"""Drivers that run as another user than their worker: their access, and what the worker reads of theirs."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.config.runners import users_of_drivers
from orchestrator.config.settings import Settings
from orchestrator.driver_logs.facts import read_application
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.leader.old_event_logs import OldEventLogs
from orchestrator.model.errors import SettingsError
from orchestrator.model.spark import Spark
from queues.model.names import LOW_LANE_SUFFIX
from spark_runner.protocol.process import INCARNATION_VARIABLE, RUN_VARIABLE, is_alive, processes_of
from spark_runner.runners.base import RunState, SparkTarget, Submission, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.run_as import RunAsError, Users
from spark_runner.runners.run_directory import RunDirectory, run_directories
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.api import ResourceManager, YarnApplication
from spark_runner.runners.yarn.backend import YarnClientRunner
from spark_runner.runners.yarn.cluster_mode import YarnClusterRunner
from spark_runner.shim import shim
from tests.another_user import STRANGER
from tests.jar_support import spark_jars
from tests.runner_support import DRIVER, wait_for
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

NAME = "nobody"
POOL = "guests"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a worker of another user may not change users")
pytestmark = needs_root

# The attempts of a hostile program; each answer is the error or the result.
TRY = """
import ctypes, json, os, pathlib, signal, subprocess
worker = int(os.environ["LC_WORKER"])
state, secret, other = map(pathlib.Path, os.environ["LC_PATHS"].split(":"))
answers = {}
def tries(name, act):
    try:
        answers[name] = repr(act())
    except OSError as error:
        answers[name] = type(error).__name__
tries("password", secret.read_text)
tries("state", lambda: os.listdir(state))
tries("write", lambda: (state / "mine").touch())
tries("run", lambda: os.listdir(state / "runs"))
tries("own run", lambda: os.listdir(os.environ["LC_RUN"]))
tries("other", lambda: os.listdir(other))
tries("others", lambda: os.listdir(other.parent))
tries("archive", lambda: (other.parents[1] / "class-archives" / "x.jsa").touch())
tries("conf", lambda: (other.parents[1] / "spark-conf" / "spark-env.sh").touch())
tries("environ", pathlib.Path(f"/proc/{worker}/environ").read_bytes)
tries("memory", lambda: open(f"/proc/{worker}/mem", "rb"))
tries("signal", lambda: os.kill(worker, 0))
tries("shim", lambda: os.kill(int(os.environ["LC_SHIM"] or os.getppid()), 0))
tries("root", lambda: os.setresuid(0, 0, 0))
libc = ctypes.CDLL(None, use_errno=True)
answers["ptrace"] = libc.ptrace(16, worker, 0, 0)
answers["who"] = [*os.getresuid(), *os.getresgid()]
answers["groups"] = os.getgroups()
answers["home"] = [os.environ["HOME"], os.environ["USER"], os.environ.get("TMPDIR")]
answers["new privileges"] = "NoNewPrivs:\\t1" in open("/proc/self/status").read()
lines = open("/proc/self/status").read().splitlines()
answers["capabilities"] = [line.split()[1] for line in lines if line.startswith("Cap")][:3]
answers["secrets"] = sorted(name for name in os.environ if "SECRET" in name or name == "KRB5CCNAME")
answers["here"] = os.getcwd() == os.environ["ORCHESTRATOR_RUN_DIR"]
open("outcome.json", "w").write(json.dumps(answers))
"""

SPARK_DRIVER = """
import getpass, json, os, pwd, sys
from pyspark.sql import SparkSession
from spark_runner.protocol.process import keep_streams_apart
keep_streams_apart()
spark = SparkSession.builder.getOrCreate()
found = {
    "user": spark._jvm.java.lang.System.getProperty("user.name"),
    "python": pwd.getpwuid(os.getuid()).pw_name,
    "rows": spark.sparkContext.parallelize(range(3), 1).map(lambda n: n).count(),
}
print("counted")
print("and said so", file=sys.stderr)
with open(os.environ["ORCHESTRATOR_RUN_DIR"] + "/outcome.json", "w") as file:
    json.dump(found, file)
"""

# A spark-submit that reads the files that it would upload.
LAUNCHER = """
import json, os, sys
from urllib.parse import urlsplit
text = open(sys.argv[sys.argv.index("--properties-file") + 1]).read().replace(chr(92), "")
properties = dict(line.split("=", 1) for line in text.splitlines())
names = ("spark.files", "spark.yarn.dist.files", "spark.submit.pyFiles")
answers = {"uid": os.getuid(), "KUBECONFIG": os.environ.get("KUBECONFIG")}
for name in filter(None, ",".join(properties.get(name, "") for name in names).split(",")):
    path = urlsplit(name).path
    try:
        open(path, "rb").read()
        answers[path] = "read"
    except OSError as error:
        answers[path] = type(error).__name__
with open(os.environ["ORCHESTRATOR_RUN_DIR"] + "/outcome.json", "w") as file:
    json.dump(answers, file)
"""


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that each user can pass; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


class Scene:
    """A worker's runner whose pool runs as another user."""

    def __init__(self, base: Path) -> None:
        self.state = base / "state"
        self.users = Users(base / "state-users", {POOL: NAME})
        main = base / "driver.py"
        main.write_text(DRIVER, "utf-8")
        main.chmod(0o644)
        runs_last_two = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[-2:]])"
        python = (readable_python(), "-c", runs_last_two)
        self.submits = SparkSubmits(self.state, spark_submit=python, users=self.users)
        self.runner = LocalRunner(self.submits, driver_main=main)
        self.runs: list[str] = []

    def submit(self, code: str, *, pool: str = POOL, directory: str = "") -> RunDirectory:
        run = f"{uuid.uuid4()}-1"
        self.runs.append(run)
        plan = {"code": code, "job": {"pool": pool}, "directory": directory}
        self.runner.submit(SubmitRequest(run, str(uuid.uuid4()), "a name", plan, SparkTarget("local[1]")))
        return run_directories(self.state, run)[-1]

    def ended(self, directory: RunDirectory) -> Submission:
        found: Submission = wait_for(self.runner, directory.run, RunState.EXITED)
        return found

    def close(self) -> None:
        for run in self.runs:
            self.runner.kill(run, grace_seconds=0)


@pytest.fixture
def scene(base: Path) -> Iterator[Scene]:
    scene = Scene(base)
    yield scene
    scene.close()


def is_reached(path: Path) -> bool:
    """Whether each user of this host can reach the path."""
    found = path.resolve()
    return all(parent.stat().st_mode & 0o001 for parent in (found, *found.parents))


def readable_python() -> str:
    """A Python that each user of this host may start; that of the tests may be in a private folder."""
    found = (sys.executable, *(shutil.which("python3", path=path) for path in ("/usr/local/bin", "/usr/bin")))
    for file in filter(None, found):
        if is_reached(Path(file)):
            return file
    return unavailable("no Python that another user may start")


def test_a_hostile_driver_reaches_nothing_of_the_worker_and_of_other_runs(
    scene: Scene, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = base / "password"
    secret.write_text("s3cret", "utf-8")
    secret.chmod(0o600)
    other = scene.submit("open('outcome.json', 'w').write('{}')", pool="of-the-worker")
    neighbour = scene.users.folder / NAME / "another-run.of-this-user"
    neighbour.mkdir(mode=0o700)
    monkeypatch.setenv("APP_SECRET", "s3cret")
    monkeypatch.setenv("LC_PATHS", f"{scene.state}:{secret}:{neighbour}")
    monkeypatch.setenv("LC_RUN", str(other.path))
    monkeypatch.setenv("LC_SHIM", "")
    monkeypatch.setenv("TMPDIR", str(scene.state))
    monkeypatch.setenv("KRB5CCNAME", str(secret))
    with subprocess.Popen(["/bin/sleep", "600"]) as worker:  # if it were traced, this process would stop
        try:
            monkeypatch.setenv("LC_WORKER", str(worker.pid))
            found = scene.ended(scene.submit(TRY))
        finally:
            worker.kill()
    assert found.exit_code == 0, found
    answers = dict(found.outcome or {})
    account = pwd.getpwnam(NAME)
    assert answers.pop("who") == [account.pw_uid] * 3 + [account.pw_gid] * 3
    assert answers.pop("groups") == sorted(os.getgrouplist(NAME, account.pw_gid))
    assert answers.pop("home") == [account.pw_dir, NAME, None]
    assert answers.pop("new privileges") is True
    assert answers.pop("capabilities") == ["0000000000000000"] * 3
    assert answers.pop("secrets") == []
    assert answers.pop("here") is True
    assert answers.pop("ptrace") == -1
    assert set(answers.values()) == {"PermissionError"}, answers


def test_a_demoted_job_is_the_user_of_its_pool_in_the_low_lane_too(scene: Scene) -> None:
    code = "import json, os; open('outcome.json', 'w').write(json.dumps({'uid': os.getuid()}))"
    found = scene.ended(scene.submit(code, pool=f"{POOL}{LOW_LANE_SUFFIX}"))
    assert found.outcome == {"uid": pwd.getpwnam(NAME).pw_uid}


def test_the_logs_and_the_end_of_a_driver_are_out_of_its_reach(scene: Scene) -> None:
    code = "import os, sys; print('said'); print('cried', file=sys.stderr); os.write(3, b'{}'); sys.exit(3)"
    directory = scene.submit(code)
    assert scene.ended(directory).exit_code == 3
    logs = {log.stream: log.path.read_text("utf-8") for log in scene.runner.logs(directory.run)}
    assert logs == {"stdout": "said\n", "stderr": "cried\n", "spark": "{}"}
    assert {path.stat().st_uid for path in directory.path.glob("*.json")} == {0}
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert directory.work.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "trick",
    [
        "os.symlink('/etc/passwd', name)",
        "os.mkfifo(name)",
        "os.link(os.environ['LC_TARGET'], name)",
        "open(name, 'w').truncate(1 << 40)",
        "open(name, 'w').write('[' * 200_000)",
        "os.mkdir(name)",
        "open(name, 'w').write('[1]')",
    ],
)
def test_what_a_hostile_driver_leaves_is_not_followed_waited_for_or_believed(
    scene: Scene, base: Path, monkeypatch: pytest.MonkeyPatch, trick: str
) -> None:
    target = base / "open"
    target.write_text('{"application_id": "stolen"}', "utf-8")
    target.chmod(0o666)
    monkeypatch.setenv("LC_TARGET", str(target))
    directory = scene.submit(f"import os\nfor name in ('outcome.json', 'application.json'): {trick}")
    found = scene.ended(directory)
    assert (found.exit_code, found.outcome) == (0, None), found
    assert read_application(directory.path) == ""


def test_all_that_a_driver_leaves_is_removed_and_nothing_else(scene: Scene, base: Path) -> None:
    kept = base / "kept"
    kept.mkdir()
    (kept / "file").touch()
    code = (
        f"import os\nos.symlink({str(kept)!r}, 'link')\nos.rename('scratch', 'moved')\n"
        f"os.symlink({str(kept)!r}, 'scratch')\n"
        "for _ in range(3000): os.mkdir('d', 0o700); os.chdir('d')\n"
    )
    directory = scene.submit(code)
    scene.ended(directory)
    work = directory.work
    scene.runner.kill(directory.run, grace_seconds=0)
    scene.runner.cleanup(directory.run)
    assert not work.exists()
    assert not directory.path.parent.exists()
    assert (kept / "file").exists()


def test_a_driver_of_another_user_is_killed_with_all_that_it_has_started(scene: Scene) -> None:
    code = (
        "import os, signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True); print('up', flush=True); time.sleep(600)"
    )
    directory = scene.submit(code)
    log = directory.path / "stdout.log"
    wait_until(lambda: log.exists() and log.read_bytes(), 20, "the driver is up")
    scene.runner.kill(directory.run, grace_seconds=0.2)
    assert not processes_of(directory.run)
    assert scene.ended(directory).exit_code == 128 + 9


def test_a_driver_of_another_user_ends_with_its_shim(scene: Scene) -> None:
    directory = scene.submit("import time; time.sleep(600)")
    wait_until(directory.shim, 20, "the shim has noted its driver")
    record = directory.shim()
    assert record is not None
    driver = record.driver
    wait_until(lambda: user_of(driver.pid) == pwd.getpwnam(NAME).pw_uid, 20, "it is the user's")
    os.kill(record.shim.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(driver), 20, "the kernel has ended the driver")


def user_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def test_a_process_of_a_stranger_that_calls_itself_that_of_a_run_is_none_of_it(scene: Scene) -> None:
    directory = scene.submit("pass", pool="of-the-worker")
    scene.ended(directory)
    (directory.path / "exit.json").unlink()  # now only its processes show its state
    names = {RUN_VARIABLE: directory.run, INCARNATION_VARIABLE: directory.incarnation}
    account = pwd.getpwnam(NAME)
    with subprocess.Popen(
        ["/bin/sleep", "600"], env=names, user=account.pw_uid, group=account.pw_gid, extra_groups=[]
    ) as stranger:
        try:
            wait_until(lambda: stranger.pid in processes_of(directory.run), 20, "it has the names")
            assert scene.runner.find(directory.run)[0].state is RunState.GONE
            scene.runner.kill(directory.run, grace_seconds=0)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_driver_works_in_its_own_directory_where_it_may_not_go_to_that_of_the_definition(
    scene: Scene, base: Path
) -> None:
    hidden = base / "hidden"
    hidden.mkdir(mode=0o700)
    code = "import os, json; open('outcome.json', 'w').write(json.dumps({'at': os.getcwd()}))"
    directory = scene.submit(code, directory=str(hidden))
    assert scene.ended(directory).outcome == {"at": str(directory.work)}


def test_a_pool_without_a_user_runs_as_the_worker(scene: Scene) -> None:
    code = "import os; open('outcome.json', 'w').write('{\"uid\": %d}' % os.getuid())"
    directory = scene.submit(code, pool="of-the-worker")
    assert scene.ended(directory).outcome == {"uid": 0}
    assert directory.work == directory.path


class IdleManager(ResourceManager):
    """A ResourceManager without applications."""

    def applications(self, tags: Sequence[str]) -> list[YarnApplication]:
        assert tags
        return []


@pytest.mark.parametrize("kind", [YarnClusterRunner, YarnClientRunner])
def test_what_hands_a_driver_over_to_yarn_is_the_user_of_the_pool(
    scene: Scene,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[YarnClusterRunner | YarnClientRunner],
) -> None:
    """The jars of a job are on its class path, and it uploads each file that a definition names."""
    secret = base / "password"
    secret.write_text("s3cret", "utf-8")
    secret.chmod(0o600)
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", "/of/the/worker")
    submits = SparkSubmits(scene.state, spark_submit=(readable_python(), "-c", LAUNCHER), users=scene.users)
    mode = "cluster" if kind is YarnClusterRunner else "client"
    run = f"{uuid.uuid4()}-1"
    conf = {"spark.files": secret.as_uri()}
    plan = {"job": {"pool": POOL}}
    manager = IdleManager(["http://127.0.0.1:1"], user="worker")
    runner = kind(submits, manager, driver_main=base / "driver.py")
    before = os.umask(0o077)
    try:
        runner.submit(SubmitRequest(run, str(uuid.uuid4()), "a name", plan, SparkTarget("yarn", mode), conf))
    finally:
        os.umask(before)
    wait_until(lambda: not submits.find(run)[0].may_run, 20, "it has ended")
    (found,) = submits.find(run)
    said = run_directories(scene.state, run)[-1].path / "stderr.log"
    assert found.exit_code == 0, said.read_text("utf-8")
    outcome = dict(found.outcome or {})
    assert outcome.pop(str(secret)) == "PermissionError"
    assert outcome.pop("uid") == pwd.getpwnam(NAME).pw_uid
    assert outcome.pop("KUBECONFIG") is None
    assert len(outcome) == 2 + (kind is YarnClusterRunner), (
        "zip and layout, and the plan of a driver elsewhere"
    )
    assert set(outcome.values()) == {"read"}


@pytest.mark.spark
def test_spark_itself_runs_as_another_user_and_logs_as_ever(base: Path) -> None:
    checkout, packages = Path(__file__).parents[2], spark_jars().parents[1]
    if not all(
        parent.stat().st_mode & 0o001 for path in (checkout, packages) for parent in (path, *path.parents)
    ):
        unavailable("another user cannot read Spark here")
    main = base / "driver.py"
    main.write_text(SPARK_DRIVER, "utf-8")
    main.chmod(0o644)
    users = Users(base / "state-users", {"*": NAME})
    runner = LocalRunner(SparkSubmits(base / "state", users=users), driver_main=main)
    run = f"{uuid.uuid4()}-1"
    python = readable_python()
    environment = {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": f"{checkout}:{packages}",
    }
    events = EventLogs({"*": EventLogSettings(url=f"file://{base}/events")}, {"*": NAME})
    request = SubmitRequest(
        *(run, str(uuid.uuid4()), "a name", {}, SparkTarget("local[1]")),
        conf=events.prepared("guests", Spark()),
        environment=environment,
        is_short=True,
    )
    runner.submit(request)
    wait_until(lambda: not runner.find(run)[0].may_run, 120, "the driver has ended")
    logs = {log.stream: log.path.read_text("utf-8") for log in runner.logs(run)}
    found = runner.find(run)[0]
    assert (found.exit_code, found.outcome) == (0, {"user": NAME, "python": NAME, "rows": 3}), logs
    assert logs["stdout"].splitlines()[-1] == "counted"
    assert logs["stderr"].splitlines()[-1] == "and said so"
    assert "Running Spark version" in logs["spark"]
    (log,) = (base / "events").iterdir()
    assert (log.owner(), (base / "events").owner()) == (NAME, pwd.getpwuid(os.geteuid()).pw_name)
    OldEventLogs(events.tables.values(), lambda: 2**53).step()
    assert list((base / "events").iterdir()) == []
    assert users.conf_dir.stat().st_mode & 0o777 == 0o755
    work = run_directories(base / "state", run)[-1].work
    runner.cleanup(run)
    assert not work.exists()


@pytest.mark.parametrize(
    ("name", "words"), [("no-such-user", "has no user"), ("root", "is root"), ("daemon", "")]
)
def test_a_worker_refuses_users_that_it_cannot_start_drivers_as(base: Path, name: str, words: str) -> None:
    settings = Settings.model_validate({"state_dir": base / "state", "drivers": {"run_as": {"*": name}}})
    with contextlib.nullcontext() if not words else pytest.raises(SettingsError, match=words):
        assert users_of_drivers(settings) is not None


def test_a_worker_without_the_right_to_change_users_says_so(base: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from spark_runner.runners.run_as import *\n"
        "os.setresuid(65534, 65534, 65534)\n"
        "try: Users(Path(sys.argv[1]), {'*': 'daemon'})\nexcept RunAsError as error: print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", program, str(base / "users")], text=True)
    assert "may not start processes of other users" in said


def test_a_worker_that_is_not_root_hands_none_of_its_capabilities_on(base: Path) -> None:
    setpriv = shutil.which("setpriv") or unavailable("no setpriv, with which root gives capabilities away")
    package, run = base / "lib" / "spark_runner", base / "run"
    for copied in (package, base / "lib" / "orchestrator"):
        installed = Path(shim.__file__).parents[1].with_name(copied.name)
        shutil.copytree(installed, copied, ignore=shutil.ignore_patterns("*.pyc"))
    subprocess.run(["chmod", "-R", "a+rX", str(package.parent)], check=True)
    run.mkdir(mode=0o700)
    os.chown(run, STRANGER, STRANGER)
    rights = "+chown,+kill,+setgid,+setuid"
    worker = (setpriv, f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
    account = pwd.getpwnam(NAME)
    user = f"{account.pw_uid}:{account.pw_gid}:{account.pw_gid}"
    command = (readable_python(), "-I", "-S", str(package / "shim" / "shim.py"), str(run), "--user", user)
    subprocess.run(
        [
            *worker,
            f"--inh-caps={rights}",
            f"--ambient-caps={rights}",
            *command,
            "--",
            "cat",
            "/proc/self/status",
        ],
        check=True,
    )
    said = dict(line.split(":\t", 1) for line in (run / "stdout.log").read_text("utf-8").splitlines())
    assert said["Uid"].split() == [str(account.pw_uid)] * 4
    assert {said[name] for name in ("CapPrm", "CapEff", "CapAmb")} == {"0" * 16}


def test_a_folder_of_another_user_is_refused(base: Path) -> None:
    folder = base / "users"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(RunAsError, match="other users can write to it"):
        Users(folder, {"*": NAME})
    folder.rmdir()
    folder.symlink_to(base)
    with pytest.raises(RunAsError, match="it is a symbolic link"):
        Users(folder, {"*": NAME})
    folder.unlink()
    hidden = base / "hidden"
    hidden.mkdir(mode=0o700)
    with pytest.raises(RunAsError, match="cannot reach"):
        Users(hidden / "users", {"*": NAME})
