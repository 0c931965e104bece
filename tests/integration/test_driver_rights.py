"""With rights for the creator alone, a driver may access its own attempt in ZooKeeper and nothing else."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from kazoo.client import KazooClient

from orchestrator.compose import DRIVER_MAIN
from orchestrator.config.settings import Settings
from orchestrator.config.zookeeper import DriverAccess, LoginFile, TlsFiles
from orchestrator.doctor.doctor import Doctor
from orchestrator.doctor.findings import FindingKind
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.errors import StateConflict
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues.model.codec import encode, timestamp
from queues.model.operations import Create, Delete
from queues.session import Acl, Login, Session
from queues.store.commit import commit
from spark_runner.driver.attempt_holder import AttemptHolder, Superseded
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path, intent
from spark_runner.runners.base import RunState, Submission
from spark_runner.runners.local import LocalRunner
from tests.claims_support import lose_reply
from tests.hostile.powers import powers
from tests.jobs_support import Deployment, python_job, stand_ins, waits_for
from tests.run_plans import run_plan
from tests.servers.secured import ADA, SECRET, Secured
from tests.streams_support import Streams
from tests.waiting import wait_until

SHOW_PLAN = "import os, shutil; shutil.copy(os.environ['ORCHESTRATOR_RUN_DIR'] + '/plan.json', {!r})\n"
SHOW_ENVIRONMENT = "import json, os; json.dump(dict(os.environ), open({!r}, 'w'))\n"
WAIT_S = 60
STRONG = "with digest any password is believed"


def closed_settings(secured: Secured, folder: Path, creator: str) -> Settings:
    """Settings of a worker with rights for itself alone; `creator`: the scheme of its identity."""
    password = folder / "worker-password"
    password.write_text(f"{STRONG if creator == 'digest' else SECRET}\n", "utf-8")
    given: dict[str, Any] = {"zookeeper_hosts": f"{secured.plain}/{folder.name}"}
    if creator == "x509":
        tls, own = secured.certificates.tls, secured.certificates.driver_tls
        given["zookeeper_hosts"] = f"{secured.hosts()}/{folder.name}"
        given["zookeeper_tls"] = TlsFiles(
            ca_file=Path(tls.ca_file),
            certificate_file=Path(tls.certificate_file),
            key_file=Path(tls.key_file),
        )
        given["zookeeper_drivers"] = DriverAccess(
            certificate_file=Path(own.certificate_file), key_file=Path(own.key_file)
        )
    else:
        given["zookeeper_login"] = LoginFile.model_validate(
            {"scheme": creator.removeprefix("short "), "user": ADA.user, "password_file": password}
        )
    return Settings(
        zookeeper_acl=Acl.CREATOR, state_dir=folder / "state", session_timeout=4.0, kill_grace=2.0, **given
    )


def deployments(secured: Secured, folder: Path, mark: str, creator: str) -> Iterator[Deployment]:
    assert mark
    made = Deployment(closed_settings(secured, folder, creator))
    yield made
    made.close()


@pytest.fixture
def deployment(secured: Secured, tmp_path: Path, process_mark: str) -> Iterator[Deployment]:
    """A deployment whose worker has a login of the scheme digest, with a password that cannot be guessed."""
    yield from deployments(secured, tmp_path, process_mark, "digest")


@pytest.fixture(params=["sasl", "x509", "short digest"])
def other_deployment(
    secured: Secured, tmp_path: Path, process_mark: str, request: pytest.FixtureRequest
) -> Iterator[Deployment]:
    """A deployment whose worker has a login of another scheme."""
    yield from deployments(secured, tmp_path, process_mark, request.param)


def plan_in(file: Path) -> dict[str, Any]:
    def whole() -> Any:
        try:
            return json.loads(file.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    return dict(wait_until(whole, WAIT_S, "the job has shown its plan"))


def tree(session: Session, path: str) -> Iterator[str]:
    yield path
    for name in session.children(path) or ():
        yield from tree(session, f"{path}/{name}")


def attempt_of(deployment: Deployment, job_id: str, number: int = 1) -> Attempt:
    record = deployment.queues.get(job_id)
    path = attempt_path(deployment.queues.layout.record(job_id), record.run_key, number)
    attempt = Attempt.read(deployment.queues.session, path)
    assert attempt is not None
    return attempt


def is_started(deployment: Deployment, job_id: str) -> bool:
    return (
        deployment.state(job_id).attempt > 0 and attempt_of(deployment, job_id).state is AttemptState.STARTED
    )


# ---------------------------------------------------------------------- a hostile driver
@contextmanager
def intruder(zookeeper: dict[str, Any]) -> Iterator[Any]:
    """A plain client with the ZooKeeper settings in the plan of a driver."""
    login, (hosts, _, _) = zookeeper["digest"], zookeeper["hosts"].partition("/")
    client = KazooClient(hosts, auth_data={("digest", f"{login['user']}:{login['password']}")})
    client.start(timeout=10)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def populate(deployment: Deployment, folder: Path) -> list[str]:
    """A root with a node of each kind; return the ids of jobs that run until `folder/go` exists."""
    client = deployment.client
    client.schedules.put(python_job("pass", name="nightly", schedule={"every": "1h"}))
    client.config.change(warn_after=7)
    ended = deployment.submit("pass", name="ended")
    client.change_pool("default", cap=5)
    client.change_pool("default", cap=6)
    running = [deployment.submit(waits_for(folder / "go"), name="limited", concurrency=2)]
    client.submit(python_job("pass"), delay=3600)
    deployment.wait(ended)
    wait_until(lambda: is_started(deployment, running[0]), WAIT_S, "the other job runs")
    return running


def test_a_hostile_driver_can_touch_its_own_attempt_alone(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker(slots=3)
    session, root = deployment.queues.session, deployment.settings.root
    (victim,) = populate(deployment, tmp_path)
    plan_file = tmp_path / "plan.json"
    hostile = deployment.submit(SHOW_PLAN.format(str(plan_file)) + waits_for(tmp_path / "go"))
    plan = plan_in(plan_file)
    own = attempt_of(deployment, hostile)
    wait_until(lambda: session.exists(own.alive), WAIT_S, "it shows life")
    stop = deployment.queues.layout.stop("default", victim)
    commit(session, [Create(stop, encode({"run_key": "an earlier job's"}))])
    paths = list(tree(session, root))
    kinds = (
        "jobs",
        "queues",
        "locks",
        "slots",
        "named",
        "workers",
        "config",
        "history",
        "schedules",
        "stops",
    )
    assert [kind for kind in kinds if not any(f"/{kind}/" in path for path in paths)] == []
    with intruder(plan["zookeeper"]) as client:
        found = {path: powers(client, session.folder + path) for path in paths}
        assert {path for path, can in found.items() if can} == {own.path, own.alive}
        assert found[own.path] == {"see", "read", "list", "see rights", "write", "create"}
        shown = {entry.id.id for entry in client.get_acls(session.folder + own.path)[0]}
        assert FindingKind.FOREIGN_RIGHTS not in {
            finding.kind for finding in deployment.client.doctor.check()
        }
        assert f"{ADA.user}:x" in shown, "the hash of the worker's password is not shown"
    (tmp_path / "go").touch()
    assert deployment.wait(hostile).job.status is Status.SUCCESS
    assert deployment.wait(victim).job.status is Status.SUCCESS


def test_a_driver_that_closes_what_it_shows_to_its_worker_is_ended_at_its_limit_all_the_same(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    plan_file = tmp_path / "plan.json"
    program = SHOW_PLAN.format(str(plan_file)) + "import time; time.sleep(600)"
    job_id = deployment.submit(program, timeout={"run": "6s"})
    plan = plan_in(plan_file)
    with intruder(plan["zookeeper"]) as client:
        alive = attempt_of(deployment, job_id).alive
        wait_until(lambda: client.exists(deployment.queues.session.folder + alive), WAIT_S, "it shows life")
        acls = client.get_acls(deployment.queues.session.folder + alive)[0]
        own = [entry for entry in acls if entry.id.id.startswith("run-")]
        client.set_acls(deployment.queues.session.folder + alive, own)
    assert deployment.client.detail(job_id).progress is None
    assert [finding for finding in deployment.client.doctor.check() if alive in str(finding)] == []
    error = deployment.wait(job_id).job.error
    assert error is not None
    assert error.type == "RunTimeout", error


LITTERS = """
import json, os
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl
plan = json.load(open(os.environ["ORCHESTRATOR_RUN_DIR"] + "/plan.json"))
login, (hosts, _, folder) = plan["zookeeper"]["digest"], plan["zookeeper"]["hosts"].partition("/")
client = KazooClient(hosts, auth_data={("digest", login["user"] + ":" + login["password"])})
client.start(timeout=30)
own = [make_digest_acl(login["user"], login["password"], all=True)]
path = f"/{folder}{plan['attempt_path']}"
"""
LITTER = {
    "a node": "client.create(path + '/a')",
    "a tree": "[client.create(path + below) for below in ('/a', '/a/b', '/a/b/c')]",
    "a node for the driver alone": "client.create(path + '/a', acl=own)",
    "positions of its own": "client.create(path + '/positions', b'[' * 100_000)",
    "positions for itself alone": "client.create(path + '/positions', b'{}', acl=own)",
    "positions that nobody may change": (
        "from kazoo.security import make_acl\n"
        "shown = [make_acl('world', 'anyone', read=True)]\n"
        """client.create(path + '/positions', b'{"name": {"a": {"acknowledged": 1}}}', acl=shown)"""
    ),
    "positions with nodes below": "client.create(path + '/positions/a', makepath=True)",
    "thousands": "[r.get() for r in [client.create_async(f'{path}/{n:0500}') for n in range(3000)]]",
}


@pytest.mark.parametrize("litter", LITTER.values(), ids=[*LITTER])
@pytest.mark.parametrize("way", ["by an operator", "at the end of its retention"])
def test_a_job_is_run_again_and_removed_whatever_its_program_leaves_below_its_attempt(
    deployment: Deployment, litter: str, way: str
) -> None:
    worker = deployment.worker(slots=1)
    job_id = deployment.submit(f"{LITTERS}{litter}\n")
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS, detail.job.error
    deployment.client.retry(job_id, force=True)
    assert deployment.wait(job_id).job.attempt == 2
    if way == "by an operator":
        worker.drain()
        deployment.client.remove(job_id)
    else:
        deployment.client.requeue(job_id)
    record = deployment.queues.layout.record(job_id)
    wait_until(lambda: deployment.queues.session.exists(record) is None, WAIT_S, "it is removed")


def test_a_job_whose_nodes_only_its_driver_can_remove_stays_and_says_so(deployment: Deployment) -> None:
    worker = deployment.worker()
    job_id = deployment.submit(
        f"{LITTERS}for below in ('/a', '/a/b'): client.create(path + below, acl=own)\n"
    )
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    worker.drain()
    with pytest.raises(StateConflict, match=r"attempt-1-.* has nodes below it"):
        deployment.client.remove(job_id)
    assert deployment.client.get(job_id).status is Status.SUCCESS


# ---------------------------------------------------------------------- data for the driver
def test_neither_password_nor_key_of_the_worker_reaches_a_driver(
    other_deployment: Deployment, tmp_path: Path
) -> None:
    deployment, settings = other_deployment, other_deployment.settings
    deployment.worker()
    shown = tmp_path / "environment.json"
    detail = deployment.wait(deployment.submit(SHOW_ENVIRONMENT.format(str(shown))))
    assert detail.job.status is Status.SUCCESS, detail.job.error
    secrets = [SECRET.encode(), b"worker-password", ADA.digest_id.encode()]
    if (tls := settings.zookeeper_tls) is not None:
        secrets += [os.fsencode(path) for path in (tls.key_file, tls.certificate_file) if path]
    written = [shown, *(path for path in (settings.state_dir / "runs").rglob("*") if path.is_file())]
    assert any(path.name == "plan.json" for path in written)
    for path in written:
        assert not [secret for secret in secrets if secret in path.read_bytes()], path


def test_the_password_of_a_run_is_only_in_private_files_of_its_host(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    plan_file = tmp_path / "plan.json"
    job_id = deployment.submit(SHOW_PLAN.format(str(plan_file)) + f"print(open({str(plan_file)!r}).read())")
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS, detail.job.error
    password = plan_in(plan_file)["zookeeper"]["digest"]["password"].encode()
    for node in tree(deployment.queues.session, deployment.settings.root):
        found = deployment.queues.session.get(node)
        assert found is None or password not in found[0], node
    holding = {
        path.name
        for path in (deployment.settings.state_dir).rglob("*")
        if path.is_file() and password in path.read_bytes()
    }
    assert holding == {"plan.json", "secrets.json", "stdout.log"}  # the last: by the user's own program
    for path in (deployment.settings.state_dir / "runs").rglob("plan.json"):
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0


# ---------------------------------------------------------------------- normal life
def test_jobs_end_fail_are_run_again_and_killed(other_deployment: Deployment, tmp_path: Path) -> None:
    deployment, flag = other_deployment, tmp_path / "flag"
    deployment.worker(slots=3)
    once = f"import pathlib; f = pathlib.Path({str(flag)!r}); done = f.exists(); f.touch(); assert done"
    retry = {"attempts": 2, "delay": "100ms", "on": ["user"]}
    again = deployment.submit(once, retry=retry)
    killed = deployment.submit("import time; time.sleep(600)")
    wait_until(lambda: is_started(deployment, killed), WAIT_S, "it runs")
    deployment.client.kill(killed)
    assert deployment.wait(killed).job.status is Status.KILL
    detail = deployment.wait(again)
    assert (detail.job.status, detail.job.attempt) == (Status.SUCCESS, 2)


def test_a_driver_whose_session_has_expired_shows_life_again(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    go = tmp_path / "go"
    job_id = deployment.submit(waits_for(go))
    wait_until(lambda: is_started(deployment, job_id), WAIT_S, "it runs")
    attempt, session = attempt_of(deployment, job_id), deployment.queues.session
    driver = psutil.Process(attempt.document["pid"])
    driver.suspend()
    wait_until(lambda: session.exists(attempt.alive) is None, WAIT_S, "its session has expired")
    driver.resume()
    wait_until(lambda: session.exists(attempt.alive), WAIT_S, "it shows life again")
    assert session.get(attempt.alive) is not None, "and the worker may read it"
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


# ---------------------------------------------------------------------- an attempt whose login is lost
def announced(deployment: Deployment, program: str, login: str) -> str:
    """A job whose attempt was announced by a worker that has died before it submitted a driver."""
    job_id, definition = "announced", python_job(program)
    state = JobState.enqueued("test").evolve(status=Status.RUNNING, attempt=1)
    record = deployment.queues.put(
        Queue.RUNNING,
        job_id,
        state.to_payload(),
        extra=lambda path: [
            Create(f"{path}/definition", encode(definition.model_dump(mode="json", exclude_defaults=True)))
        ],
    )
    path = attempt_path(deployment.queues.layout.record(job_id), record.run_key, 1)
    place = deployment.runner().place().to_json()
    made = intent(path, run_key=record.run_key, number=1, place=place, at=timestamp(), login=login)
    commit(deployment.queues.session, [made])
    return job_id


LateDriver = Callable[[str, Login], AttemptHolder]


@pytest.fixture
def late_driver(deployment: Deployment) -> Iterator[LateDriver]:
    """A driver of this process that the dead worker had submitted, before it takes the attempt."""
    with ExitStack() as ends:

        def make(job_id: str, login: Login) -> AttemptHolder:
            attempt = attempt_of(deployment, job_id)
            plan = run_plan(
                attempt_path=attempt.path,
                stop_path=deployment.queues.layout.stop("default", job_id),
                run_key=attempt.run_key,
                incarnation="late",
            )
            session = deployment.queues.session
            owners = session.owners(attempt.path)
            own = Session(deployment.settings.zookeeper_drivers.settings(session.settings, login, owners))
            ends.callback(own.close)
            holder = AttemptHolder(own.start(), plan)
            ends.callback(holder.abandon)  # or it would end this process when its attempt is gone
            return holder

        yield make


@pytest.mark.parametrize("login", [None, Login.random("run-of-the-dead")], ids=["old", "lost"])
def test_an_announced_attempt_whose_login_is_lost_is_submitted_with_a_new_one(
    deployment: Deployment, login: Login | None
) -> None:
    job_id = announced(deployment, "pass", "" if login is None else login.digest_id)
    deployment.worker()
    detail = deployment.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.SUCCESS, 1), detail.job.error
    assert attempt_of(deployment, job_id).login.startswith(f"run-{attempt_of(deployment, job_id).run}:")


def test_a_driver_that_comes_after_its_attempt_was_given_to_another_is_superseded(
    deployment: Deployment, late_driver: LateDriver, tmp_path: Path
) -> None:
    login, go = Login.random("run-of-the-dead"), tmp_path / "go"
    job_id = announced(deployment, waits_for(go), login.digest_id)
    late = late_driver(job_id, login)
    deployment.worker()
    wait_until(lambda: is_started(deployment, job_id), WAIT_S, "the new driver runs")
    assert deployment.queues.get(job_id).claims == 1, (
        "a new login is no progress: a job may end its workers so"
    )
    with pytest.raises(Superseded, match="for the driver of another submission"):
        late.take()
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


class Found(LocalRunner):
    """A runner that finds another submission of each run, whose driver was too late for its attempt."""

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        late = {run: Submission(run, "late", RunState.EXITED, exit_codes.SUPERSEDED) for run in runs}
        return {run: [late[run], *found] for run, found in super().poll_many(runs).items()}


def test_a_driver_that_came_too_late_fails_no_attempt(deployment: Deployment) -> None:
    job_id = announced(deployment, "pass", Login.random("run-of-the-dead").digest_id)
    deployment.worker(runner=Found(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN))
    detail = deployment.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.SUCCESS, 1), detail.job.error


def test_a_new_login_whose_reply_was_lost_is_the_one_that_is_submitted(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = announced(deployment, "pass", Login.random("run-of-the-dead").digest_id)
    lost = lose_reply(
        monkeypatch, lambda step: any(isinstance(o, Create) and o.grant for o in step), lambda: None
    )
    deployment.worker()
    detail = deployment.wait(job_id)
    assert lost, "the new login was sent"
    assert (detail.job.status, detail.job.attempt) == (Status.SUCCESS, 1), detail.job.error


def test_a_driver_that_takes_its_attempt_in_the_moment_of_the_adoption_is_the_one_that_runs(
    deployment: Deployment, late_driver: LateDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = Login.random("run-of-the-dead")
    job_id = announced(deployment, "raise SystemExit('this must not run')", login.digest_id)
    late, make = late_driver(job_id, login), JobContext.new_login
    session = deployment.queues.session

    def after_the_take(self: JobContext, run: str) -> str:
        if not is_started(deployment, job_id):
            late.take()
            commit(
                session, [Delete(attempt_of(deployment, job_id).alive)]
            )  # as if its session had ended at once
        return make(self, run)

    monkeypatch.setattr(JobContext, "new_login", after_the_take)
    deployment.worker()
    wait_until(lambda: is_started(deployment, job_id), WAIT_S, "the late driver has it")
    late.end({"state": "succeeded"})
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    assert attempt_of(deployment, job_id).incarnation == "late"


# ---------------------------------------------------------------------- requests to stop
def test_a_driver_out_of_reach_obeys_a_request_that_was_made_before_it_had_its_login(
    deployment: Deployment, late_driver: LateDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = list[int]()
    monkeypatch.setattr(AttemptHolder, "_exit", lambda _self, code, _reason: ended.append(code))
    login = Login.random("run-elsewhere")
    job_id = announced(deployment, "pass", login.digest_id)
    driver = late_driver(job_id, login)
    driver.take()
    attempt, layout = attempt_of(deployment, job_id), deployment.queues.layout
    request = Create(
        layout.stop("default", job_id), encode({"run_key": attempt.run_key, "since": timestamp()})
    )
    commit(deployment.queues.session, [request])  # as before the intent: of no driver's login
    deployment.worker(runner=deployment.runner(deployment.settings.state_dir / "another"))
    assert deployment.wait(job_id).job.status is Status.KILL
    assert ended


def test_a_request_to_stop_can_be_read_by_the_driver_that_it_is_for_alone(
    deployment: Deployment, late_driver: LateDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AttemptHolder, "_exit", lambda _self, _code, _reason: None)
    login = Login.random("run-elsewhere")
    job_id = announced(deployment, "pass", login.digest_id)
    driver, layout, session = late_driver(job_id, login), deployment.queues.layout, deployment.queues.session
    driver.take()
    stop, alive = layout.stop("default", job_id), attempt_of(deployment, job_id).alive
    commit(session, [Create(stop, encode({"run_key": "an earlier job's"}))])
    driver.report("goes on")
    wait_until(lambda: b"goes on" in (session.get(alive) or (b"",))[0], WAIT_S, "it is not hindered")
    deployment.client.kill(job_id)
    wait_until(lambda: attempt_of(deployment, job_id).state is AttemptState.KILLED, WAIT_S, "it has obeyed")
    other = late_driver(job_id, Login.random("run-another"))
    assert other._stop_order() is None  # noqa: SLF001 - the check of its guard


def test_a_driver_with_a_login_of_its_own_obeys_a_graceful_stop_and_the_kill_after_it(
    deployment: Deployment, tmp_path: Path
) -> None:
    streams = Streams(deployment, tmp_path / "stream")
    worker = streams.worker()
    ends, killed = streams.submit(), streams.submit(name="killed")
    for job_id in (ends, killed):
        streams.wait_for_batch(job_id)
    hangs = streams.change("hangs")
    worker.drain()  # only the drivers obey
    for job_id in (ends, killed):
        deployment.client.kill(job_id, graceful=True)
        streams.wait_for_stopping(job_id)
    deployment.client.kill(killed)
    wait_until(lambda: streams.attempt(killed).state is AttemptState.KILLED, WAIT_S, "it has obeyed")
    hangs.unlink()
    wait_until(lambda: streams.attempt(ends).state is AttemptState.SUCCEEDED, WAIT_S, "it has ended")
    streams.worker()
    assert deployment.wait(ends).job.status is Status.SUCCESS
    assert deployment.wait(killed).job.status is Status.KILL
    assert not any(map(streams.stop_exists, (ends, killed)))


# ---------------------------------------------------------------------- drivers of earlier versions
def test_a_driver_without_a_login_ends_well_though_its_root_is_closed_meanwhile(
    secured: Secured, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    settings = closed_settings(secured, tmp_path, "digest")
    with ExitStack() as stack:
        before = Deployment(settings.model_copy(update={"zookeeper_acl": Acl.OPEN}))
        stack.callback(before.close)
        worker = before.worker()
        job_id = before.submit(waits_for(tmp_path / "go"))
        wait_until(lambda: is_started(before, job_id), WAIT_S, "the job runs")
        path = attempt_of(before, job_id).path
        worker.drain()
        deployment = Deployment(settings)
        stack.callback(deployment.close)
        doctor = Doctor(deployment.queues)
        left = [
            each
            for each in doctor.fix(doctor.check())
            if each.kind is FindingKind.OPEN_NODES and not each.fixed
        ]
        assert [each.path for each in left] == [path]
        deployment.worker()
        (tmp_path / "go").touch()
        assert deployment.wait(job_id).job.status is Status.SUCCESS
        doctor.fix(doctor.check())
        assert FindingKind.OPEN_NODES not in {each.kind for each in doctor.check()}
