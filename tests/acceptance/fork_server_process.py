"""The process behind `ForkServer`: it loads the command line once, and forks for each command.

It has one thread and runs no command itself: changes made by a command end with the command's process.
"""

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tests.acceptance.fork_server import PROJECT, READY

CLI = PROJECT / "orchestrator" / "cli"
LATE = ("orchestrator.__main__", "orchestrator.compose", "rich.console", "rich.table")
NO_INPUT, STDOUT, STDERR = 0, 1, 2


def load() -> None:
    """Import all commands, and their lazy imports."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as each command does
    for module in pkgutil.walk_packages([str(CLI)], "orchestrator.cli."):
        importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
    gc.freeze()


def serve(address: str) -> None:
    """Serve until the owner closes stdin; returns in the process of a command."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        os.write(STDOUT, READY)
        while True:
            readable, _, _ = select.select([listener.fileno(), NO_INPUT], [], [])
            if NO_INPUT in readable:
                sys.exit(0)
            connection, _ = listener.accept()
            with connection:
                if not os.fork():
                    listener.close()
                    attend(connection)
                    return
            reap()


def reap() -> None:
    """Reap the processes whose commands have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def attend(connection: socket.socket) -> None:
    """Start the command and report its end; returns only in the process of the command."""
    _, files, _, _ = socket.recv_fds(connection, 1, 2)
    request = json.loads(connection.makefile("rb").readline())
    if not (child := os.fork()):
        connection.close()
        become(request, *files)
        return
    for file in files:
        os.close(file)
    watched = os.pidfd_open(child)
    ended, _, _ = select.select([watched, connection.fileno()], [], [])
    if watched not in ended:  # the caller has closed the connection
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    try:
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def become(request: dict[str, Any], stdout: int, stderr: int) -> None:
    """Turn this process into the command, as a shell would start it."""
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), NO_INPUT)
    for file, number in ((stdout, STDOUT), (stderr, STDERR)):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["directory"])
    program = importlib.import_module("orchestrator.__main__")
    sys.modules["__main__"] = program
    sys.argv = [str(program.__file__), *request["arguments"]]


if __name__ == "__main__":
    load()
    serve(sys.argv[1])
    # In the process of a command: from here on the same as `python -m orchestrator`.
    importlib.import_module("orchestrator.__main__").main()
