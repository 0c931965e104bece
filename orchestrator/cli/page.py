"""`--watch`: a page that is shown again and again, and fits the screen of a terminal."""

import contextlib
import io
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from orchestrator.cli.folding import say
from orchestrator.cli.grid import cut, width
from orchestrator.client.progress import one_line
from queues import OutcomeUnknown, SessionLost, Unreachable

_LATE_SECONDS = 3.0  # an answer that takes longer is reported
_CLEAR, _HOME, _ERASE_BELOW, _ERASE_LINE = "\x1b[2J", "\x1b[H", "\x1b[J", "\r\x1b[K"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LOST = (Unreachable, SessionLost, OutcomeUnknown)


def repeat(show: Callable[[], None], seconds: float | None) -> None:
    """Show once, or every `seconds` until interrupted.

    After the first page an error of the connection is one line, and the next page is tried.
    """
    if seconds is None:
        show()
    elif sys.stdout.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}:
        _redraw(show, seconds)
    else:
        _print_again(show, seconds)


def _print_again(show: Callable[[], None], seconds: float) -> None:
    is_first = True
    while True:
        try:
            show()
        except _LOST as error:
            if is_first:
                raise
            say(f"error: {one_line(error)}")
        is_first = False
        sys.stdout.flush()
        time.sleep(seconds)


def _redraw(show: Callable[[], None], seconds: float) -> None:
    lines, terminal = list[str](), sys.stdout
    terminal.write(_CLEAR)
    while True:
        try:
            with _reported_if_late(terminal):
                lines, notice = _page(show), ""
        except _LOST as error:
            if not lines:
                raise
            notice = f"error: {one_line(error)}"
        terminal.write(_HOME + _ERASE_BELOW + _fitted(lines, notice))
        terminal.flush()
        time.sleep(seconds)


class _Page(io.StringIO):
    """What a terminal shows next."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # that of the terminal, which may have no lines for tables
        return sys.__stdout__.encoding if sys.__stdout__ else "utf-8"

    def isatty(self) -> bool:
        return True


def _page(show: Callable[[], None]) -> list[str]:
    page = _Page()  # the terminal is not empty while ZooKeeper is asked
    with contextlib.redirect_stdout(page):
        show()
    return page.getvalue().splitlines()


def _fitted(lines: Sequence[str], notice: str) -> str:
    """The first lines, as many as the screen has, the number of the others, and the notice."""
    columns, rows = shutil.get_terminal_size()
    below = [cut(notice, columns)] if notice else []
    room = rows - 1 - len(below)  # the cursor takes the last row
    sizes = [max(1, -(-width(_CONTROL.sub("", line)) // columns)) for line in lines]
    shown = len(lines)
    if sum(sizes) > room:
        shown = used = 0
        while used + sizes[shown] < room:  # one row is for the number of the others
            used += sizes[shown]
            shown += 1
        below.insert(0, f"and {len(lines) - shown:,} more")
    return "".join(f"{line}\n" for line in [*lines[:shown], *below])


@contextlib.contextmanager
def _reported_if_late(terminal: TextIO) -> Iterator[None]:
    """Write a line below the page if the next one takes long: the shown one may be outdated."""

    def report() -> None:
        columns, _ = shutil.get_terminal_size()
        terminal.write(_ERASE_LINE + cut("no answer yet; this page may be outdated", columns - 1))
        terminal.flush()

    timer = threading.Timer(_LATE_SECONDS, report)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
