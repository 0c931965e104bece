"""The driver of jars in pods without Python keeps the rules of its attempt in ZooKeeper."""

import base64
import json
import os
import shlex
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.zookeeper import DriverAccess
from queues.embedded.config import ServerConfig
from queues.embedded.server import EmbeddedZooKeeper
from queues.model.codec import encode, timestamp
from queues.model.operations import Create, Set
from queues.session import Acl, Login, Session, SessionSettings
from queues.store.commit import commit
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path, intent
from spark_runner.protocol.process import TERMINATION_LOG_VARIABLE
from spark_runner.runners.base import SparkTarget, SubmitRequest
from spark_runner.runners.kubernetes.program import CODE, PLAN, program_of
from tests.class_archive import SUBMIT_OPTIONS, session_environment
from tests.jar_support import make_jar, spark_jars
from tests.queues_support import open_session
from tests.servers.secured import ADA, SECRET, Secured
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]  # a JVM with all of Spark's classes each

END_S = 60
LEASE_S = 60.0
HEAP = "java.lang.OutOfMemoryError: Java heap space"
HOUR_S = 3600.0


@dataclass
class Site:
    """Attempts in ZooKeeper, and JVMs as the image of Spark would start them, but without Spark itself."""

    session: Session
    root: str
    folder: Path
    jar: Path
    stack: ExitStack
    run_key: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def path(self) -> str:
        return attempt_path(f"{self.root}/jobs/{self.run_key}", self.run_key, 1)

    @property
    def stop_path(self) -> str:
        return f"{self.root}/stops/{self.run_key}"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    def announce(self, login: str = "") -> None:
        self.session.ensure_path(self.path.rpartition("/")[0])
        self.session.ensure_path(f"{self.root}/stops")
        place = {"backend": "any"}
        made = intent(self.path, run_key=self.run_key, number=1, place=place, at=timestamp(), login=login)
        commit(self.session, [made])

    def attempt(self) -> Attempt:
        attempt = Attempt.read(self.session, self.path)
        assert attempt is not None
        return attempt

    def starts(self) -> int:
        return len(self.ledger.read_text("utf-8").splitlines()) if self.ledger.exists() else 0

    def start(
        self,
        *steps: str,
        lease: float = LEASE_S,
        main: str = "Steps",
        directory: str = "",
        within: tuple[str, ...] = (),
        zookeeper: SessionSettings | None = None,
        **settings: float,
    ) -> "Driver":
        """A driver, its command after that of `within`; `settings` change those of its session."""
        zookeeper = zookeeper or self.session.settings
        incarnation = uuid.uuid4().hex
        plan = {
            "run": f"{self.run_key}-1",
            "run_key": self.run_key,
            "attempt_path": self.path,
            "stop_path": self.stop_path,
            "incarnation": incarnation,
            "lease_seconds": lease,
            "zookeeper": {**zookeeper.for_plan(), **settings},
            "jar": {"class": main, "arguments": [str(self.ledger), *steps]},
            "directory": directory,
        }
        request = SubmitRequest(
            f"{self.run_key}-1", incarnation, "name", plan, target=SparkTarget("k8s://any")
        )
        return Driver.of(self, request, within)


@dataclass
class Driver:
    """One JVM, started as in a pod of the Kubernetes runner."""

    incarnation: str
    folder: Path
    process: "subprocess.Popen[bytes]"

    @classmethod
    def of(cls, site: Site, request: SubmitRequest, within: tuple[str, ...]) -> "Driver":
        program = program_of(request, folder=site.folder, driver_main=Path("none"))
        folder = site.folder / request.incarnation
        folder.mkdir()
        for name, data in {**program.plan["data"], **program.code[CODE]["data"]}.items():
            (folder / name).write_bytes(base64.b64decode(data))
        arguments = [each.replace(PLAN, str(folder)).replace(CODE, str(folder)) for each in program.arguments]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*within, "java", *java_options(site.jar), program.main_class, *arguments],
                env=os.environ | {TERMINATION_LOG_VARIABLE: str(folder / "kept.json")},
                stdout=log,
                stderr=log,
            )
        site.stack.callback(process.wait)
        site.stack.callback(process.kill)
        return cls(request.incarnation, folder, process)

    def ended(self) -> int:
        return self.process.wait(END_S)

    def words(self) -> str:
        return (self.folder / "log").read_text("utf-8")

    def kept(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads((self.folder / "kept.json").read_bytes())
        return kept


@cache
def java_options(jar: Path) -> tuple[str, ...]:
    """The options of the image for a short job, with the archive of all tests if it exists."""
    found = session_environment()
    options = shlex.split(found.get("SPARK_SUBMIT_OPTS", SUBMIT_OPTIONS))
    api = next(spark_jars().glob("slf4j-api-*.jar"))  # as the launcher of Spark orders them
    paths = [f"{found['SPARK_CONF_DIR']}/", str(api)] if found else []
    return (*options, "-cp", ":".join([*paths, f"{spark_jars()}/*", str(jar)]))


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_jar("Steps", tmp_path_factory.mktemp("jar"))


@pytest.fixture
def site(zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, jar: Path) -> Iterator[Site]:
    with ExitStack() as stack, open_session(zookeeper_hosts) as session:
        made = Site(session, zookeeper_root, tmp_path, jar, stack)
        made.announce()
        yield made
        stack.close()  # before the session


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A server that each test may stop and restart."""
    with EmbeddedZooKeeper(ServerConfig(tmp_path_factory.mktemp("zookeeper"), tick_ms=500)) as server:
        yield server


@pytest.fixture
def own_site(server: EmbeddedZooKeeper, tmp_path: Path, jar: Path) -> Iterator[Site]:
    """As `site`, on a ZooKeeper that a test may stop."""
    server.start()  # if a failed test has not
    with ExitStack() as stack, open_session(server.hosts) as session:
        made = Site(session, f"/{tmp_path.name}", tmp_path, jar, stack)
        made.announce()
        yield made
        stack.close()


def test_a_main_that_returns_has_succeeded(site: Site) -> None:
    driver = site.start("return")
    assert driver.ended() == 0, driver.words()
    attempt = site.attempt()
    assert (attempt.state, attempt.version, attempt.incarnation) == (
        AttemptState.SUCCEEDED,
        2,
        driver.incarnation,
    )
    assert attempt.document["run_key"] == site.run_key
    assert attempt.document["started"] <= attempt.document["ended"]
    assert site.session.exists(attempt.alive) is None
    assert site.starts() == 1
    assert driver.kept() == {"state": "succeeded", "exit_code": 0}


@pytest.mark.parametrize(
    ("message", "error_class", "short_of"),
    [
        ("no rows today", "user", None),
        ("Job aborted: ExecutorLostFailure (executor 1 exited)", "infrastructure", None),
        ("task failed: JAVA.LANG.OUTOFMEMORYERROR: heap", "memory", None),
        ("most recent failure: Lost task 0.3 in stage 0.0: " + HEAP, "memory", "executor.heap"),
        ("Task serialization failed: " + HEAP, "memory", "driver.heap"),
    ],
)
def test_an_exception_of_main_is_the_error_with_its_class_and_stack(
    site: Site, message: str, error_class: str, short_of: str | None
) -> None:
    driver = site.start("throw", message)
    assert driver.ended() == 1
    attempt = site.attempt()
    error = attempt.document["error"]
    assert attempt.state is AttemptState.FAILED
    assert (error["class"], error["type"], error["message"]) == (
        error_class,
        "java.lang.IllegalStateException",
        message,
    )
    assert "at Steps.main(Steps.java:" in error["traceback"]
    assert "at Steps.main(Steps.java:" in driver.words()
    assert error.get("short_of") == short_of
    assert driver.kept()["error"] == {name: error[name] for name in error if name != "traceback"}


def test_relative_paths_of_spark_are_errors_that_say_why(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "JAVA_TOOL_OPTIONS", "-Dspark.hadoop.fs.defaultFS=hdfs://localhost:9"
    )  # no server is asked
    assert site.start("relative", "orders.csv").ended() == 1
    local, _, default = site.attempt().document["error"]["message"].partition(" and ")
    assert "relative paths mean the folder of the definition, which is not in this pod/orders.csv" in local
    assert "the default file system is hdfs/orders.csv" in default
    for path in (local, default):
        directory = Path(path.removeprefix("file:")).parent
        assert not directory.is_dir(), "nothing can be made below it"


def test_relative_paths_of_spark_mean_the_folder_of_the_definition(site: Site, tmp_path: Path) -> None:
    assert site.start("relative", "orders.csv", directory=str(tmp_path)).ended() == 1
    message = site.attempt().document["error"]["message"]
    assert message == f"file:{tmp_path}/orders.csv and file:{tmp_path}/orders.csv"


@pytest.mark.parametrize(
    ("name", "words"),
    [("Missing", "there is no class Missing in the jars"), ("java.lang.Object", "has no public static main")],
)
def test_a_class_that_cannot_be_run_is_named(site: Site, name: str, words: str) -> None:
    assert site.start("return", main=name).ended() == 1
    error = site.attempt().document["error"]
    assert words in error["message"]
    assert error["class"] == "definition"  # so it is not tried again
    assert site.starts() == 0


def test_the_exit_code_of_main_is_that_of_the_driver_and_the_worker_explains_it(site: Site) -> None:
    driver = site.start("exit", "3")
    assert driver.ended() == 3
    assert site.attempt().state is AttemptState.STARTED
    assert site.attempt().incarnation == driver.incarnation


def test_a_main_that_fails_because_its_jvm_is_being_ended_leaves_no_outcome(site: Site) -> None:
    driver = site.start("fail while it ends", "143")
    assert driver.ended() == 143
    assert "this driver ends without an outcome" in driver.words()
    assert site.attempt().state is AttemptState.STARTED


def test_of_many_drivers_at_once_one_runs_and_the_others_say_why_they_do_not(site: Site) -> None:
    go = site.folder / "go"
    drivers = [site.start("wait", str(go)) for _ in range(4)]
    wait_until(
        lambda: [each.process.poll() for each in drivers].count(exit_codes.SUPERSEDED) == 3,
        END_S,
        "three of them have ended",
    )
    go.touch()
    winner = next(each for each in drivers if each.incarnation == site.attempt().incarnation)
    assert winner.ended() == 0
    assert site.starts() == 1
    for each in drivers:
        if each is not winner:
            assert f"by another driver, of submission {winner.incarnation}" in each.words()


@pytest.mark.parametrize("state", [AttemptState.CLOSED, AttemptState.KILLED])
def test_a_driver_that_comes_after_its_attempt_was_given_up_runs_nothing(
    site: Site, state: AttemptState
) -> None:
    commit(site.session, [site.attempt().advance(state)])
    driver = site.start("return")
    assert driver.ended() == exit_codes.SUPERSEDED
    assert f"ends without running anything: the attempt {site.run_key}-1 is {state}" in driver.words()
    assert site.starts() == 0
    assert site.attempt().state is state


def test_a_driver_shows_life_and_obeys_a_request_to_stop(site: Site) -> None:
    driver = site.start("wait", str(site.folder / "never"))

    def phase() -> str:
        found = site.session.get(site.attempt().alive)
        return json.loads(found[0])["phase"] if found and found[0] else ""

    wait_until(lambda: phase() == "running Steps", END_S, "it shows what it does")
    commit(site.session, [Create(site.stop_path, encode({"run_key": "another job of this id"}))])
    with pytest.raises(subprocess.TimeoutExpired):
        driver.process.wait(3)
    commit(site.session, [Set(site.stop_path, encode({"run_key": site.run_key}), 0)])
    assert driver.ended() == exit_codes.KILLED
    attempt = site.attempt()
    assert attempt.state is AttemptState.KILLED
    assert site.session.exists(attempt.alive) is None


def test_a_driver_whose_attempt_was_given_up_meanwhile_ends(site: Site) -> None:
    driver = site.start("wait", str(site.folder / "never"))
    wait_until(site.starts, END_S, "it runs")
    commit(site.session, [site.attempt().advance(AttemptState.LOST)])
    assert driver.ended() == exit_codes.SUPERSEDED
    assert site.attempt().state is AttemptState.LOST


def test_a_driver_that_has_lost_its_session_opens_another_and_continues(site: Site) -> None:
    go = site.folder / "go"
    driver = site.start("wait", str(go), session_timeout=3.0)
    wait_until(site.starts, END_S, "it runs")
    alive = site.attempt().alive
    first = site.session.exists(alive)
    assert first is not None
    os.kill(driver.process.pid, signal.SIGSTOP)
    wait_until(lambda: site.session.exists(alive) is None, END_S, "its session has expired")
    os.kill(driver.process.pid, signal.SIGCONT)
    wait_until(lambda: site.session.exists(alive), END_S, "it shows life again")
    second = site.session.exists(alive)
    assert second is not None
    assert second.owner != first.owner
    go.touch()
    assert driver.ended() == 0
    assert site.attempt().state is AttemptState.SUCCEEDED
    assert site.starts() == 1


def test_without_contact_for_its_lease_a_driver_ends_itself(
    own_site: Site, server: EmbeddedZooKeeper
) -> None:
    driver = own_site.start("wait", str(own_site.folder / "never"), lease=4)
    wait_until(own_site.starts, END_S, "it runs")
    server.stop()
    assert driver.ended() == exit_codes.NO_CONTACT
    assert "no contact with ZooKeeper for longer than the lease" in driver.words()
    server.start()


@pytest.mark.usefixtures("pid_namespaces")
def test_a_driver_counts_the_time_in_which_its_machine_was_suspended(
    own_site: Site, server: EmbeddedZooKeeper
) -> None:
    uptime = own_site.folder / "uptime"
    uptime.write_text("1000.00 0.00\n", "ascii")
    mounted = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/uptime && exec "$@"', str(uptime))
    driver = own_site.start("wait", str(own_site.folder / "never"), lease=HOUR_S, within=mounted)
    wait_until(own_site.starts, END_S, "it runs")
    server.stop()
    with uptime.open("r+b") as file:  # in place: it is mounted
        file.write(b"9000.00")
    assert driver.ended() == exit_codes.NO_CONTACT
    assert "no contact with ZooKeeper for longer than the lease" in driver.words()
    server.start()


def test_an_end_while_zookeeper_is_away_is_recorded_when_it_is_back(
    own_site: Site, server: EmbeddedZooKeeper
) -> None:
    go = own_site.folder / "go"
    driver = own_site.start("wait", str(go))
    wait_until(own_site.starts, END_S, "it runs")
    server.stop()
    go.touch()
    wait_until((driver.folder / "kept.json").exists, END_S, "its own end is stored")
    assert driver.process.poll() is None
    server.start()
    assert driver.ended() == 0
    own_site.session.wait_connected(END_S)
    assert own_site.attempt().state is AttemptState.SUCCEEDED


def test_without_zookeeper_a_driver_runs_nothing(own_site: Site, server: EmbeddedZooKeeper) -> None:
    server.stop()
    driver = own_site.start("return", call_timeout=1.5)
    assert driver.process.wait(END_S) == exit_codes.NO_CONTACT
    assert "nothing was run" in driver.words()
    assert own_site.starts() == 0
    server.start()


def test_a_zookeeper_that_asks_for_certificates_and_rights_lets_it_in_with_its_own_login_alone(
    secured: Secured, tmp_path: Path, jar: Path
) -> None:
    password = tmp_path / "password"
    password.write_text(f"{SECRET}\n", "utf-8")
    settings = SessionSettings(
        f"{secured.hosts()}/{tmp_path.name}",
        tls=secured.certificates.tls,
        sasl=Login(ADA.user, password_file=str(password)),
        acl=Acl.CREATOR,
    )
    own = secured.certificates.driver_tls
    access = DriverAccess(certificate_file=Path(own.certificate_file), key_file=Path(own.key_file))
    login, another = Login.random("run-1"), Login.random("run-2")
    with ExitStack() as stack, Session(settings) as session:
        site = Site(session, "", tmp_path, jar, stack)
        site.announce(login.digest_id)
        owners = session.owners(site.path)
        late = site.start("return", zookeeper=access.settings(settings, another, owners))
        assert late.ended() == exit_codes.SUPERSEDED, late.words()
        assert "is for the driver of another submission" in late.words()
        go = tmp_path / "go"
        driver = site.start("wait", str(go), zookeeper=access.settings(settings, login, owners))
        wait_until(lambda: session.exists(site.attempt().alive), END_S, "it shows life to its worker")
        commit(session, [Create(site.stop_path, b"for another job")])  # which it cannot read
        wait_until(lambda: session.get(site.attempt().alive), END_S, "its worker can read it")
        go.touch()
        assert driver.ended() == 0, driver.words()
        assert site.attempt().state is AttemptState.SUCCEEDED
        assert SECRET not in driver.words()
