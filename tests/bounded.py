"""Work on hostile input, done in a process of its own that may not take more than a little of anything."""

import os
import pickle
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

CPU_SECONDS = 5
_SECONDS = 60  # for who waits: of a busy machine much less is its own
MEMORY_BYTES = 512 * 1024 * 1024  # beside what the process of the tests has


def outcome(work: Callable[[], Any]) -> Any:
    """What the work returned, or the exception that it raised; fails when it took too much."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - of another process
        os.close(reading)
        _in_child(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise AssertionError(f"ended by {signal.Signals(os.WTERMSIG(status)).name}: it took too much")
    assert told, "it took so much memory that not even an error could be told"
    return pickle.loads(told)  # noqa: S301 - of our own child


def _in_child(work: Callable[[], Any], writing: int) -> None:  # pragma: no cover - likewise
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    found: Any
    try:
        found = work()
    except BaseException as error:  # noqa: BLE001 - all of them are of interest
        found = error
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(found))
    finally:
        os._exit(0)
