"""The small parent process of one local driver: it outlives the worker and keeps the exit code.

It runs by path: `python -I -S shim.py RUN_DIR [--owner-fd N] [--directory D] -- argv...`. It imports the
standard library, `orchestrator.logs.files`, and of this package `control_groups`, `driver_user`, `log_limit`,
`proc` and `tree_usage`. It writes to RUN_DIR:

    shim.json    identity of the shim and its driver: process ids, /proc start ticks, boot id, PID namespace
    stdout.log   stderr.log   output of the driver and its descendants; older parts of long ones in *.log.1
    exit.json    exit code and resource usage of the driver; written when all its processes have ended
    shim.log     errors of the shim itself; empty without any

The driver gets TERM when the shim gets it, or when the owner behind `--owner-fd` has ended. It gets KILL
after the grace period. When the shim itself is killed, the kernel kills the driver (PR_SET_PDEATHSIG).
"""

import argparse
import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

if not __package__:  # run by path: makes its package importable
    sys.path.append(str(Path(__file__).resolve().parents[2]))
from orchestrator.logs.files import write_json
from spark_runner.protocol.log_limit import limit_logs
from spark_runner.protocol.proc import boot_id, children, pid_namespace, stat
from spark_runner.protocol.process import KILL_REQUEST
from spark_runner.shim.driver_user import SPARK_LOG, DriverUser, become_user, prctl
from spark_runner.shim.tree_usage import TreeUsage

GRACE_SECONDS = 10.0  # Spark's shutdown hooks take a few seconds; they deregister it from its cluster
ORPHAN_GRACE_SECONDS = 2.0  # Python workers have nothing to save after the end of their driver
WRITE_ATTEMPTS = 10  # one per second: a disk that is full for a moment must not lose the exit code
NOT_EXECUTABLE = 127  # as in a shell
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class Shim:
    """Starts one driver, waits for it, ends its remaining processes and records its exit."""

    def __init__(
        self,
        run_dir: Path,
        argv: Sequence[str],
        owner_fd: int | None,
        grace_seconds: float,
        *,
        directory: Path | None = None,
        user: DriverUser | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._directory = directory or run_dir
        self._user = user
        self._argv = list(argv)
        self._grace_seconds = grace_seconds
        self._driver = 0
        self._status: int | None = None  # of the driver, from waitpid
        self._kill_at: float | None = None  # monotonic; None = no stop was requested
        self._owner_fd = owner_fd
        self._usage = TreeUsage()
        self._poller = select.poll()
        if owner_fd is not None:
            os.set_inheritable(owner_fd, False)  # inheritable for the shim; the driver must not get it
            self._poller.register(owner_fd, select.POLLIN)
        # A wake-up pipe makes signals and the owner's end events of one poll, without a race.
        self._signals, wakeup = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._poller.register(self._signals, select.POLLIN)

    def run(self) -> None:
        """Run the driver from its start to its exit file."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            self._start()
            self._wait_for_driver()
        finally:  # an error of the shim must not leave an unsupervised driver
            self._end_children()
        self._write_exit()

    def _start(self) -> None:
        shim = os.getpid()
        may_start, start = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # until exec the child shares the wake-up pipe
        self._driver = os.fork()
        if not self._driver:
            os.close(start)
            become_driver(self._argv, self._run_dir, self._directory, shim, may_start, self._user)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # also signals that the starter had blocked
        os.close(may_start)
        try:
            # The driver waits for its byte, so user code runs only under a shim that has left a record.
            write_json(
                self._run_dir / "shim.json",
                {
                    "pid": shim,
                    "start": stat(shim).start,
                    "boot": boot_id(),
                    "pid_namespace": pid_namespace(),
                    "child": {"pid": self._driver, "start": stat(self._driver).start},
                },
                durable=True,
            )
            # Checked after shim.json is written: a killer writes its request first and looks second.
            if not (self._run_dir / KILL_REQUEST).exists():
                os.write(start, b"!")
        finally:
            os.close(start)

    def _wait_for_driver(self) -> None:
        while self._reap() and self._status is None:
            next_look = self._usage.look()
            limit_logs(self._run_dir)
            if self._kill_at is None:
                self._next_event(next_look)
            elif (left := self._kill_at - time.monotonic()) > 0:
                self._next_event(min(left, next_look))
            else:  # the driver is not reaped yet, so its group id is still its own
                signal_quietly(os.killpg, self._driver, signal.SIGKILL)
                self._next_event(1.0)

    def _end_children(self) -> None:
        """Send TERM, wait and send KILL to all orphaned processes until none is left.

        Only direct children get signals: until the shim reaps them their ids are not reused. Their own
        children become children of the shim when they end, so the loop reaches every process.
        """
        kill_at = time.monotonic() + (ORPHAN_GRACE_SECONDS if self._status is not None else 0)
        asked: set[int] = set()
        while self._reap():
            now = time.monotonic()
            killing = now >= min(kill_at, self._kill_at or kill_at)
            for pid in children(os.getpid()):
                if killing:
                    signal_quietly(os.kill, pid, signal.SIGKILL)
                elif pid not in asked:
                    asked.add(pid)
                    signal_quietly(os.kill, pid, signal.SIGTERM)
            self._next_event(0.2 if killing else min(0.2, kill_at - now))

    def _reap(self) -> bool:
        """Reap ended children; returns False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._driver:
                self._status = status

    def _next_event(self, timeout: float) -> None:
        for fd, _ in self._poller.poll(max(0, int(timeout * 1000) + 1)):
            if fd == self._signals:
                received = os.read(fd, 4096)
                if any(number in received for number in STOP_SIGNALS):
                    self._stop()
            elif not os.read(fd, 4096):  # end of file: the owner has ended
                self._poller.unregister(fd)
                self._stop()

    def _stop(self) -> None:
        first = self._kill_at is None
        deadline = time.monotonic() + self._requested_grace()
        # A second request may shorten the wait, never lengthen it.
        self._kill_at = deadline if self._kill_at is None else min(self._kill_at, deadline)
        if first and self._status is None:
            # Before its setsid the child leads no group; a signal to it is pending until exec.
            try:
                os.killpg(self._driver, signal.SIGTERM)
            except ProcessLookupError:
                signal_quietly(os.kill, self._driver, signal.SIGTERM)

    def _requested_grace(self) -> float:
        try:
            request = json.loads((self._run_dir / KILL_REQUEST).read_bytes())
            return float(request["grace_seconds"])
        except FileNotFoundError:
            return self._grace_seconds
        except (OSError, ValueError, KeyError, TypeError) as error:
            complain(f"{KILL_REQUEST}: {error!r}; waiting {self._grace_seconds} s")
            return self._grace_seconds

    def _write_exit(self) -> None:
        if self._status is None:
            raise RuntimeError(f"process {self._driver} was never reaped")
        code = os.waitstatus_to_exitcode(self._status)
        limit_logs(self._run_dir)
        ended = {
            "exit_code": code if code >= 0 else 128 - code,
            "signal": -code if code < 0 else None,
            "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "usage": self._usage.facts(),
        }
        for left in reversed(range(WRITE_ATTEMPTS)):
            try:
                write_json(self._run_dir / "exit.json", ended, durable=True)
            except OSError as error:
                complain(f"exit.json {ended}: {error}")
                if not left:
                    raise
                time.sleep(1)
            else:
                return


def become_driver(  # noqa: PLR0917 - of a forked child
    argv: list[str], run_dir: Path, directory: Path, shim: int, may_start: int, user: DriverUser | None
) -> NoReturn:
    """In the forked child: leave the session of the shim, keep its death signal, and exec."""
    try:
        os.setsid()
        for fd, path, flags in (
            (0, Path(os.devnull), os.O_RDONLY),
            (1, run_dir / "stdout.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            (2, run_dir / "stderr.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ):
            os.dup2(os.open(path, flags, 0o600), fd)
        if user is not None:
            may_start = fcntl.fcntl(may_start, fcntl.F_DUPFD_CLOEXEC, SPARK_LOG + 1)
            become_user(user, run_dir)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # here: a change of the user clears it
        # The second test is for a shim that died between fork and prctl, which sends no signal.
        if not os.read(may_start, 1) or os.getppid() != shim:
            os._exit(128 + signal.SIGTERM)
        for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores the last two, and exec would keep that
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with contextlib.suppress(OSError):  # it is missing: the driver reports that where it matters
            os.chdir(directory)
        os.execvp(argv[0], argv)  # noqa: S606  # the caller built the list; a shell would be one more process
    except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
        complain(f"{argv[0]}: {error}")
    finally:
        os._exit(NOT_EXECUTABLE)


def signal_quietly(send: Any, target: int, number: int) -> None:
    """Send a signal to a process or group that may have ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        send(target, number)


def complain(message: str) -> None:
    """Write an error to shim.log, or in the child to stderr.log."""
    os.write(2, f"{message}\n".encode(errors="replace"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one driver; returns 0 when its exit file is written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--owner-fd", type=int, help="read end of a pipe whose end of file stops the driver")
    parser.add_argument("--directory", type=Path, help="working directory of the driver; default: RUN_DIR")
    parser.add_argument(
        "--user", type=DriverUser.of, help="uid:gid:groups of the driver; default: the shim's"
    )
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, help="seconds from TERM to KILL")
    parser.add_argument("argv", nargs="+", metavar="command", help="the driver, after `--`")
    options = parser.parse_args(arguments)
    run_dir = options.run_dir.resolve()
    # From here on every traceback and message of the interpreter goes to shim.log.
    log = os.open(run_dir / "shim.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    Shim(
        run_dir,
        options.argv,
        options.owner_fd,
        options.grace,
        directory=options.directory,
        user=options.user,
    ).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
