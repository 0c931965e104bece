"""The parent of a server process: ends it when its owner is gone, regardless of how the owner ended.

Run as `python -I -S guard.py GRACE_SECONDS PROGRAM ARGUMENT...`, with a pipe as stdin whose write end
only the owner holds. The kernel closes that end when the owner dies, also by `kill -9`; the guard then
terminates the program, waits, kills it, and exits with its exit code. Its one line on stdout is the pid.

PR_SET_PDEATHSIG set by the owner itself is not sufficient: the kernel sends the signal when the *thread*
that started the child ends. The guard has one thread, so it can use the signal in case it is killed itself.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PARENT_CHECK_S = 1.0
"""A copy of the pipe's write end in a forked child of the owner would hide the owner's death."""

CANNOT_RUN = 127


def main(grace_s: float, command: list[str]) -> int:
    """Run `command` until it ends, the owner is gone, or a signal requests the end."""
    owner = os.getppid()
    wakeup, wakeup_write = os.pipe()
    for end in (wakeup, wakeup_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakeup_write)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # without a handler, Python writes nothing to the wakeup pipe
    program = _spawn(command)
    print(program, flush=True)  # noqa: T201 - the answer to the owner
    while True:
        ready, _, _ = select.select([0, wakeup], [], [], PARENT_CHECK_S)
        if (code := _ended(program)) is not None:
            return code
        asked = wakeup in ready and set(os.read(wakeup, 512)) != {signal.SIGCHLD}
        if asked or 0 in ready or os.getppid() != owner:
            return _stop(program, grace_s)


def _spawn(command: list[str]) -> int:
    guard = os.getpid()
    die_with_parent = _death_signal()
    program = os.fork()
    if program:
        return program
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)  # stdout is the guard's answer
        die_with_parent()
        if os.getppid() == guard:  # else the guard died before the signal was set up
            os.execv(command[0], command)  # noqa: S606 - a program by its path, no shell wanted
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_RUN)


def _death_signal() -> Callable[[], object]:
    """Return a function that makes the kernel kill the caller when its parent dies; no-op outside Linux."""
    if sys.platform != "linux":
        return lambda: None
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork: the child only calls it
    return lambda: prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _ended(program: int) -> int | None:
    pid, status = os.waitpid(program, os.WNOHANG)
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code  # the shells' convention


def _stop(program: int, grace_s: float) -> int:
    deadline = time.monotonic() + grace_s
    os.kill(program, signal.SIGTERM)
    while (code := _ended(program)) is None:
        if time.monotonic() > deadline:
            os.kill(program, signal.SIGKILL)
        time.sleep(0.01)
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
