"""Collection of driver output into a real spool, while drivers and collectors are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from orchestrator.driver_logs import run_logs
from orchestrator.driver_logs.collector import LOCK, DriverLogs
from orchestrator.driver_logs.documents import Documents
from orchestrator.driver_logs.positions import POSITIONS
from orchestrator.driver_logs.records import ParsedRecord
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


class Harness:
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
def harness(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path)
    yield harness
    harness.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_byte_is_collected_once_whoever_is_killed(harness: Harness, seed: int) -> None:
    harness.spool.close(remove=True)
    with subprocess.Popen([*MODULE, "write", str(harness.directory), str(LIMIT_BYTES)]) as driver:
        collecting = [*MODULE, "collect", str(harness.state_dir), str(seed), str(KILLS)]
        with subprocess.Popen(collecting) as collector:
            log = harness.directory / "stdout.log"
            wait_until(lambda: read_cut(log).total > 2 * LIMIT_BYTES, 120, "a log that was cut several times")
            driver.kill()
            driver.wait()
            harness.end()
            assert collector.wait(90) == 0
    for stream in ("stdout", "stderr"):
        log = harness.directory / f"{stream}.log"
        documents = documents_in(harness.root, stream)
        cut, offset, text = read_cut(log), 0, ""
        # The kill may come between a cut and its note: the older part has all data then.
        size = cut.total + max(log.stat().st_size, cut.pending)
        has_end = (Path(f"{log}{OLDER}").read_bytes() + log.read_bytes()).endswith(b"\n")
        for number, document in enumerate(documents, start=1):
            assert document["event.sequence"] == offset, "nothing is missing, and nothing is there twice"
            text = text_of(document, is_last=number == len(documents) and not has_end)
            offset += len(text)
        assert offset == size
        said = "".join(islice(words(stream), len(documents) + 1))
        collected = "".join(text_of(document, is_last=False) for document in documents[:-1])
        assert said.startswith(collected)
    for records in in_spools(harness.root).values():
        assert len(set(records)) == 1, "a repeated record has the same index and time"


def test_records_announced_before_a_kill_come_again_unchanged(harness: Harness) -> None:
    harness.write(b"one\ntwo\nthree\nfour\n")
    with subprocess.Popen([*MODULE, "die", str(harness.state_dir), "2"]) as collector:
        assert collector.wait(WAIT_S) == -signal.SIGKILL
    harness.wait("one", "two")
    harness.collector()
    harness.wait("one", "two", "three", "four")
    counts = {identity: len(records) for identity, records in in_spools(harness.root).items()}
    assert counts == dict(zip((f"key-1-inc-stdout-{n}" for n in (0, 4, 8, 14)), (2, 2, 1, 1), strict=True))
    assert all(len(set(records)) == 1 for records in in_spools(harness.root).values())


def test_a_driver_is_collected_from_its_first_word_to_its_last(harness: Harness) -> None:
    harness.write(b"one\ntwo\nthree has no e")
    logs = harness.collector()
    harness.wait("one", "two")
    harness.write(b"nd\nfour has none")
    harness.wait("one", "two", "three has no end")
    harness.end()
    harness.wait("one", "two", "three has no end", "four has none")
    wait_until(lambda: is_collected(harness.directory), WAIT_S, "the mark of the end")
    (first, *_) = documents_in(harness.root, "stdout")
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
    assert "key-1-inc-stdout-4" in in_spools(harness.root)
    logs.stop()
    harness.write(b"\nafter the end\n")
    harness.collector()
    other = harness.directory.with_name("later")
    other.mkdir()
    (other / "stdout.log").write_bytes(b"another submission\n")
    wait_until(lambda: "another submission" in harness.messages(), WAIT_S, "a new submission of the run")
    assert "after the end" not in harness.messages(), "what is finished is not read again"


def test_a_driver_on_a_node_of_a_cluster_may_take_its_time_to_say_something(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "_SETTLE_SECONDS", 0.0)
    plan = {"run_key": "key", "job": {"id": "nightly", "deploy_mode": "cluster"}}
    (harness.directory / "plan.json").write_text(json.dumps(plan), "utf-8")
    os.utime(harness.directory / "plan.json", (1.0, 1.0))  # submitted long ago, and no shim runs it
    crashed = harness.directory.with_name("crashed")  # on this host, before its shim could begin
    crashed.mkdir()
    (crashed / "plan.json").write_text("{}", "ascii")
    os.utime(crashed / "plan.json", (1.0, 1.0))
    harness.collector()
    wait_until(lambda: is_collected(crashed), WAIT_S, "the other one is given up")
    harness.write(b"began\n")
    harness.wait("began")
    (document,) = documents_in(harness.root, "stdout")
    assert document["event.dataset"] == "spark.driver"
    assert not is_collected(harness.directory)
    harness.end()
    wait_until(lambda: is_collected(harness.directory), WAIT_S, "the mark of the end")


def test_secrets_of_a_job_are_masked_by_a_collector_that_has_not_submitted_it(harness: Harness) -> None:
    directory = run_directory(harness.state_dir, "other-2", "inc")
    directory.create()
    directory.write_plan(SubmitRequest("other-2", "inc", "weekly", {}, secrets=("nothing-like-one",)))
    (directory.path / "stdout.log").write_bytes(b"signed in as me with nothing-like-one\n")
    copied = harness.state_dir / "kubernetes-logs" / "other-2" / "inc.executor-1"
    copied.mkdir(parents=True)
    (copied / "stdout.log").write_bytes(b"nothing-like-one is what I got\n")
    harness.collector()
    wait_until(lambda: len(harness.messages()) == 2, WAIT_S, "both are collected")
    assert set(harness.messages()) == {"signed in as me with ***", "*** is what I got"}
    assert (directory.path / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_all_nodes_see_is_collected_too(harness: Harness, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    directory = shared / "runs" / "other-2" / "inc"
    directory.mkdir(parents=True)
    plan = {"run_key": "other", "job": {"id": "weekly", "deploy_mode": "cluster"}}
    (directory / "plan.json").write_text(json.dumps(plan), "utf-8")
    (directory / "stdout.log").write_bytes(b"from a node\n")
    harness.collector()
    backend = StandaloneBackend(SparkSubmits(harness.state_dir), driver_main=Path("/main.py"))
    backend.runner_for(SparkTarget("spark://h:7077", "cluster", {"staging": str(shared)}))
    harness.wait("from a node")
    (document,) = documents_in(harness.root, "stdout")
    assert (document["job.id"], document["job.attempt"]) == ("weekly", 2)
    assert document["event.dataset"] == "spark.driver"


def test_logs_of_executor_pods_name_the_executor(harness: Harness) -> None:
    copies = harness.state_dir / "kubernetes-logs" / "key-1"
    for name, text in {"inc": b"driver\n", "inc.executor-3": b"26/11/22 10:00:00 WARN Task: slow\n"}.items():
        (copies / name).mkdir(parents=True)
        (copies / name / "stdout.log").write_bytes(text)
    harness.collector()
    wait_until(lambda: len(harness.messages()) == 2, WAIT_S, "both are collected")
    driver, executor = sorted(documents_in(harness.root, "stdout"), key=lambda each: each["event.dataset"])
    assert (driver["event.dataset"], driver["spark.executor_id"]) == ("spark.driver", "driver")
    assert (executor["event.dataset"], executor["spark.executor_id"]) == ("spark.executor", "3")
    assert executor["job.id"] == "nightly", "the plan is that of its driver"
    assert executor["log.level"] == "warning", "in the log of a pod a line says how loud it is"


def test_stopping_takes_what_is_there(harness: Harness) -> None:
    logs = harness.collector()
    harness.write(b"first\n")
    harness.wait("first")
    harness.write(b"said just before\n")
    logs.stop()
    assert harness.messages() == ["first", "said just before"]


def test_one_process_at_a_time_collects_and_the_next_continues(harness: Harness) -> None:
    harness.write(b"one\n")
    with folder_lock(harness.state_dir, name=LOCK) as is_ours:
        assert is_ours
        logs = harness.collector()
        waited = time.monotonic() + 1.0
        wait_until(lambda: time.monotonic() > waited, WAIT_S, "some looks in vain")
        assert harness.messages() == []
    harness.wait("one")
    logs.stop()
    harness.write(b"two\n")
    harness.collector()
    harness.wait("one", "two")
    assert all(len(records) == 1 for records in in_spools(harness.root).values())


def test_records_that_the_spool_does_not_accept_arrive_when_it_has_capacity(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "_FULL_SECONDS", 0.3)
    append_many, left = harness.spool.append_many, [2]

    def choosy(records: Iterable[tuple[bytes, int]]) -> int:
        appended = append_many(islice(records, max(0, left[0])))
        left[0] -= appended + 1
        return appended

    monkeypatch.setattr(harness.spool, "append_many", choosy)
    harness.write(b"one\ntwo\nthree\nfour\n")
    harness.collector()
    wait_until(lambda: left[0] < 0, WAIT_S, "the spool is full")
    assert harness.messages() == ["one", "two"]
    left[0] = 1000
    harness.wait("one", "two", "three", "four")
    times = [document["@timestamp"] for document in documents_in(harness.root, "stdout")]
    assert len(set(times[:3])) == 1, "what was announced comes as it would have come"
    assert all(len(records) == 1 for records in in_spools(harness.root).values())


def test_a_run_that_is_cleaned_up_takes_its_position_with_it(harness: Harness) -> None:
    harness.write(b"one\n")
    logs = harness.collector()
    harness.wait("one")
    assert (harness.directory / POSITIONS).exists()
    for path in harness.directory.iterdir():
        path.unlink()
    harness.directory.rmdir()
    logs.stop()
    assert not harness.directory.exists()


def test_a_line_without_end_is_taken_in_pieces(harness: Harness) -> None:
    harness.write(b"x" * 3_000_000)
    harness.collector()
    wait_until(lambda: len(harness.messages()) == 2, WAIT_S, "two pieces of a mebibyte")
    harness.end()
    wait_until(lambda: is_collected(harness.directory), WAIT_S, "the end")
    sequence = [document["event.sequence"] for document in documents_in(harness.root, "stdout")]
    piece = (1 << 20) - (64 << 10)  # what follows a cut is looked at, too
    assert sequence == [0, piece, 2 * piece]


def test_a_secret_in_a_line_without_end_is_masked_wherever_the_line_is_cut(harness: Harness) -> None:
    values = [f"qwertz-{number:05}-asdfgh" for number in range(50)]
    (harness.directory / "secrets.json").write_text(json.dumps({"values": values}), "ascii")
    harness.write(b"x" * 900_007 + b" ".join(value.encode() for value in values * 400))
    harness.end()
    harness.collector()
    wait_until(lambda: is_collected(harness.directory), WAIT_S, "the end")
    said = "".join(harness.messages())
    assert "*** ***" in said
    assert "qwertz" not in said
    assert "asdfgh" not in said


PIPE = "a pipe"
HOSTILE = [
    ("collected.json", PIPE),
    ("collected.json", "[" * 50_000),
    ("collected.json", '{"done": false, "streams": {"stdout": {"offset": "1", "upto": 2, "time": 0}}}'),
    ("collected.json", '{"done": false, "streams": {"stdout": {"offset": 0, "upto": 2, "time": NaN}}}'),
    ("read-times", PIPE),
    ("stdout.log.cut", PIPE),
    ("stdout.log.cut", '{"total": "1"}'),
    ("secrets.json", '{"values": 5}'),
    ("plan.json", PIPE),
    ("shim.json", "[]"),
]


@pytest.mark.parametrize(
    ("name", "content"), HOSTILE, ids=[f"{name} {content[:30]}" for name, content in HOSTILE]
)
def test_no_file_that_a_driver_writes_stops_the_logs_of_the_others(
    harness: Harness, name: str, content: str
) -> None:
    path = harness.directory / name
    path.unlink(missing_ok=True)
    if content == PIPE:
        os.mkfifo(path)
    else:
        path.write_text(content, "ascii")
    harness.write(b"own\n")
    other = harness.state_dir / "runs" / "key-2" / "inc"
    other.mkdir(parents=True)
    (other / "stdout.log").write_bytes(b"of another\n")
    harness.collector()
    wait_until(lambda: set(harness.messages()) == {"own", "of another"}, WAIT_S, "both lines")


def test_an_error_with_the_logs_of_one_driver_does_not_stop_the_others(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Documents.build

    def failing(documents: Documents, records: Sequence[ParsedRecord], epoch: float) -> Any:
        if b"poison\n" in [record.data for record in records]:
            raise ArithmeticError
        return build(documents, records, epoch)

    monkeypatch.setattr(Documents, "build", failing)
    harness.write(b"poison\n")
    harness.collector()
    other = harness.state_dir / "runs" / "key-2" / "inc"
    other.mkdir(parents=True)
    (other / "stdout.log").write_bytes(b"of another\n")
    harness.wait("of another")


def test_an_end_that_was_cut_before_it_was_collected_shows_in_the_offsets(harness: Harness) -> None:
    harness.write(b"0123456789\n" * 10)
    assert limit_log(harness.directory / "stdout.log", 44)
    harness.write(b"and on\n")
    harness.end()
    harness.collector()
    wait_until(lambda: is_collected(harness.directory), WAIT_S, "the end")
    found = [
        (document["event.sequence"], document["message"]) for document in documents_in(harness.root, "stdout")
    ]
    assert found == [(66 + 11 * n, "0123456789") for n in range(4)] + [(110, "and on")]


def test_copies_of_logs_elsewhere_have_ids_of_their_own(harness: Harness) -> None:
    harness.write(b"of spark-submit\n")
    copy = harness.state_dir / "kubernetes-logs" / "key-1" / "inc"
    copy.mkdir(parents=True)
    (copy / "stdout.log").write_bytes(b"of the driver\n")
    harness.collector()
    wait_until(lambda: len(harness.messages()) == 2, WAIT_S, "both")
    assert set(in_spools(harness.root)) == {"key-1-inc-stdout-0", "key-1-inc-copy-stdout-0"}
    assert {document["job.id"] for document in documents_in(harness.root, "stdout")} == {"nightly"}


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
