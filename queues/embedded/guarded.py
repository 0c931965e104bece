"""The owner's side of a guarded process."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

GUARD = Path(__file__).with_name("guard.py")

GRACE_S = 5.0
"""ZooKeeper ends 0.1 s after TERM; a server that takes longer is stuck, and its log survives a KILL."""

GUARD_MARGIN_S = 5.0
"""The wait for the guard beyond the grace, before it is killed, and the program with it."""


class GuardedProcess:
    """A program in its own process session that ends with this process, regardless of how this one ends.

    A terminal's Ctrl-C does not reach it. `keep`: file descriptors that it holds open while it lives.
    `environment`: variables that extend or override this process's own. `umask` -1: this process's umask.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        output: IO[bytes],
        keep: Sequence[int] = (),
        *,
        environment: Mapping[str, str] | None = None,
        umask: int = -1,
    ) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(GRACE_S), *command],
            cwd=cwd,
            # File names in UTF-8 in any locale (Java finds no "ü" in LC_ALL=C), messages in English.
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            pass_fds=keep,
            start_new_session=True,
            umask=umask,
        )
        assert self._guard.stdout is not None  # noqa: S101 - for mypy: asked for above
        with self._guard.stdout as answer:
            line = answer.readline()
        self.pid = int(line) if line else None
        """Pid of the program; None when the guard could not even start."""

    @property
    def guard_pid(self) -> int:
        """Pid of the guard."""
        return self._guard.pid

    def exit_code(self) -> int | None:
        """Return the exit code (128 + n after signal n), None while the program runs."""
        return self._guard.poll()

    def kill(self) -> None:
        """Kill the program as a crash would, and wait until it is gone."""
        if self.pid is not None and self.exit_code() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Terminate the program, kill it after a while, and return when it is gone."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        # A forked child of this process may hold a copy of the pipe's end: send a signal too.
        self._guard.terminate()
        try:
            self._guard.wait(GRACE_S + GUARD_MARGIN_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()
