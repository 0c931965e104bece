"""A log that is cut while it is read is one sequence for its reader."""

import os
from pathlib import Path

import pytest

from orchestrator.driver_logs.stream import CutLog, LogSlice
from spark_runner.protocol.log_limit import CUT, OLDER, limit_log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stdout.log"


def grow(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def read(path: Path, offset: int, size: int = 1000) -> LogSlice | None:
    return CutLog(path).read(offset, size, ended=False)


def test_data_that_was_cut_is_read_from_the_older_part(path: Path) -> None:
    grow(path, b"0123456789")
    assert read(path, 4) == LogSlice(4, b"456789")
    assert limit_log(path, 8)
    grow(path, b"abc")
    assert read(path, 4) == LogSlice(4, b"456789abc")
    assert read(path, 4, 3) == LogSlice(4, b"456")
    assert read(path, 10) == LogSlice(10, b"abc")
    assert read(path, 0) == LogSlice(2, b"23456789abc"), "the first bytes are nowhere any more"
    grow(path, b"defghijk")
    assert limit_log(path, 8)
    assert read(path, 10) == LogSlice(13, b"defghijk")
    assert read(path, 21) == LogSlice(21, b"")


def test_without_an_older_part_reading_continues_with_the_rest(path: Path) -> None:
    grow(path, b"0123456789")
    Path(f"{path}{OLDER}").mkdir()
    assert limit_log(path, 8)
    grow(path, b"abc")
    assert read(path, 4) == LogSlice(10, b"abc")


def test_a_log_that_is_being_cut_is_read_later_or_when_its_driver_has_ended(path: Path) -> None:
    grow(path, b"0123456789")
    Path(f"{path}{CUT}").write_text('{"total": 0, "older_end": 0, "pending": 10}', "ascii")
    assert read(path, 4) is None
    assert CutLog(path).read(4, 1000, ended=True) == LogSlice(4, b"456789"), "it was not cut"
    os.truncate(path, 0)
    grow(path, b"ab")
    assert CutLog(path).read(4, 1000, ended=True) == LogSlice(10, b"ab"), "it was, without a note"


def test_a_log_that_is_not_there_is_empty(path: Path) -> None:
    assert read(path, 0) == LogSlice(0, b"")


NOT_A_CUT = [
    "",
    "[1, 2]",
    '{"total": "5"}',
    '{"total": -5}',
    '{"total": 1.5}',
    '{"total": 1e400}',
    '{"total": null}',
    '{"pending": true}',
    '{"older_end": 99999999999999999999}',
    "[" * 100_000,
    " " * 100_000 + "{}",
]


@pytest.mark.parametrize("text", NOT_A_CUT)
def test_a_note_that_is_none_changes_nothing(path: Path, text: str) -> None:
    grow(path, b"0123456789")
    Path(f"{path}{CUT}").write_text(text, "ascii")
    assert read(path, 4) == LogSlice(4, b"456789")


def test_a_pipe_or_an_endless_file_in_place_of_a_note_is_not_waited_for(path: Path) -> None:
    grow(path, b"0123456789")
    note = Path(f"{path}{CUT}")
    os.mkfifo(note)
    assert read(path, 4) == LogSlice(4, b"456789")
    note.unlink()
    note.symlink_to("/dev/zero")
    assert read(path, 4) == LogSlice(4, b"456789")
