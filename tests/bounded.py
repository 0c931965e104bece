"""Runs work on hostile input in a child process with limits of time and memory."""

import math
import os
import pickle
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.machine import slowness

CPU_SECONDS = 5  # on the reference machine
_SECONDS = 60  # wall time; on a busy machine the process gets much less
MEMORY_BYTES = 512 * 1024 * 1024  # in addition to the memory of the test process


def outcome(work: Callable[[], Any]) -> Any:
    """The result of the work, or its exception; fails when a limit is exceeded."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        os.close(reading)
        _in_child(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise AssertionError(f"ended by {signal.Signals(os.WTERMSIG(status)).name}: it exceeded a limit")
    assert answer, "it used so much memory that it could not even report an error"
    return pickle.loads(answer)  # noqa: S301 - from our own child


def _in_child(work: Callable[[], Any], writing: int) -> None:  # pragma: no cover - likewise
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    seconds = math.ceil(CPU_SECONDS * slowness())
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    found: Any
    try:
        found = work()
    except BaseException as error:  # noqa: BLE001 - any exception is a result
        found = error
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(found))
    finally:
        os._exit(0)
