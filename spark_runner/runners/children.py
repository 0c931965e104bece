"""Child processes that outlive the objects that started them, and are still reaped."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_COLLECT_SECONDS = 1.0  # how long an ended child may be a zombie


class Children:
    """Starts detached children and collects those that have ended, by their ids: soon, whatever else happens.

    They are not double-forked away: in a container this process may be number 1, to which they would
    come back anyhow. A Popen object each would have to be kept, and warns when it is not.
    """

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._is_collecting = False  # a thread reaps as long as there are children
        self._lock = threading.Lock()  # two threads that reap: the second could hit a number given away again

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stderr: Path,
        pass_fds: Sequence[int],
    ) -> int:
        """Start a child in a session of its own, with no terminal; raises OSError."""
        with stderr.open("ab") as log:
            child = subprocess.Popen(  # noqa: SIM115, RUF100  # it is meant to go on
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
        child.returncode = 0  # from here on we wait for the id, and the object has nothing to warn of
        if starts:
            threading.Thread(target=self._collect, name="children", daemon=True).start()
        return child.pid

    def reap(self) -> None:
        """Collect the children that have ended, so that none stays as a zombie."""
        with self._lock:
            for pid in list(self._pids):
                try:
                    ended, _ = os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:  # somebody else in this process waits for all children
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
