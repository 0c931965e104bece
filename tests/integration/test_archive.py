import json
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.archive.archive import PausingArchive
from orchestrator.archive.base import Document, Mark
from orchestrator.archive.jsonl import JsonlArchive
from orchestrator.handlers import finish
from orchestrator.handlers.actions import Keep, Release, Remove
from queues.model.codec import encode
from queues.model.errors import ClaimLost
from queues.model.operations import Create, Set
from queues.queue_set import QueueSet
from queues.store.commit import commit
from spark_runner.protocol.attempt import attempt_path, run_name
from spark_runner.runners.base import RunState
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import Runners
from spark_runner.runners.run_directory import run_path
from tests.archive_support import CRASHES, apply, follow, held, put_finished, queue_set
from tests.queues_support import expire, open_session
from tests.runner_support import SLEEPS, request, wait_for, wait_until_up
from tests.waiting import wait_until

LONG_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def queues(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[QueueSet]:
    with open_session(zookeeper_hosts) as session:
        yield queue_set(session, zookeeper_root)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def archived(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()
    ]


def lock_of(queues: QueueSet, job_id: str) -> str:
    return queues.layout.lock("default", job_id)


# ---------------------------------------------------------------------- life of a job
def test_a_job_is_marked_then_archived_with_all_that_is_known_of_it_then_removed(
    queues: QueueSet, folder: Path
) -> None:
    job_id = put_finished(queues, attempts=12)
    record = queues.get(job_id)
    archive = JsonlArchive(folder)
    marked, removed = follow(held(queues, job_id, archive))
    assert isinstance(marked, Keep)
    assert marked.delay == 0
    assert str(marked.changes["archive"]).startswith(f"{archive.owner()} ")
    assert isinstance(removed, Remove)
    assert not queues.contains(job_id)
    assert queues.session.exists(queues.layout.record(job_id)) is None
    (document,) = archived(folder)
    assert (document["id"], document["run_key"], document["status"]) == (job_id, record.run_key, "SUCCESS")
    assert document["definition"] == {"name": "report", "python": "pass"}
    assert [attempt["attempt"] for attempt in document["attempts"]] == list(range(1, 13))
    assert document["attempts"][0]["place"]["host"] == "somewhere-else"
    assert document["host"] == socket.gethostname()


def test_nothing_is_written_before_the_mark(queues: QueueSet, folder: Path) -> None:
    job = held(queues, put_finished(queues), JsonlArchive(folder))
    assert isinstance(finish.handle(job), Keep)
    assert archived(folder) == []


def test_without_an_archive_a_job_is_removed_at_once(queues: QueueSet) -> None:
    job_id = put_finished(queues)
    (removed,) = follow(held(queues, job_id, None))
    assert isinstance(removed, Remove)
    assert queues.session.exists(queues.layout.record(job_id)) is None


def test_a_request_to_stop_that_came_too_late_is_removed_and_nothing_else(
    queues: QueueSet, folder: Path
) -> None:
    job_id = put_finished(queues)
    job = held(queues, job_id, JsonlArchive(folder))
    queues.session.ensure_path(job.stop_path.rpartition("/")[0])
    commit(queues.session, [Create(job.stop_path, encode({"run_key": "other"}))])
    (released,) = follow(job)
    assert isinstance(released, Release)
    assert queues.session.exists(job.stop_path) is None
    assert queues.contains(job_id)
    assert archived(folder) == []


@pytest.mark.parametrize("data", [b"\xff no JSON", b"[1]", b"", b"{" * 100_000])
def test_a_node_that_cannot_be_read_is_archived_as_it_is(queues: QueueSet, folder: Path, data: bytes) -> None:
    job_id = put_finished(queues)
    path, run_key = queues.layout.record(job_id), queues.get(job_id).run_key
    commit(
        queues.session, [Set(attempt_path(path, run_key, 1), data, -1), Set(f"{path}/definition", data, -1)]
    )
    follow(held(queues, job_id, JsonlArchive(folder)))
    (document,) = archived(folder)
    assert document["attempts"][0] == {"unreadable": data.decode(errors="replace")}
    assert document["definition"] == {"unreadable": data.decode(errors="replace")}
    assert not queues.contains(job_id)


# ---------------------------------------------------------------------- crashes
@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_loses_nothing_and_archives_nothing_twice(
    zookeeper_hosts: str, queues: QueueSet, folder: Path, crash: str
) -> None:
    job_id = put_finished(queues)
    others = [put_finished(queues) for _ in range(2)]
    follow(held(queues, others[0], JsonlArchive(folder)))
    crash_at(crash, zookeeper_hosts, queues, job_id, str(folder))
    assert queues.contains(job_id)
    for other in others[1:]:
        follow(held(queues, other, JsonlArchive(folder)))  # later lines do not hide it
    follow(held(queues, job_id, JsonlArchive(folder)))
    assert not queues.contains(job_id)
    assert sorted(document["id"] for document in archived(folder)) == sorted([job_id, *others])


def crash_at(crash: str, hosts: str, queues: QueueSet, job_id: str, *archive: str) -> None:
    """End a process that archives the job by KILL at this point, and wait until the job is not held."""
    root = queues.layout.root
    command = [sys.executable, "-m", "tests.archive_support", hosts, root, job_id, crash, *archive]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_until(
        lambda: queues.session.exists(lock_of(queues, job_id)) is None,
        20,
        "the session of the crashed one ends",
    )


class Overtaken:
    """An archive in which something happens between the last check of the claim and the write."""

    def __init__(self, folder: Path, meanwhile: Callable[[], object]) -> None:
        self._inner, self._meanwhile = JsonlArchive(folder), meanwhile

    def owner(self) -> str:
        return self._inner.owner()

    def position(self) -> str:
        return self._inner.position()

    def write(self, document: Document, *, since: str = "") -> None:
        self._meanwhile()
        self._inner.write(document, since=since)


def test_two_who_both_believe_to_hold_the_job_write_it_once(
    zookeeper_hosts: str, queues: QueueSet, folder: Path
) -> None:
    job_id = put_finished(queues)
    with open_session(zookeeper_hosts) as session:

        def meanwhile() -> None:
            expire(session)
            follow(held(queues, job_id, JsonlArchive(folder)))

        stale = held(queue_set(session, queues.layout.root), job_id, Overtaken(folder, meanwhile))
        with pytest.raises(ClaimLost):
            follow(stale)
    assert not queues.contains(job_id)
    assert [document["id"] for document in archived(folder)] == [job_id]


# ---------------------------------------------------------------------- two hosts
def test_a_job_that_another_host_has_marked_is_left_to_it(queues: QueueSet, tmp_path: Path) -> None:
    one, two = JsonlArchive(tmp_path / "one"), JsonlArchive(tmp_path / "two")
    job_id = put_finished(queues, mark=str(Mark.now(one.owner(), one.position())))
    (left,) = follow(held(queues, job_id, two))
    assert left == Keep(delay=600.0)
    assert queues.get(job_id).token.due > queues.clock.now_ms() + 500_000
    assert archived(tmp_path / "two") == []
    queues.requeue(job_id)
    follow(held(queues, job_id, one))
    assert not queues.contains(job_id)
    assert [document["id"] for document in archived(tmp_path / "one")] == [job_id]


def test_a_job_whose_host_is_gone_for_a_day_is_taken_over(queues: QueueSet, tmp_path: Path) -> None:
    two = JsonlArchive(tmp_path / "two")
    job_id = put_finished(queues, mark=str(Mark("one-1234", LONG_AGO, "jobs-2020-01.jsonl:0")))
    marked, removed = follow(held(queues, job_id, two))
    assert isinstance(marked, Keep)
    mark = Mark.parse(str(marked.changes["archive"]))
    assert mark is not None
    assert (mark.owner, mark.taken_over_from) == (two.owner(), "one-1234")
    assert isinstance(removed, Remove)
    (document,) = archived(tmp_path / "two")
    assert document["taken_over_from"] == "one-1234"


def test_a_host_that_comes_back_after_days_finds_what_it_has_written(queues: QueueSet, folder: Path) -> None:
    archive = JsonlArchive(folder)
    job_id = put_finished(queues, mark=str(Mark(archive.owner(), LONG_AGO, archive.position())))
    job = held(queues, job_id, archive)
    assert isinstance(finish.handle(job), Remove)
    follow(job)
    assert len(archived(folder)) == 1


# ---------------------------------------------------------------------- a failing archive
def test_a_job_stays_until_the_archive_takes_it_again(queues: QueueSet, folder: Path) -> None:
    job_id, now = put_finished(queues), [0.0]
    archive = PausingArchive(JsonlArchive(folder), clock=lambda: now[0])
    follow_to_mark(queues, job_id, archive)
    (path,) = folder.glob("*.jsonl")
    path.write_text("of another program\n", "utf-8")
    for delay in (60.0, 120.0):
        assert follow(held(queues, job_id, archive)) == [Keep(delay=delay)]
        assert queues.contains(job_id)
        assert queues.session.exists(f"{queues.layout.record(job_id)}/definition") is not None
        now[0] += delay
        queues.requeue(job_id)
    path.rename(folder / "elsewhere")
    follow(held(queues, job_id, archive))
    assert not queues.contains(job_id)
    assert len(archived(folder)) == 1


def follow_to_mark(queues: QueueSet, job_id: str, archive: PausingArchive) -> None:
    job = held(queues, job_id, archive)
    apply(job, finish.handle(job))
    job.claim.release()


# ---------------------------------------------------------------------- traces of runs
def test_traces_of_runs_on_this_host_are_removed_with_the_job(
    queues: QueueSet, folder: Path, runner: LocalRunner, tmp_path: Path
) -> None:
    key = str(uuid.uuid4())
    runs = [run_name(key, number) for number in (1, 2)]
    for run in runs:
        runner.submit(request(run))
        wait_for(runner, run, RunState.EXITED)
    job_id = put_finished(queues, place=runner.place(), run_key=key)
    follow(held(queues, job_id, JsonlArchive(folder), Runners.of(runner)))
    assert not any(run_path(tmp_path / "state", run).exists() for run in runs)


def test_a_job_is_not_removed_while_a_driver_of_it_runs(
    queues: QueueSet, folder: Path, runner: LocalRunner, run: str
) -> None:
    submitted = request(run, SLEEPS)
    runner.submit(submitted)
    wait_until_up(runner, submitted)
    job_id = put_finished(queues, attempts=1, place=runner.place(), run_key=run.removesuffix("-1"))
    runners = Runners.of(runner)
    assert follow(held(queues, job_id, JsonlArchive(folder), runners))[-1] == Keep(delay=60.0)
    assert archived(folder) == []
    runner.kill(run, grace_seconds=0)
    queues.requeue(job_id)
    follow(held(queues, job_id, JsonlArchive(folder), runners))
    assert not queues.contains(job_id)


def test_a_job_is_not_removed_while_the_session_of_a_driver_lives(queues: QueueSet, folder: Path) -> None:
    job_id = put_finished(queues)
    alive = f"{attempt_path(queues.layout.record(job_id), queues.get(job_id).run_key, 2)}/alive"
    commit(queues.session, [Create(alive, ephemeral=True)])
    assert follow(held(queues, job_id, JsonlArchive(folder)))[-1] == Keep(delay=60.0)
    assert queues.contains(job_id)


def test_a_failed_cleanup_does_not_keep_the_job_for_ever(
    queues: QueueSet, runner: LocalRunner, run: str, tmp_path: Path
) -> None:
    submitted = request(run)
    runner.submit(submitted)
    wait_for(runner, run, RunState.EXITED)
    damaged = run_path(tmp_path / "state", run) / submitted.incarnation / "exit.json"
    damaged.write_text("damaged", "utf-8")
    job_id = put_finished(queues, attempts=1, place=runner.place(), run_key=run.removesuffix("-1"))
    follow(held(queues, job_id, JsonlArchive(tmp_path / "archive"), Runners.of(runner)))
    assert not queues.contains(job_id)
    assert damaged.exists()
