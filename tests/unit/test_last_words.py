"""The last lines on stderr of a program that ends with an exit code are in its error."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_runner.driver.last_words import LastWords
from spark_runner.driver.outcome import of_exit
from spark_runner.protocol.redacted import add_secrets
from tests.unit.test_spark_log import ECS, line


@pytest.fixture
def stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The log of stderr; tests/integration/test_job_life.py covers the stream itself."""
    path = tmp_path / "stderr.log"
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    monkeypatch.setattr("spark_runner.driver.last_words._STDERR", path)
    yield log
    os.close(log)


def message(last_words: LastWords, code: object = 2) -> str:
    ended, _ = of_exit(SystemExit(code), last_words)
    return str(ended["error"]["message"])


def test_the_message_begins_with_the_last_line_and_has_those_before_it(stderr: int) -> None:
    os.write(stderr, b"of the driver, before the program\n")
    last_words = LastWords()
    os.write(stderr, b"usage: job.py [-h] --country COUNTRY\n\njob.py: error: --country is required\n")
    assert message(last_words) == (
        "the program exited with code 2: job.py: error: --country is required\n"
        "its last lines on stderr:\n"
        "  usage: job.py [-h] --country COUNTRY\n"
        "  job.py: error: --country is required"
    )


def test_a_silent_program_has_its_exit_code_alone_and_own_words_are_enough(stderr: int) -> None:
    os.write(stderr, b"of the driver\n")
    last_words = LastWords()
    assert message(last_words) == "the program exited with code 2"
    os.write(stderr, b"a line\n")
    assert message(last_words) == "the program exited with code 2: a line"
    assert message(last_words, "no rows today") == "no rows today"


def test_the_events_of_spark_in_a_shared_stderr_are_left_out(stderr: int) -> None:
    last_words = LastWords()
    os.write(stderr, line() + ECS[0] + b"half a line" + line())
    assert last_words.lines() == [ECS[0].decode().rstrip(), "half a line"]


def test_the_lines_are_bounded_and_a_secret_is_masked_before_any_cut(stderr: int) -> None:
    add_secrets(["5e1f-" * 50])
    last_words = LastWords()
    for _ in range(1000):
        os.write(stderr, b"x" * 290 + b"5e1f-" * 50 + b"y" * 5_000 + b"\n")
    text = message(last_words)
    assert "5e1f" not in text
    assert len(text) < 4_000
    assert len(text.splitlines()) <= 7


def test_a_log_that_was_cut_meanwhile_is_read_from_its_beginning(stderr: int) -> None:
    os.write(stderr, b"x" * 1_000)
    last_words = LastWords()
    os.ftruncate(stderr, 0)
    os.write(stderr, b"after the cut\n")
    assert last_words.lines() == ["after the cut"]


def test_a_pipe_cannot_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("spark_runner.driver.last_words._STDERR", tmp_path / "pipe")
    assert message(LastWords()) == "the program exited with code 2"
