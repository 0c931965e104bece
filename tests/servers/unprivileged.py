"""Servers that refuse to run as root, as another user where root runs the tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from queues.embedded.guarded import GuardedProcess
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

_UID = 65534
_START_S = 60


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """A folder that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))  # not below that of pytest, which only root can read
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(command: Sequence[str], folder: Path, answers: Callable[[], bool]) -> Iterator[None]:
    """A server in this folder, from when it answers."""
    output = folder / "output"
    with output.open("wb") as file:
        server = GuardedProcess(_user_command(command), cwd=folder, output=file)
    try:
        wait_until(lambda: server.exit_code() is not None or answers(), _START_S, f"{command[0]} answers")
        if server.exit_code() is not None:
            unavailable(f"{command[0]} has ended: {output.read_text('utf-8', errors='replace')[-1000:]}")
        yield
    finally:
        server.stop()


def give_away(folder: Path) -> None:
    """Let the user of the servers own all that is in a folder."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _UID, _UID)


def _user_command(command: Sequence[str]) -> list[str]:
    program, *arguments = command
    found = [shutil.which(program) or program, *arguments]
    if os.geteuid() != 0:
        return found
    setpriv = shutil.which("setpriv")
    assert setpriv, "util-linux brings it"
    return [setpriv, f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups", *found]


def run_as_user(command: Sequence[str]) -> None:
    """Run a program to its end."""
    ended = subprocess.run(
        _user_command(command), check=False, capture_output=True, timeout=_START_S, cwd="/", text=True
    )
    assert ended.returncode == 0, f"{command[0]}: {(ended.stdout + ended.stderr)[-4000:]}"
