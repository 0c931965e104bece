"""Logs of attempts on another host: read through the worker there, over ZooKeeper, and nothing else."""

import os
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client.client import Client
from orchestrator.client.connect import build_queue_set, open_session
from orchestrator.client.logs import JobLogs
from orchestrator.config.zookeeper import LoginFile
from orchestrator.driver_logs.attempt_runs import secrets_of_job
from orchestrator.driver_logs.page_request import MAX_REPLY_BYTES, PageRefused, PageRequest, page_of
from orchestrator.leader.stale_log_requests import StaleLogRequests
from orchestrator.logs.reading.query import DRIVER, LogRecord, query_of
from orchestrator.model.definition import Definition
from orchestrator.model.errors import LogsElsewhere, NoSuchAttempt
from orchestrator.model.paths import Nodes
from orchestrator.model.spark import Spark
from queues import AccessDenied, Acl, Create, Delete, Session, Set, commit, decode, encode
from spark_runner.protocol.attempt import attempt_path
from spark_runner.runners.registry import Runners
from tests.jobs_support import Deployment, waits_for
from tests.waiting import wait_until

WAIT_S = 60
PROGRAM = """
import sys
print("on stdout", flush=True)
print("on stderr", file=sys.stderr, flush=True)
"""


class OtherHost:
    """A client with a state directory of its own: it has no file of the jobs of a deployment."""

    def __init__(self, deployment: Deployment, folder: Path, **settings: Any) -> None:
        self.settings = deployment.settings.model_copy(update={"state_dir": folder / "elsewhere", **settings})
        self.session = open_session(self.settings, self.settings.zookeeper_hosts).__enter__()
        self.queues = build_queue_set(self.session, self.settings, owner="elsewhere")
        self.reports: list[str] = []

    def logs(self, job_id: str, *, follow: bool = False, attempt: int | None = None) -> Iterator[LogRecord]:
        logs = JobLogs(self.queues, self.settings, self.reports.append)
        return logs.records(job_id, query_of(), attempt=attempt, executor=DRIVER, follow=follow)

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.settings.root)

    def requests(self) -> list[str]:
        """The paths of all requests."""
        nodes, found = self.nodes, list[str]()
        for store in self.session.children(nodes.log_requests) or ():
            names = self.session.children(nodes.log_requests_of(store)) or ()
            found += [nodes.log_request(store, name) for name in names]
        return found

    def ask(self, data: bytes) -> bytes:
        """The reply to a request of this content."""
        path = self.post(data, name=uuid.uuid4().hex)
        wait_until(lambda: self.version(path) > 0, WAIT_S, "the worker has answered")
        found = self.session.get(path)
        assert found is not None
        commit(self.session, [Delete(path)])
        return found[0]

    def post(self, data: bytes, *, name: str) -> str:
        (store,) = self.session.children(self.nodes.log_requests) or [""]
        path = self.nodes.log_request(store, name)
        commit(self.session, [Create(path, data, ephemeral=True)])
        return path

    def version(self, path: str) -> int:
        stat = self.session.exists(path)
        return -1 if stat is None else stat.version


@pytest.fixture
def other(deployment: Deployment, tmp_path: Path) -> Iterator[OtherHost]:
    made = OtherHost(deployment, tmp_path)
    yield made
    made.session.close()


def ended(deployment: Deployment, program: str, **fields: Any) -> str:
    """A job that has ended; its worker still runs."""
    deployment.worker()
    job_id = deployment.submit(program, **fields)
    deployment.wait(job_id)
    return job_id


def messages(records: Iterator[LogRecord]) -> list[str]:
    return [record.message for record in records]


# ---------------------------------------------------------------------- reading
def test_the_logs_on_another_host_are_those_that_its_own_reader_finds(
    deployment: Deployment, other: OtherHost
) -> None:
    job_id = ended(deployment, PROGRAM)
    here = {(record.origin, record.message) for record in deployment.logs(job_id)}
    there = list(other.logs(job_id))
    assert {(record.origin, record.message) for record in there} == here
    assert {"on stdout", "on stderr"} <= {record.message for record in there}
    assert {record.document["job.id"] for record in there} == {job_id}
    wait_until(lambda: not other.requests(), WAIT_S, "no request is left")


def test_a_log_larger_than_a_node_comes_whole_and_in_order(deployment: Deployment, other: OtherHost) -> None:
    program = "import os, sys\nfor n in range(20_000): print(n, os.urandom(20).hex())\n"
    program += "sys.stdout.flush(); os.write(1, os.urandom(300_000)); print()\nprint('the end')\n"
    job_id = ended(deployment, program)
    lines = messages(other.logs(job_id))
    assert [line.split()[0] for line in lines[:20_000]] == [str(number) for number in range(20_000)]
    assert lines[-1] == "the end"
    assert "".join(lines) == "".join(messages(deployment.logs(job_id)))


def test_following_shows_each_line_while_the_job_runs_and_ends_with_it(
    deployment: Deployment, other: OtherHost, tmp_path: Path
) -> None:
    deployment.worker()
    go = tmp_path / "go"
    job_id = deployment.submit(f"print('first', flush=True)\n{waits_for(go)}\nprint('last')")
    seen = list[str]()

    def follow() -> None:
        seen.extend(record.message for record in other.logs(job_id, follow=True))

    follower = threading.Thread(target=follow)
    follower.start()
    wait_until(lambda: "first" in seen, WAIT_S, "the first line is seen")
    go.touch()
    wait_until(lambda: not follower.is_alive(), WAIT_S, "following ends with the job")
    assert [line for line in seen if line in {"first", "last"}] == ["first", "last"]


def test_another_worker_of_the_host_goes_on_when_one_is_gone(
    deployment: Deployment, other: OtherHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.log_pages._PAGE_BYTES", 1_000)
    first = deployment.worker()
    job_id = deployment.submit("for n in range(100): print(n)")
    deployment.wait(job_id)
    records = other.logs(job_id)
    begin = [next(records).message for _ in range(2)]
    first.drain()
    deployment.worker()
    assert begin + messages(records) == [str(number) for number in range(100)]


def test_two_readers_at_once_get_all(deployment: Deployment, tmp_path: Path, other: OtherHost) -> None:
    job_id = ended(deployment, "for n in range(3_000): print('line', n)")
    second = OtherHost(deployment, tmp_path)
    found = dict[int, list[str]]()

    def read(index: int, host: OtherHost) -> None:
        found[index] = messages(host.logs(job_id))

    readers = [threading.Thread(target=read, args=each) for each in enumerate((other, second))]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    second.session.close()
    assert found[0] == found[1] == [f"line {number}" for number in range(3_000)]


# ---------------------------------------------------------------------- without an answer
def test_without_a_worker_one_sentence_names_the_host_and_the_remedy(
    deployment: Deployment, other: OtherHost
) -> None:
    worker = deployment.worker()
    job_id = deployment.submit(PROGRAM)
    deployment.wait(job_id)
    worker.drain()
    with pytest.raises(LogsElsewhere) as raised:
        list(other.logs(job_id))
    assert f"are on host {os.uname().nodename}, and no worker runs there" in str(raised.value)
    assert "start `orchestrator worker` there" in str(raised.value)
    assert "logs.url" in str(raised.value)


def test_logs_that_were_removed_and_jobs_that_are_gone_are_named(
    deployment: Deployment, other: OtherHost
) -> None:
    job_id = ended(deployment, PROGRAM)
    for path in (deployment.settings.state_dir / "runs").rglob("*.log*"):
        path.unlink()
    with pytest.raises(NoSuchAttempt, match=r"are not on local host .* any more"):
        list(other.logs(job_id))
    with pytest.raises(NoSuchAttempt, match="its last attempt is 1"):
        list(other.logs(job_id, attempt=2))


def test_a_job_that_is_removed_while_it_is_read_ends_the_reading(
    deployment: Deployment, other: OtherHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.log_pages._PAGE_BYTES", 1_000)
    job_id = ended(deployment, "for n in range(100): print(n)")
    records = other.logs(job_id)
    next(records)
    Client(deployment.queues).remove(job_id)
    with pytest.raises(NoSuchAttempt, match="no job"):
        list(records)


# ---------------------------------------------------------------------- trust
def request(job_id: str, **fields: Any) -> bytes:
    return PageRequest(job=job_id, attempt=1, flush=True, **fields).encode()


def test_secrets_are_masked_before_they_leave_the_host(deployment: Deployment, other: OtherHost) -> None:
    value = "no-word-has-this-form-1234"
    program = f"value = {value!r}\nprint('it is', value)\nprint('password=hunter2hunter2')"
    job_id = ended(deployment, program, spark={"conf": {"spark.hadoop.fs.s3a.secret.key": value}})
    reply = other.ask(request(job_id))
    text = zlib.decompress(reply[1:]).decode()
    assert "it is ***" in text
    assert value not in text
    assert "hunter2hunter2" not in text


def test_a_host_that_did_not_submit_a_job_knows_the_secrets_of_its_settings_and_its_script(
    deployment: Deployment,
) -> None:
    values = {"password": "no-word-has-this-form-1", "spark.hadoop.fs.s3a.secret.key": "nor-has-this-one-2"}
    script = """
        CREATE TABLE t (a INT) USING jdbc
        OPTIONS (url 'jdbc:postgresql://x/y', dbtable 't', user 'u', password 'no-word-has-this-form-1');
        CREATE TABLE o USING json OPTIONS (path '/tmp/o');
        INSERT OVERWRITE o SELECT a FROM t;
    """
    conf = {"spark.hadoop.fs.s3a.secret.key": values["spark.hadoop.fs.s3a.secret.key"]}
    job = deployment.client.submit(Definition(name="x", script=script, spark=Spark(conf=conf)))
    found = secrets_of_job(deployment.session(), deployment.queues.layout, job.id)
    assert set(values.values()) <= set(found)
    assert secrets_of_job(deployment.session(), deployment.queues.layout, "none") == []


HOSTILE = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"{}",
    b"[" * 100_000,
    b'{"job": "../../etc", "attempt": 1}',
    b'{"job": "x", "attempt": 0}',
    b'{"job": "x", "attempt": 1, "path": "/etc/passwd"}',
    b'{"job": "x", "attempt": 1, "run": "../.."}',
    b'{"job": "x", "attempt": 1, "grep": "("}',
    b'{"job": "x", "attempt": 1, "level": "loud"}',
    b'{"job": "x", "attempt": 1, "wait": 1e9}',
    b'{"job": "x", "attempt": 1, "cursor": {"a": -1}}',
    b'{"job": "' + b"x" * 500_000 + b'", "attempt": 1}',
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_request_is_refused_and_the_next_one_is_served(
    deployment: Deployment, other: OtherHost, data: bytes
) -> None:
    deployment.worker()
    wait_until(lambda: other.session.children(other.nodes.log_requests), WAIT_S, "the folder is there")
    with pytest.raises(PageRefused):
        page_of(other.ask(data))
    with pytest.raises(PageRefused, match="there is no job 'none'"):
        page_of(other.ask(request("none")))


def test_a_cursor_opens_no_other_file(deployment: Deployment, other: OtherHost) -> None:
    job_id = ended(deployment, PROGRAM)
    keys = {"runs/../..//stdout": 0, "../../../etc/passwd": 5, "/etc/passwd": 7}
    page = page_of(other.ask(request(job_id, cursor=keys)))
    assert {record.message for record in page.records} >= {"on stdout", "on stderr"}
    assert "root:" not in " ".join(record.message for record in page.records)


def test_a_forged_place_of_an_attempt_opens_no_other_folder(
    deployment: Deployment, other: OtherHost, tmp_path: Path
) -> None:
    job_id = ended(deployment, PROGRAM + "raise ValueError", retry={"attempts": 2, "delay": "100ms"})
    record = deployment.queues.get(job_id)
    evil = {"backend": "standalone", "cluster": {"master": "spark://evil:7077", "staging": str(tmp_path)}}
    for number in (1, 2):
        path = attempt_path(deployment.queues.layout.record(job_id), record.run_key, number)
        found = other.session.get(path)
        assert found is not None
        commit(other.session, [Set(path, encode({**decode(found[0]), "place": evil}), -1)])
    with pytest.raises(PageRefused, match="does not record where it ran"):
        page_of(other.ask(request(job_id)))
    last = PageRequest(job=job_id, attempt=2, flush=True).encode()
    assert "on stdout" in {record.message for record in page_of(other.ask(last)).records}


def test_replies_are_bounded_in_size_and_number_and_old_requests_are_removed(
    deployment: Deployment, other: OtherHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.log_pages._MAX_REPLIES", 3)
    job_id = ended(deployment, "import os; os.write(1, os.urandom(3_000_000))")
    paths = [other.post(request(job_id), name=f"{number:03}") for number in range(12)]

    def replied() -> list[int]:
        found = other.session.get_many(paths)
        return [len(node[0]) for node in found if node is not None and node[1].version]

    wait_until(lambda: len(replied()) == 3, WAIT_S, "three are answered")
    later = other.post(request("none"), name="later")
    wait_until(lambda: len(replied()) == 3 and other.version(later) == 0, WAIT_S, "no other one is")
    assert max(replied()) <= MAX_REPLY_BYTES
    monkeypatch.setattr("orchestrator.worker.log_pages._OLD_SECONDS", 0.1)
    wait_until(lambda: not other.requests(), WAIT_S, "the worker has removed what readers have left")


def test_the_requests_of_a_reader_end_with_its_session(deployment: Deployment, tmp_path: Path) -> None:
    job_id = ended(deployment, PROGRAM)
    reader, watcher = OtherHost(deployment, tmp_path), OtherHost(deployment, tmp_path)
    path = reader.post(request(job_id), name="unread")
    wait_until(lambda: watcher.version(path) > 0, WAIT_S, "there is a reply")
    reader.session.close()
    wait_until(lambda: not watcher.requests(), WAIT_S, "nothing is left of it")
    watcher.session.close()


def test_without_requests_a_worker_writes_nothing(deployment: Deployment, other: OtherHost) -> None:
    deployment.worker()
    wait_until(lambda: other.session.children(other.nodes.log_requests), WAIT_S, "the folder is there")
    (store,) = other.session.children(other.nodes.log_requests) or [""]
    before = other.session.get(other.nodes.log_requests_of(store))
    job_id = deployment.submit(PROGRAM)
    deployment.wait(job_id)
    assert other.session.get(other.nodes.log_requests_of(store)) == before


def test_who_has_no_right_to_the_tree_gets_no_logs(
    deployment: Deployment, tmp_path: Path, make_login: Callable[[str], LoginFile]
) -> None:
    secured = {"zookeeper_acl": Acl.CREATOR}
    own = Deployment(
        deployment.settings.model_copy(
            update={
                **secured,
                "zookeeper_login": make_login("ada"),
                "root": f"{deployment.settings.root}-own",
            }
        )
    )
    try:
        job_id = ended(own, PROGRAM)
        friend = OtherHost(own, tmp_path)
        assert "on stdout" in messages(friend.logs(job_id))
        friend.session.close()
        stranger = OtherHost(own, tmp_path, zookeeper_login=make_login("eve"))
        with pytest.raises(AccessDenied):
            list(stranger.logs(job_id))
        with pytest.raises(AccessDenied):
            _post_anywhere(stranger.session, own, request(job_id))
        stranger.session.close()
    finally:
        own.close()


def _post_anywhere(session: Session, deployment: Deployment, data: bytes) -> None:
    nodes, (place,) = Nodes(deployment.settings.root), Runners.of(deployment.runner()).places()
    commit(session, [Create(nodes.log_request(place.store, "x"), data, ephemeral=True)])


@pytest.fixture
def make_login(tmp_path: Path) -> Callable[[str], LoginFile]:
    def make(user: str) -> LoginFile:
        file = tmp_path / f"{user}.password"
        file.write_text(f"password of {user}")
        file.chmod(0o600)
        return LoginFile(scheme="digest", user=user, password_file=file)

    return make


# ---------------------------------------------------------------------- what is left
def test_the_leader_removes_the_folders_of_hosts_that_are_gone(
    deployment: Deployment, other: OtherHost
) -> None:
    nodes = other.nodes
    other.session.ensure_path(nodes.log_requests_of("gone"))
    commit(other.session, [Create(nodes.log_request("gone", "kept"))])
    deployment.worker()
    wait_until(lambda: len(other.session.children(nodes.log_requests) or ()) == 2, WAIT_S, "both are there")
    duty = StaleLogRequests(other.queues, nodes, tuple, patience=0)
    duty.step()
    duty.step()
    assert "gone" not in (other.session.children(nodes.log_requests) or ())
    assert len(other.session.children(nodes.log_requests) or ()) == 1, "that of the worker stays"
