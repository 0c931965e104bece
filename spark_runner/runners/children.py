"""Starts child processes that outlive the objects that start them, and reaps them."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_COLLECT_SECONDS = 1.0  # the longest time that an ended child stays a zombie


class Children:
    """Starts detached children, and reaps them by id soon after their end.

    They are not double-forked: in a container this process may have pid 1, which becomes their parent anyway.
    It keeps no Popen objects, because each would have to be kept to avoid a warning.
    """

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._is_collecting = False  # a thread reaps as long as there are children
        self._lock = threading.Lock()  # with two reaping threads, the second could hit a reused pid

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stderr: Path,
        pass_fds: Sequence[int],
    ) -> int:
        """Start a child in its own session, without a terminal; raises OSError."""
        with stderr.open("ab") as log:
            child = subprocess.Popen(  # noqa: SIM115, RUF100  # it outlives this call
                argv,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        with self._lock:
            self._pids.add(child.pid)
            starts, self._is_collecting = not self._is_collecting, True
        child.returncode = 0  # this class waits for the pid; so the object does not warn
        if starts:
            threading.Thread(target=self._collect, name="children", daemon=True).start()
        return child.pid

    def reap(self) -> None:
        """Reap the children that have ended, so that none remains a zombie."""
        with self._lock:
            for pid in list(self._pids):
                try:
                    ended, _ = os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:  # other code in this process waits for all children
                    ended = pid
                if ended:
                    self._pids.discard(pid)

    def _collect(self) -> None:
        while True:
            time.sleep(_COLLECT_SECONDS)
            self.reap()
            with self._lock:
                if not self._pids:
                    self._is_collecting = False
                    return
