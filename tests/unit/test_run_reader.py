"""Pages of the logs of a run: each line once, in order, whole, and with its secrets masked."""

import base64
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.driver_logs.read_times import ReadTimes
from orchestrator.driver_logs.run_reader import RunReader
from orchestrator.logs.reading.origin import Origin
from orchestrator.logs.reading.query import LogQuery, LogRecord, query_of
from orchestrator.logs.record.redaction import REDACTOR
from spark_runner.protocol.log_limit import limit_log
from spark_runner.runners.base import LogFile
from spark_runner.runners.run_directory import RunDirectory, log_files

RUN = "6fa459ea-ee8a-3ca4-894e-db77e160355e-1"
EVERYTHING = LogQuery()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The directory of a run."""
    path = tmp_path / "state" / "runs" / RUN / "some"
    path.mkdir(parents=True)
    return path


def reader(run: Path, *, is_mixed: bool = False) -> RunReader:
    logs = log_files(RunDirectory(run))
    if is_mixed:
        logs = [type(log)(log.incarnation, log.stream, log.path, is_mixed=True) for log in logs]
    return RunReader(RUN, logs, run.parents[2])


def pages(
    run: Path, query: LogQuery = EVERYTHING, *, flush: bool = True, max_bytes: int = 1 << 20
) -> Iterator[LogRecord]:
    cursor: dict[str, int] = {}
    while True:
        page = reader(run).page(cursor, query, flush=flush, max_bytes=max_bytes)
        yield from page.records
        cursor = dict(page.cursor)
        if not page.is_full:
            return


def text(records: Sequence[LogRecord] | Iterator[LogRecord]) -> str:
    """The text of these records, as it was written but for the end of the last line."""
    shown = ""
    for record in records:
        shown += record.text("error.stack_trace").rstrip("\n") or record.message
        shown += "" if record.is_part else "\n"
    return shown


def event(second: int, level: str = "INFO", message: str = "an event") -> str:
    document = {
        "@timestamp": f"2026-03-01T10:00:{second:02}.000Z",
        "log.level": level,
        "log.logger": "org.apache.spark.X",
        "process.thread.name": "main",
        "message": message,
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


# ---------------------------------------------------------------------- secrets
LINES = [
    base64.b64encode(f"line {number} of the key, which is none".encode()).decode() for number in range(8)
]
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"])
TEXT = f"before\n{KEY}\nbehind\n"


def shown(path: Path, pieces: list[str]) -> str:
    """The text of a log that grows by these pieces; it is read in between, after a pause of its writer."""
    path.touch()
    found, cursor = list[LogRecord](), dict[str, int]()
    for last, piece in [*((False, piece) for piece in pieces), (True, "")]:
        with path.open("a", encoding="utf-8") as log:
            log.write(piece)
        os.utime(path, (1.7e9, 1.7e9))
        page = reader(path.parent).page(cursor, EVERYTHING, flush=last, max_bytes=1 << 20)
        found += page.records
        cursor = dict(page.cursor)
    return text(found)


@pytest.mark.parametrize("size", [1, 7, 40, 100, 300])
def test_a_private_key_that_comes_in_pieces_is_masked(run: Path, size: int) -> None:
    pieces = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
    assert shown(run / "stdout.log", pieces) == "before\n***\nbehind\n"


def test_one_that_never_ends_is_masked_and_hides_nothing_for_long(run: Path) -> None:
    cut = TEXT.partition("-----END")[0]
    assert shown(run / "stdout.log", [cut]) == "before\n***\n"
    after = "".join(f"line {number}\n" for number in range(3_000))
    said = shown(
        run / "stderr.log", [cut, *(after[start : start + 500] for start in range(0, len(after), 500))]
    )
    assert "line 2999\n" in said
    assert not [line for line in LINES if line in said]


def test_a_secret_of_the_job_is_masked_in_its_output_and_in_events_that_escape_it(run: Path) -> None:
    (run / "secrets.json").write_text(json.dumps({"values": ['hun"ter\\two']}))
    (run / "stdout.log").write_text('it is hun"ter\\two\n')
    (run / "spark.log").write_text(event(1, message='it is hun"ter\\two'))
    assert [record.message for record in pages(run)] == ["it is ***", "it is ***"]


def test_no_secret_shows_because_a_long_line_is_cut_into_records(run: Path) -> None:
    value = "qwertz-0123456789-asdfgh"
    REDACTOR.add_of_job([value])
    for shift in range(0, 60, 7):
        (run / "stdout.log").write_text("x" * (32 * 1024 - 30 - shift) + f" {value} " * 20 + "y" * 70_000)
        said = text(pages(run, max_bytes=1))
        assert said.count("***") == 20
        assert "qwertz" not in said
        assert "asdfgh" not in said


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_secret_shows_because_a_line_is_longer_than_what_is_read_at_once(
    run: Path, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.driver_logs.run_reader.CHUNK_BYTES", 200_000)
    values = [f"qwertz-{number:05}-asdfgh" for number in range(20)]
    (run / "secrets.json").write_text(json.dumps({"values": values}))
    (run / f"{stream}.log").write_text(" ".join(values) + " " + " ".join(values * 1_000))
    said = text(pages(run, max_bytes=1 << 20))
    assert "qwertz" not in said
    assert "asdfgh" not in said
    assert said.count("***") == 20 * 1_001


def test_a_private_key_in_the_error_below_a_long_trace_is_masked(run: Path) -> None:
    frame = '  File "a.py", line 1, in f\n    g()\n'
    for frames in range(880, 910, 3):  # the key is where such a record becomes two
        trace = "Traceback (most recent call last):\n" + frame * frames
        (run / "stderr.log").write_text(f"{trace}ValueError: {KEY}\n")
        said = text(pages(run))
        assert not [line for line in LINES if line in said]


# ---------------------------------------------------------------------- each line once
def test_lines_are_held_while_they_are_incomplete(run: Path) -> None:
    (run / "stdout.log").write_text("one\ntwo\nthe last one has no end")
    os.utime(run / "stdout.log", (1.7e9, 1.7e9))
    assert text(pages(run, flush=False)) == "one\ntwo\n"
    assert text(pages(run)) == "one\ntwo\nthe last one has no end\n"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([b"a\n", b"\xff\x00\n", b"no end", b"\n", b"x" * 40_000, b"\r\n", b"\xe4\xb8"])),
    st.integers(1, 5_000),
)
def test_pages_of_any_size_have_each_byte_once(pieces: list[bytes], size: int) -> None:
    with TemporaryDirectory() as folder:
        run = Path(folder) / "state" / "runs" / RUN / "some"
        run.mkdir(parents=True)
        data = b"".join(pieces)
        (run / "stdout.log").write_bytes(data)
        found = list(pages(run, max_bytes=size))
        said = text(found).encode("utf-8", "surrogateescape")
        assert said.rstrip(b"\n") == data.replace(b"\r\n", b"\n").rstrip(b"\n")
        offsets = [int(record.text("event.sequence")) for record in found]
        assert offsets == sorted(set(offsets))


def test_a_trace_is_one_record_and_stays_together(run: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no\n'
    (run / "stderr.log").write_text(f"before\n{trace}behind\n")
    _, middle, _ = pages(run)
    assert middle.text("error.stack_trace") == trace
    assert (middle.message, middle.level) == ("ValueError: no", "error")


def test_a_log_that_is_cut_while_it_is_read_goes_on_where_it_was(run: Path) -> None:
    log = run / "stdout.log"
    lines = [f"line {number:05}\n" for number in range(3_000)]
    log.write_text("".join(lines[:1_000]))
    page = reader(run).page({}, EVERYTHING, flush=False, max_bytes=1_000)
    first = [record.message for record in page.records]
    assert 0 < len(first) < 1_000
    assert limit_log(log, 8_000)
    with log.open("a") as file:
        file.write("".join(lines[1_000:]))
    assert (run / "stdout.log.1").exists()
    rest = list(reader(run).page(page.cursor, EVERYTHING, flush=True, max_bytes=1 << 20).records)
    assert rest[0].message.startswith("… ")
    assert "bytes before this line were cut" in rest[0].message
    numbers = [int(record.message[-5:]) for record in rest[2:]]
    assert numbers == list(range(numbers[0], 3_000))
    assert numbers[0] <= 500, "the older part is read too"


def test_a_copy_that_is_made_again_is_read_from_its_beginning(run: Path) -> None:
    log = run / "stdout.log"
    log.write_text("a long first copy of the log\n")
    page = reader(run).page({}, EVERYTHING, flush=True, max_bytes=1_000)
    log.write_text("the second\n")
    again = reader(run).page(page.cursor, EVERYTHING, flush=True, max_bytes=1_000)
    assert text(again.records) == "the second\n"


def test_a_link_is_not_followed_and_a_pipe_is_not_waited_for(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "private"
    secret.write_text("private\n")
    (run / "stdout.log").symlink_to(secret)
    os.mkfifo(run / "stderr.log")
    assert list(pages(run)) == []


@pytest.mark.parametrize("time", ["inf", "-inf", "nan", "1e300", "-1e300", "1e14"])
def test_no_time_that_a_driver_writes_hides_its_lines(run: Path, time: str) -> None:
    (run / "stdout.log").write_text("a line\n")
    (run / "read-times").write_text(f"stdout 100 {time}\n")
    assert text(pages(run)) == "a line\n"


@pytest.mark.parametrize(
    "document",
    ["[]", '{"values": 5}', '{"values": {"a": 1}}', '{"values": [null, {}]}', '{"values": ["a', ""],
)
def test_damaged_secrets_hide_no_line_and_those_of_the_plan_are_masked(run: Path, document: str) -> None:
    (run / "secrets.json").write_text(document)
    (run / "plan.json").write_text(json.dumps({"secrets": ["hunter-of-the-plan"]}))
    (run / "stdout.log").write_text("it is hunter-of-the-plan\n")
    assert text(pages(run)) == "it is ***\n"


def test_a_run_that_is_removed_while_it_is_read_ends(run: Path) -> None:
    (run / "stdout.log").write_text("one\n" * 1_000)
    found = reader(run)
    page = found.page({}, EVERYTHING, flush=True, max_bytes=500)
    (run / "stdout.log").unlink()
    rest = found.page(page.cursor, EVERYTHING, flush=True, max_bytes=500)
    assert (rest.records, rest.is_full) == ([], False)


# ---------------------------------------------------------------------- order and selection
def test_streams_are_in_the_order_in_which_they_were_written(run: Path) -> None:
    (run / "stdout.log").write_text("out 1\nout 2\n")
    (run / "stderr.log").write_text("err 1\nerr 2\n")
    (run / "spark.log").write_text(event(1) + event(3) + event(5))
    at = 1772359200.0  # 2026-03-01T10:00:00Z
    times = ReadTimes(run)
    for stream, upto, second in (("stdout", 6, 2), ("stderr", 6, 2), ("stdout", 12, 4), ("stderr", 12, 6)):
        times.note(stream, upto, at + second)
    said = [f"{record.origin} {record.message[-1]}" for record in pages(run)]
    assert said == ["spark t", "out 1", "err 1", "spark t", "out 2", "spark t", "err 2"]
    assert [record.message for record in pages(run, max_bytes=1)] == [
        record.message for record in pages(run)
    ], "pages of any size have the same order"


def test_times_take_little_space_and_keep_the_order(run: Path) -> None:
    times = ReadTimes(run)
    for number in range(10_000):
        times.note("stdout", 10 * number, 1.7e9 + number)
    assert (run / "read-times").stat().st_size <= 64 * 1024
    assert not list(run.glob("*.tmp"))


def test_the_usual_view_has_warnings_of_spark_and_all_that_the_program_prints(run: Path) -> None:
    (run / "stdout.log").write_text("26/03/01 10:00:00 INFO Mine: of the program\n")
    (run / "stderr.log").write_text(
        'Setting default log level to "WARN".\n'
        "WARNING: Using incubator modules: jdk.incubator.vector\n"
        "26/03/01 10:00:00 INFO SparkContext: quiet\n"
        "26/03/01 10:00:00 WARN NativeCodeLoader: loud\n"
        "WARNING:root:of the program\n"
    )
    (run / "spark.log").write_text(event(1) + event(2, "WARN", "a warning"))
    found = [(record.origin, record.message) for record in pages(run, query_of())]
    assert sorted(found) == [
        (Origin.ERR, "WARNING:root:of the program"),
        (Origin.OUT, "26/03/01 10:00:00 INFO Mine: of the program"),
        (Origin.SPARK, "26/03/01 10:00:00 WARN NativeCodeLoader: loud"),
        (Origin.SPARK, "a warning"),
    ]
    assert len(list(pages(run, query_of(spark=True)))) == 8
    assert {record.origin for record in pages(run, query_of(streams=["stderr"]))} == {Origin.ERR}
    assert len(list(pages(run, query_of(streams=["spark"])))) == 6
    assert [record.message for record in pages(run, query_of(level="warning"))].count("an event") == 0


@pytest.mark.parametrize("size", [5, 30, 100, 150, 190])
def test_no_json_shows_where_a_log_was_cut(run: Path, size: int) -> None:
    whole = event(1, "WARN", "the whole one")
    for name in ("spark.log", "stderr.log"):
        log = run / name
        log.write_text(event(0, "WARN") * 40 + whole + event(2, "ERROR", "the killed one")[:size])
        assert limit_log(log, 10 * len(whole) + size)  # cuts in the middle of an event
    records = list(pages(run))
    assert {"@timestamp", "log.logger"} & {
        word for each in records for word in each.message.split('"')
    } == set()
    assert {record.origin for record in records if "bytes before" not in record.message} == {Origin.SPARK}
    assert [record.message for record in records].count("the whole one") == 2


def test_events_in_the_log_of_a_pod_are_sparks(run: Path) -> None:
    (run / "stdout.log").write_text("printed\n" + event(1, "WARN", "one"))
    page = reader(run, is_mixed=True).page({}, EVERYTHING, flush=True, max_bytes=1 << 20)
    assert {(record.origin, record.message) for record in page.records} == {
        (Origin.OUT, "printed"),
        (Origin.SPARK, "one"),
    }
    assert [record.origin for record in pages(run)] == [Origin.OUT, Origin.OUT], "elsewhere it is output"


def test_a_search_through_a_large_log_comes_in_bounded_pages(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.driver_logs.run_reader._MAX_SCANNED_BYTES", 1 << 20)
    (run / "spark.log").write_text(event(1) * 20_000 + event(2, "WARN", "found"))
    (run / "stdout.log").write_text("late\n")
    page = reader(run).page({}, query_of(), flush=True, max_bytes=1 << 20)
    assert (page.records, page.is_full) == ([], True), "the order is kept: what is printed comes later"
    assert [record.message for record in pages(run, query_of())] == ["found", "late"]


def test_the_logs_of_many_executors_come_whole_and_in_bounded_pages(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.driver_logs.run_reader._MAX_SCANNED_BYTES", 200_000)
    logs = list[LogFile]()
    for number in range(10):
        path = run.parents[2] / "logs" / RUN / f"some.executor-{number}" / "stdout.log"
        path.parent.mkdir(parents=True)
        path.write_text(f"{'x' * 990}\n" * 100)
        logs.append(LogFile("some", "stdout", path, str(number)))
    lines, cursor, is_full = 0, dict[str, int](), True
    while is_full:
        page = RunReader(RUN, logs, run.parents[2]).page(cursor, EVERYTHING, flush=True, max_bytes=1 << 20)
        assert page.records, "each page has more"
        lines, cursor, is_full = lines + len(page.records), dict(page.cursor), page.is_full
    assert lines == 10 * 100
