"""A log that is read as it grows: the records of each read."""

from pathlib import Path

import pytest

from orchestrator.driver_logs import stream as stream_module
from orchestrator.driver_logs.positions import Chunk, Positions
from orchestrator.driver_logs.stream import CHUNK_BYTES, LogTail
from orchestrator.logs.record.redaction import Redactor
from tests.unit.test_driver_log_records import JAVA

CUT_AT = Redactor().cut_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stderr.log"


def grow(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def taken(stream: LogTail, *, ended: bool = False, flush: bool = False) -> list[bytes]:
    found = stream.next(ended=ended, flush=flush)
    if found is None:
        return []
    stream.at = found.upto
    return [record.data for record in found.records]


def test_a_trace_that_is_written_slowly_is_not_taken_apart(path: Path) -> None:
    stream = LogTail(path, "stderr", Chunk(), cut_at=CUT_AT)
    grow(path, b"before\n")
    for part in JAVA.splitlines(keepends=True):
        grow(path, part)
        assert taken(stream) in ([], [b"before\n"])
        assert taken(stream) == [], "it has not grown, but only for a moment"
    grow(path, b"after\n")
    assert taken(stream) == [JAVA]


def test_the_last_line_comes_when_the_log_has_not_grown_for_a_while(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = LogTail(path, "stderr", Chunk(), cut_at=CUT_AT)
    grow(path, b"one\ntwo\nthr")
    assert taken(stream) == [b"one\n"]
    assert taken(stream) == []
    monkeypatch.setattr(stream_module, "_HOLD_SECONDS", 0.0)
    assert taken(stream) == [b"two\n"]
    assert taken(stream) == [], "a line without its end waits"
    assert taken(stream, flush=True) == []
    assert taken(stream, ended=True) == [b"thr"]
    assert taken(stream, ended=True) == []


def test_a_log_longer_than_a_chunk_is_taken_in_chunks(path: Path) -> None:
    line = b"x" * 1000 + b"\n"
    count = 2 * CHUNK_BYTES // len(line)
    grow(path, line * count)
    stream, looks, lines = LogTail(path, "stderr", Chunk(), cut_at=CUT_AT), 0, 0
    while found := taken(stream, ended=True):
        looks, lines = looks + 1, lines + len(found)
        assert set(found) == {line}
    assert (looks, lines) == (3, count)


def test_records_that_were_not_accepted_are_read_again(path: Path) -> None:
    grow(path, b"one\ntwo\n")
    stream = LogTail(path, "stderr", Chunk(), cut_at=CUT_AT)
    first = stream.next(ended=True, flush=False)
    stream.rewind()
    assert stream.next(ended=True, flush=False) == first


def test_a_copy_that_slides_is_left_alone(path: Path) -> None:
    grow(path, b"one\ntwo\n")
    assert taken(LogTail(path, "stderr", Chunk(), cut_at=CUT_AT, sliding=8), ended=True) == []
    assert taken(LogTail(path, "stderr", Chunk(), cut_at=CUT_AT, sliding=9), ended=True) == [
        b"one\n",
        b"two\n",
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"done": true}', '{"done": true, "streams": {"a": {"b": 1}}}']
)
def test_positions_that_cannot_be_read_begin_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "collected.json").write_text(text, "ascii")
    positions = Positions(tmp_path)
    assert (positions.chunk("stdout"), positions.is_done) == (Chunk(), False)


def test_positions_outlive_their_process(tmp_path: Path) -> None:
    positions = Positions(tmp_path)
    positions.commit("stdout", 7)
    positions.announce("stderr", Chunk(3, 9, 1.5))
    again = Positions(tmp_path)
    assert (again.chunk("stdout"), again.chunk("stderr")) == (Chunk(7, 7), Chunk(3, 9, 1.5))
    again.finish()
    assert Positions(tmp_path).is_done
