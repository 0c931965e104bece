"""An actor as its controller sees it: a process with a command stream, a proxy and a session file."""

import json
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.chaos.damage import Credentials
from tests.chaos.history import SUFFIX
from tests.chaos.proxy import FaultProxy

STOP_COMMAND = "stop"
"""The actor finishes its claims, closes its session and exits with 0."""

_STOP_TIMEOUT_S = 60


class ActorProcess:
    """Starts `command`; the process reads commands from its standard input. A context manager.

    All its files are in `folder`: `<name>.jsonl`, its history; `<name>.session`, the credentials of its
    session; `<name>.log`, its output.
    """

    def __init__(self, name: str, folder: Path, proxy: FaultProxy, command: Sequence[str]) -> None:
        self.name = name
        self.folder = folder
        self._proxy = proxy
        self._command = tuple(command)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def session_file(self) -> Path:
        """File with the credentials of the session."""
        return self.folder / f"{self.name}.session"

    @property
    def history_file(self) -> Path:
        """File with the history of the actor."""
        return self.folder / f"{self.name}{SUFFIX}"

    @property
    def proxy(self) -> FaultProxy:
        """The only connection of this actor to ZooKeeper."""
        return self._proxy

    @property
    def pid(self) -> int:
        """Id of the current process, or of the last one."""
        return self._running().pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last process; None while it runs."""
        return self._running().poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process by its handle; does nothing after its end."""
        self._running().send_signal(number)

    def send_command(self, line: str) -> None:
        """Write a line to the stdin of the process; raises BrokenPipeError when it has ended."""
        control = self._running().stdin
        assert control is not None  # for mypy: Popen below opens a pipe
        control.write(f"{line}\n")
        control.flush()

    def restart(self) -> None:
        """Kill the process if it runs, and start it again."""
        self._end()
        self.session_file.unlink(missing_ok=True)
        with (self.folder / f"{self.name}.log").open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True
            )

    def credentials(self) -> Credentials | None:
        """The last session that the process wrote; None before the first."""
        try:
            written = json.loads(self.session_file.read_text("utf-8"))
        except FileNotFoundError:
            return None
        return Credentials(written["session"], bytes.fromhex(written["password"]))

    def stop(self) -> int:
        """Ask the process to stop and return its exit code."""
        self.send_command(STOP_COMMAND)
        return self._running().wait(_STOP_TIMEOUT_S)

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None  # for mypy: Popen opened a pipe
            with suppress(BrokenPipeError):  # a command was not read
                self._process.stdin.close()
