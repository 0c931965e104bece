"""Starts commands as forks of an interpreter that has loaded their modules.

Loading Python and the program takes half a second of processor time, a fork a hundredth of that. All else is
as in a new interpreter: arguments, environment, directory, files, signals, exit code.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.jobs_support import ENVIRONMENT_MARK

PROJECT = Path(__file__).parents[2]
START_TIMEOUT_S = 60
READY = b"ready\n"


class ForkServer:
    """Requests commands from the process of `fork_server_process`; several may run at once."""

    def __init__(self, address: str) -> None:
        self._address = address

    def type(
        self, arguments: Sequence[str], *, directory: Path, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Run a command to its end; returns exit code (-N after signal N), stdout and stderr."""
        request = {"arguments": list(arguments), "directory": str(directory), "environment": {**environment}}
        with (
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
            socket.socket(socket.AF_UNIX) as asked,
        ):
            asked.settimeout(timeout)
            asked.connect(self._address)
            socket.send_fds(asked, [b"x"], [stdout.fileno(), stderr.fileno()])
            asked.sendall(json.dumps(request).encode() + b"\n")
            try:
                answer = asked.makefile("rb").readline()
            except TimeoutError as error:  # the server ends the command when the connection closes
                raise subprocess.TimeoutExpired(list(arguments), timeout) from error
            assert answer, f"the fork server has ended: {arguments}"
            return int(answer), _text(stdout), _text(stderr)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


@contextmanager
def open_fork_server() -> Iterator[ForkServer]:
    """A fork server that ends at the latest with this process."""
    with tempfile.TemporaryDirectory(prefix="fork-server-") as folder:
        address = f"{folder}/socket"
        command = [sys.executable, "-m", "tests.acceptance.fork_server_process", address]
        # With the mark of a test it would count as a process that the test has left behind.
        environment = {**os.environ, ENVIRONMENT_MARK: "", "NO_COLOR": "1"}
        server = subprocess.Popen(
            command,
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        with server:
            assert server.stdin is not None
            assert server.stdout is not None
            assert server.stdout.readline() == READY
            yield ForkServer(address)
            server.stdin.close()
            server.wait(START_TIMEOUT_S)
