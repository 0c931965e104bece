"""A pseudo-terminal for one command: reads its output and types keys."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

# Makes the terminal on stdin the controlling one, so that its Ctrl-C becomes SIGINT for the whole group.
_TAKE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HIDE_CURSOR = "\x1b[?25l"


class Terminal:
    """Runs a command on its own terminal, in its own session. A context manager."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        *,
        columns: int = 120,
        term: str = "xterm-256color",
    ) -> None:
        self._keyboard, end = pty.openpty()
        os.set_blocking(self._keyboard, False)
        self._seen = b""
        self._is_closed = False
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _TAKE_TERMINAL, *command],
                cwd=directory,
                env={**environment, "TERM": term, "COLUMNS": str(columns)},
                stdin=end,
                stdout=end,
                stderr=end,
                start_new_session=True,
            )
        finally:
            os.close(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._keyboard)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def type(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def exit_code(self) -> int:
        return self._process.wait(30)

    @property
    def is_closed(self) -> bool:
        """Whether the last program on the terminal has ended."""
        self._read()
        return self._is_closed

    def raw(self) -> str:
        """The complete output."""
        self._read()
        return self._seen.decode("utf-8", errors="replace")

    def text(self) -> str:
        """The output without colours and cursor movements."""
        return _CONTROL.sub("", self.raw())

    def _read(self) -> None:
        while not self._is_closed:
            try:
                seen = os.read(self._keyboard, 1 << 16)
            except BlockingIOError:
                return
            except OSError:  # EIO: the other end is closed
                seen = b""
            self._seen += seen
            self._is_closed = not seen
