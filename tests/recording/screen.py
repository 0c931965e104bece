"""Two terminals above each other, as one recording: the upper one has a command that repeats its page."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.recording.cast import LINE, Recording, plain

_QUIET_S = 0.2  # without output: the page is complete
NEW_PAGE = "\x1b[H\x1b[J"
"""What `--watch` writes before each page."""
_TAKE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Screen:
    """Runs the upper command on a pseudo-terminal, and others below it. A context manager.

    `shown` replaces what no recording may have, such as the name of the host, by texts of the same length.
    """

    def __init__(
        self,
        recording: Recording,
        lower_rows: int,
        command: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        shown: Callable[[str], str],
    ) -> None:
        self._recording, self._rows = recording, recording.rows - lower_rows
        self._directory, self._shown, self._lower_rows, self._page = directory, shown, lower_rows, ""
        size = struct.pack("HHHH", self._rows, recording.columns, 0, 0)
        self._environment = {**environment, "TERM": "xterm-256color"}
        self._terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, size)
        try:
            self._process = subprocess.Popen(
                [command[0], "-c", _TAKE_TERMINAL, *command],
                cwd=directory,
                env=self._environment,
                stdin=end,
                stdout=end,
                stderr=end,
                start_new_session=True,
            )
        finally:
            os.close(end)
        self.pages = list[str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        os.close(self._terminal)

    def watch(self, is_enough: Callable[[list[str]], bool], timeout: float) -> None:
        """Record pages until the new ones are enough; raises TimeoutError, and EOFError at its end."""
        first, ends = len(self.pages), time.monotonic() + timeout
        while not is_enough(self.pages[first:]):
            if time.monotonic() > ends:
                last = "".join(self.pages[-1:])
                raise TimeoutError(f"the pages are not as they should be; the last one:\n{last}")
            self._look()

    def _look(self) -> None:
        """Record what comes until it is quiet."""
        text = self._shown(self._read())
        _, is_new, page = text.rpartition(NEW_PAGE)
        self._page = page if is_new else self._page + text
        lines = self._page.splitlines()[-self._rows :]  # it scrolls if it has more
        if is_new:
            self.pages.append(plain("\n".join(lines)))
        self._recording.draw(lines + [""] * (self._rows - len(lines)), 1)

    def type(self, words: Sequence[str], program: Sequence[str]) -> str:
        """Type a command into the lower terminal, run it to its end, and show its output; returns that."""
        for number in range(1, len(words) + 1):
            self._show_below([f"$ {' '.join(words[:number])}"])
            self._look()  # which takes a moment, as a user does
        with subprocess.Popen(
            [*program, *words[1:]],
            cwd=self._directory,
            env={**self._environment, "COLUMNS": str(self._recording.columns)},
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            while running.poll() is None:
                self._look()
            assert running.stdout is not None
            output = running.stdout.read()
        if running.returncode:
            raise RuntimeError(f"{' '.join(words)} failed with {running.returncode}")
        self._show_below([f"$ {' '.join(words)}", *map(str.rstrip, self._shown(output).splitlines())])
        return output

    def _show_below(self, lines: list[str]) -> None:
        self._recording.draw([LINE, *lines, *[""] * (self._lower_rows - 1 - len(lines))], self._rows + 1)

    def _read(self) -> str:
        """What comes until it is quiet; raises EOFError at the end."""
        found = b""
        while select.select([self._terminal], [], [], _QUIET_S)[0]:
            try:
                more = os.read(self._terminal, 1 << 16)
            except OSError:  # EIO: the other end is closed
                more = b""
            if not more:
                raise EOFError(f"the command has ended: {found.decode('utf-8', 'replace')[-2000:]}")
            found += more
        return found.decode("utf-8", "replace")
