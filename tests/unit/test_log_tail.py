"""`job logs` while a job writes: text that comes in pieces is masked as a whole."""

import base64
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.cli.job.log_files import Tail
from spark_runner.runners.base import LogFile

LINES = [
    base64.b64encode(f"line {number} of the key, which is none".encode()).decode() for number in range(8)
]
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"])
TEXT = f"before\n{KEY}\nbehind\n"


def shown(path: Path, pieces: list[str]) -> str:
    """The printed text of a log that grows by these pieces."""
    path.touch()
    with ExitStack() as stack, path.open("a", encoding="utf-8") as log:
        tail, said = Tail(stack, LogFile("some", "stdout", path)), b""
        for piece in pieces:
            log.write(piece)
            log.flush()
            said += b"".join(tail.chunks())
        return (said + tail.rest()).decode()


@pytest.mark.parametrize("size", [1, 7, 40, 100, 300])
def test_a_private_key_that_comes_in_pieces_is_masked(tmp_path: Path, size: int) -> None:
    pieces = [TEXT[start : start + size] for start in range(0, len(TEXT), size)]
    assert shown(tmp_path / "stdout.log", pieces) == "before\n***\nbehind\n"


def test_one_that_never_ends_is_masked_and_hides_nothing_for_long(tmp_path: Path) -> None:
    cut = TEXT.partition("-----END")[0]
    assert shown(tmp_path / "a.log", [cut]) == "before\n***"
    said = shown(tmp_path / "b.log", [cut, *(f"line {number}\n" for number in range(3_000))])
    assert "line 2999\n" in said
    assert not [line for line in LINES if line in said]


def test_other_lines_are_shown_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    path.write_text("-----BEGIN CERTIFICATE-----\nabc\n")
    with ExitStack() as stack:
        assert b"".join(Tail(stack, LogFile("some", "stdout", path)).chunks()) == path.read_bytes()
