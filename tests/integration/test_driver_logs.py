"""Collecting what drivers write, with a real spool, under kills of everybody."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from orchestrator.driver_logs import run_logs
from orchestrator.driver_logs.collector import LOCK, DriverLogs
from orchestrator.driver_logs.positions import POSITIONS
from orchestrator.logs.files import folder_lock
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.spool.writer import Spool
from spark_runner.protocol.log_limit import OLDER, limit_log, read_cut
from spark_runner.runners.base import RunState, SparkTarget, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.run_directory import run_directory
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.backend import StandaloneBackend
from tests.driver_logs_support import documents_in, in_spools, is_collected, text_of, words
from tests.runner_support import driver_main, request, run, runner, wait_for
from tests.sampling import chance, times
from tests.waiting import wait_until

__all__ = ["driver_main", "run", "runner"]  # fixtures

WAIT_S = 20.0
KILLS = times(12, 25)
SEEDS = [chance(f"driver logs {number}").randrange(10_000) for number in range(times(1, 10))]
LIMIT_BYTES = 150_000  # of a log: it is cut every second or two, and a collector is away for moments
MODULE = [sys.executable, "-m", "tests.driver_logs_support"]


class Desk:
    """A state directory with one run directory, a spool, and collectors."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir, self.root = state_dir, state_dir / "spool"
        self.directory = state_dir / "runs" / "key-1" / "inc"
        self.directory.mkdir(parents=True)
        plan = {"run_key": "key", "job": {"id": "nightly", "name": "flights", "pool": "team"}}
        (self.directory / "plan.json").write_text(json.dumps(plan), "utf-8")
        self.spool = Spool(self.root)
        self.running: list[DriverLogs] = []

    def collector(self) -> DriverLogs:
        logs = DriverLogs(self.state_dir, self.spool, Days("logs"), Redactor())
        logs.start()
        self.running.append(logs)
        return logs

    def write(self, data: bytes, stream: str = "stdout") -> None:
        with (self.directory / f"{stream}.log").open("ab") as file:
            file.write(data)

    def end(self) -> None:
        (self.directory / "exit.json").write_text('{"exit_code": 0}', "ascii")

    def messages(self, stream: str = "stdout") -> list[str]:
        return [document["message"] for document in documents_in(self.root, stream)]

    def wait(self, *messages: str) -> None:
        wait_until(lambda: self.messages() == list(messages), WAIT_S, f"{messages} in the spool")

    def close(self) -> None:
        for logs in self.running:
            logs.stop()
        self.spool.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_byte_is_collected_once_whoever_is_killed(desk: Desk, seed: int) -> None:
    desk.spool.close(remove=True)
    with subprocess.Popen([*MODULE, "write", str(desk.directory), str(LIMIT_BYTES)]) as driver:
        collecting = [*MODULE, "collect", str(desk.state_dir), str(seed), str(KILLS)]
        with subprocess.Popen(collecting) as collector:
            log = desk.directory / "stdout.log"
            wait_until(lambda: read_cut(log).total > 2 * LIMIT_BYTES, 120, "a log that was cut several times")
            driver.kill()
            driver.wait()
            desk.end()
            assert collector.wait(90) == 0
    for stream in ("stdout", "stderr"):
        log = desk.directory / f"{stream}.log"
        documents = documents_in(desk.root, stream)
        cut, offset, text = read_cut(log), 0, ""
        # The kill may come between a cut and its note: all that was there is in the older part then.
        size = cut.total + max(log.stat().st_size, cut.pending)
        has_end = (Path(f"{log}{OLDER}").read_bytes() + log.read_bytes()).endswith(b"\n")
        for number, document in enumerate(documents, start=1):
            assert document["event.sequence"] == offset, "nothing is missing, and nothing is there twice"
            text = text_of(document, is_last=number == len(documents) and not has_end)
            offset += len(text)
        assert offset == size
        said = "".join(islice(words(stream), len(documents) + 1))
        told = "".join(text_of(document, is_last=False) for document in documents[:-1])
        assert said.startswith(told)
    for records in in_spools(desk.root).values():
        assert len(set(records)) == 1, "what came twice has the same index and time"


def test_what_was_announced_before_a_kill_comes_again_as_it_was(desk: Desk) -> None:
    desk.write(b"one\ntwo\nthree\nfour\n")
    with subprocess.Popen([*MODULE, "die", str(desk.state_dir), "2"]) as collector:
        assert collector.wait(WAIT_S) == -signal.SIGKILL
    desk.wait("one", "two")
    desk.collector()
    desk.wait("one", "two", "three", "four")
    counts = {identity: len(records) for identity, records in in_spools(desk.root).items()}
    assert counts == dict(zip((f"key-1-inc-stdout-{n}" for n in (0, 4, 8, 14)), (2, 2, 1, 1), strict=True))
    assert all(len(set(records)) == 1 for records in in_spools(desk.root).values())


def test_a_driver_is_collected_from_its_first_word_to_its_last(desk: Desk) -> None:
    desk.write(b"one\ntwo\nthree has no e")
    logs = desk.collector()
    desk.wait("one", "two")
    desk.write(b"nd\nfour has none")
    desk.wait("one", "two", "three has no end")
    desk.end()
    desk.wait("one", "two", "three has no end", "four has none")
    wait_until(lambda: is_collected(desk.directory), WAIT_S, "the mark of the end")
    (first, *_) = documents_in(desk.root, "stdout")
    assert {name: first[name] for name in first if name.startswith(("job.", "event.", "spark."))} == {
        "event.sequence": 0,
        "event.dataset": "spark.driver",
        "spark.executor_id": "driver",
        "job.id": "nightly",
        "job.name": "flights",
        "job.pool": "team",
        "job.run_key": "key",
        "job.attempt": 1,
    }
    assert "key-1-inc-stdout-4" in in_spools(desk.root)
    logs.stop()
    desk.write(b"\nafter the end\n")
    desk.collector()
    other = desk.directory.with_name("later")
    other.mkdir()
    (other / "stdout.log").write_bytes(b"another submission\n")
    wait_until(lambda: "another submission" in desk.messages(), WAIT_S, "a new submission of the run")
    assert "after the end" not in desk.messages(), "what is finished is not read again"


def test_a_driver_on_a_node_of_a_cluster_may_take_its_time_to_say_something(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "_SETTLE_SECONDS", 0.0)
    plan = {"run_key": "key", "job": {"id": "nightly", "deploy_mode": "cluster"}}
    (desk.directory / "plan.json").write_text(json.dumps(plan), "utf-8")
    os.utime(desk.directory / "plan.json", (1.0, 1.0))  # submitted long ago, and no shim runs it
    crashed = desk.directory.with_name("crashed")  # on this host, before its shim could begin
    crashed.mkdir()
    (crashed / "plan.json").write_text("{}", "ascii")
    os.utime(crashed / "plan.json", (1.0, 1.0))
    desk.collector()
    wait_until(lambda: is_collected(crashed), WAIT_S, "the other one is given up")
    desk.write(b"began\n")
    desk.wait("began")
    (document,) = documents_in(desk.root, "stdout")
    assert document["event.dataset"] == "spark.driver"
    assert not is_collected(desk.directory)
    desk.end()
    wait_until(lambda: is_collected(desk.directory), WAIT_S, "the mark of the end")


def test_secrets_of_a_job_are_masked_by_a_collector_that_has_not_submitted_it(desk: Desk) -> None:
    directory = run_directory(desk.state_dir, "other-2", "inc")
    directory.create()
    directory.write_plan(SubmitRequest("other-2", "inc", "weekly", {}, secrets=("nothing-like-one",)))
    (directory.path / "stdout.log").write_bytes(b"signed in as me with nothing-like-one\n")
    copied = desk.state_dir / "kubernetes-logs" / "other-2" / "inc.executor-1"
    copied.mkdir(parents=True)
    (copied / "stdout.log").write_bytes(b"nothing-like-one is what I got\n")
    desk.collector()
    wait_until(lambda: len(desk.messages()) == 2, WAIT_S, "both are collected")
    assert set(desk.messages()) == {"signed in as me with ***", "*** is what I got"}
    assert (directory.path / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_all_nodes_see_is_collected_too(desk: Desk, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    directory = shared / "runs" / "other-2" / "inc"
    directory.mkdir(parents=True)
    plan = {"run_key": "other", "job": {"id": "weekly", "deploy_mode": "cluster"}}
    (directory / "plan.json").write_text(json.dumps(plan), "utf-8")
    (directory / "stdout.log").write_bytes(b"from a node\n")
    desk.collector()
    backend = StandaloneBackend(SparkSubmits(desk.state_dir), driver_main=Path("/main.py"))
    backend.runner_for(SparkTarget("spark://h:7077", "cluster", {"staging": str(shared)}))
    desk.wait("from a node")
    (document,) = documents_in(desk.root, "stdout")
    assert (document["job.id"], document["job.attempt"]) == ("weekly", 2)
    assert document["event.dataset"] == "spark.driver"


def test_what_the_pods_of_executors_said_names_the_executor(desk: Desk) -> None:
    copies = desk.state_dir / "kubernetes-logs" / "key-1"
    for name, text in {"inc": b"driver\n", "inc.executor-3": b"26/11/22 10:00:00 WARN Task: slow\n"}.items():
        (copies / name).mkdir(parents=True)
        (copies / name / "stdout.log").write_bytes(text)
    desk.collector()
    wait_until(lambda: len(desk.messages()) == 2, WAIT_S, "both are collected")
    driver, executor = sorted(documents_in(desk.root, "stdout"), key=lambda each: each["event.dataset"])
    assert (driver["event.dataset"], driver["spark.executor_id"]) == ("spark.driver", "driver")
    assert (executor["event.dataset"], executor["spark.executor_id"]) == ("spark.executor", "3")
    assert executor["job.id"] == "nightly", "the plan is that of its driver"
    assert executor["log.level"] == "warning", "in the log of a pod a line says how loud it is"


def test_stopping_takes_what_is_there(desk: Desk) -> None:
    logs = desk.collector()
    desk.write(b"first\n")
    desk.wait("first")
    desk.write(b"said just before\n")
    logs.stop()
    assert desk.messages() == ["first", "said just before"]


def test_one_process_at_a_time_collects_and_the_next_goes_on(desk: Desk) -> None:
    desk.write(b"one\n")
    with folder_lock(desk.state_dir, name=LOCK) as is_ours:
        assert is_ours
        logs = desk.collector()
        waited = time.monotonic() + 1.0
        wait_until(lambda: time.monotonic() > waited, WAIT_S, "some looks in vain")
        assert desk.messages() == []
    desk.wait("one")
    logs.stop()
    desk.write(b"two\n")
    desk.collector()
    desk.wait("one", "two")
    assert all(len(records) == 1 for records in in_spools(desk.root).values())


def test_what_the_spool_does_not_take_comes_when_it_has_room(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "_FULL_SECONDS", 0.3)
    append_many, left = desk.spool.append_many, [2]

    def choosy(records: Iterable[tuple[bytes, int]]) -> int:
        appended = append_many(islice(records, max(0, left[0])))
        left[0] -= appended + 1
        return appended

    monkeypatch.setattr(desk.spool, "append_many", choosy)
    desk.write(b"one\ntwo\nthree\nfour\n")
    desk.collector()
    wait_until(lambda: left[0] < 0, WAIT_S, "the spool is full")
    assert desk.messages() == ["one", "two"]
    left[0] = 1000
    desk.wait("one", "two", "three", "four")
    times = [document["@timestamp"] for document in documents_in(desk.root, "stdout")]
    assert len(set(times[:3])) == 1, "what was announced comes as it would have come"
    assert all(len(records) == 1 for records in in_spools(desk.root).values())


def test_a_run_that_is_cleaned_up_takes_its_position_with_it(desk: Desk) -> None:
    desk.write(b"one\n")
    logs = desk.collector()
    desk.wait("one")
    assert (desk.directory / POSITIONS).exists()
    for path in desk.directory.iterdir():
        path.unlink()
    desk.directory.rmdir()
    logs.stop()
    assert not desk.directory.exists()


def test_a_line_without_end_is_taken_in_pieces(desk: Desk) -> None:
    desk.write(b"x" * 3_000_000)
    desk.collector()
    wait_until(lambda: len(desk.messages()) == 2, WAIT_S, "two pieces of a mebibyte")
    desk.end()
    wait_until(lambda: is_collected(desk.directory), WAIT_S, "the end")
    sequence = [document["event.sequence"] for document in documents_in(desk.root, "stdout")]
    assert sequence == [0, 1 << 20, 2 << 20]


def test_an_end_that_was_cut_before_it_was_collected_is_told_by_the_offsets(desk: Desk) -> None:
    desk.write(b"0123456789\n" * 10)
    assert limit_log(desk.directory / "stdout.log", 44)
    desk.write(b"and on\n")
    desk.end()
    desk.collector()
    wait_until(lambda: is_collected(desk.directory), WAIT_S, "the end")
    found = [
        (document["event.sequence"], document["message"]) for document in documents_in(desk.root, "stdout")
    ]
    assert found == [(66 + 11 * n, "0123456789") for n in range(4)] + [(110, "and on")]


def test_copies_of_logs_elsewhere_have_ids_of_their_own(desk: Desk) -> None:
    desk.write(b"of spark-submit\n")
    copy = desk.state_dir / "kubernetes-logs" / "key-1" / "inc"
    copy.mkdir(parents=True)
    (copy / "stdout.log").write_bytes(b"of the driver\n")
    desk.collector()
    wait_until(lambda: len(desk.messages()) == 2, WAIT_S, "both")
    assert set(in_spools(desk.root)) == {"key-1-inc-stdout-0", "key-1-inc-copy-stdout-0"}
    assert {document["job.id"] for document in documents_in(desk.root, "stdout")} == {"nightly"}


def test_a_driver_under_a_real_shim_is_collected(runner: LocalRunner, run: str) -> None:
    code = "import sys; print('out'); print('WARN err', file=sys.stderr); raise ValueError('no rows')"
    state_dir = runner.submits.state_dir
    spool = Spool(state_dir / "spool")
    logs = DriverLogs(state_dir, spool, Days("logs"), Redactor())
    logs.start()
    try:
        submitted = request(run, code)
        runner.submit(submitted)
        wait_for(runner, run, RunState.EXITED)
        directory = state_dir / "runs" / run / submitted.incarnation
        wait_until(lambda: is_collected(directory), WAIT_S, "all of it")
        assert [each["message"] for each in documents_in(spool.folder.path.parent, "stdout")] == ["out"]
        warning, error = documents_in(spool.folder.path.parent, "stderr")
        assert (warning["log.level"], error["log.level"]) == ("warning", "error")
        assert (error["error.type"], error["error.message"]) == ("ValueError", "no rows")
        assert (error["job.run_key"], error["job.attempt"]) == (run.removesuffix("-1"), 1)
    finally:
        logs.stop()
        spool.close()
    assert os.listdir(directory)  # noqa: PTH208 - it was not touched
