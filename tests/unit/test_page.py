"""`--watch` on a terminal and in a pipe."""

import io
import sys
import threading

import pytest

from orchestrator.cli.page import repeat
from queues import Unreachable

HOME = "\x1b[H\x1b[J"


class OneTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def pages(self) -> list[list[str]]:
        """What was on the screen, page after page."""
        return [page.splitlines() for page in self.getvalue().split(HOME)[1:]]


def one_terminal(monkeypatch: pytest.MonkeyPatch) -> OneTerminal:
    """The terminal of a test; a fixture cannot set it, because pytest sets stdout again before the test."""
    made = OneTerminal()
    monkeypatch.setattr(sys, "stdout", made)
    for name, value in {"TERM": "xterm", "COLUMNS": "40", "LINES": "6"}.items():
        monkeypatch.setenv(name, value)
    return made


class Looks:
    """Prints or raises one after the other, then ends as by Ctrl-C."""

    def __init__(self, *looks: str | Exception) -> None:
        self._left = list(looks)

    def __call__(self) -> None:
        if not self._left:
            raise KeyboardInterrupt
        look = self._left.pop(0)
        if isinstance(look, Exception):
            raise look
        sys.stdout.write(f"{look}\n")


def watched(looks: Looks) -> None:
    with pytest.raises(KeyboardInterrupt):
        repeat(looks, 0.001)


def test_a_page_stays_until_the_next_one_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = one_terminal(monkeypatch)
    seen = list[str]()

    def show() -> None:
        sys.stdout.write("a word\n")
        seen.append(terminal.getvalue())
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeat(show, 0.001)
    page = f"{HOME}a word\n"
    assert seen == ["\x1b[2J", f"\x1b[2J{page}", f"\x1b[2J{page}{page}"]


def test_a_page_keeps_its_head_and_counts_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = one_terminal(monkeypatch)
    watched(Looks("head\n----\n1\n2\n3", "head\n----\n" + "\n".join(map(str, range(1, 41)))))
    assert terminal.pages() == [
        ["head", "----", "1", "2", "3"],
        ["head", "----", "1", "2", "and 38 more"],
    ]


def test_a_line_that_the_terminal_folds_counts_as_several(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = one_terminal(monkeypatch)
    watched(Looks("head\n" + "\x1b[1m" + "x" * 90 + "\x1b[0m\n1\n2\n3"))
    assert terminal.pages() == [["head", "\x1b[1m" + "x" * 90 + "\x1b[0m", "and 3 more"]]


def test_a_lost_connection_is_one_line_and_the_watch_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = one_terminal(monkeypatch)
    lost = Unreachable("127.0.0.1:2181", 30)
    watched(Looks("head\n1\n2\n3\n4", lost, "head\n1"))
    error = "error: ZooKeeper at 127.0.0.1:2181 did…"
    assert terminal.pages() == [
        ["head", "1", "2", "3", "4"],
        ["head", "1", "2", "and 2 more", error],
        ["head", "1"],
    ]


def test_the_first_page_fails_as_without_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = one_terminal(monkeypatch)
    with pytest.raises(Unreachable):
        repeat(Looks(Unreachable("x", 1)), 1.0)
    with pytest.raises(LookupError):
        repeat(Looks("head", LookupError("gone")), 0.001)
    assert terminal.pages() == [["head"]]


def test_a_pipe_gets_page_after_page_and_the_errors_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    watched(Looks("one", Unreachable("h:1", 30), "two"))
    seen = capsys.readouterr()
    assert seen.out == "one\ntwo\n"
    assert seen.err.startswith("error: ZooKeeper at h:1 did not answer")
    assert seen.err.count("\n") == 1


def test_a_dumb_terminal_gets_no_control_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = one_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    watched(Looks("one", "two"))
    assert terminal.getvalue() == "one\ntwo\n"


def test_a_late_page_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = one_terminal(monkeypatch)
    monkeypatch.setattr("orchestrator.cli.page._LATE_SECONDS", 0.01)
    announced = threading.Event()
    write = terminal.write

    def noticed(text: str) -> int:
        if "no answer yet" in text:
            announced.set()
        return write(text)

    monkeypatch.setattr(terminal, "write", noticed)

    def show() -> None:
        assert announced.wait(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeat(show, 1.0)
