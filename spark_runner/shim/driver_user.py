"""The user that a local driver runs as when it is not the user of its worker.

The shim imports it, so it uses the standard library alone.
"""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

PR_SET_NO_NEW_PRIVS = 38  # <linux/prctl.h>
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SPARK_LOG = 3  # the descriptor by which the driver of another user writes its spark.log


@dataclass(frozen=True)
class DriverUser:
    """The ids of a user and of its groups."""

    uid: int
    gid: int
    groups: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "DriverUser":
        """Read the form in an argument, `uid:gid:group,group`; raises ValueError."""
        uid, gid, groups = text.split(":")
        return cls(int(uid), int(gid), tuple(map(int, groups.split(","))))


def become_user(user: DriverUser, run_dir: Path) -> None:
    """Change this process to another user, which gets the logs as open files.

    No program can revert the change.
    """
    log = os.open(run_dir / "spark.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, SPARK_LOG)
    os.set_inheritable(SPARK_LOG, True)  # needed if `log` had that number already
    for fd in (1, 2, SPARK_LOG):
        os.fchown(fd, user.uid, user.gid)
    os.setgroups(user.groups)
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    os.umask(0o077)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def prctl(option: int, value: int) -> None:
    """Set one property of this process for which the standard library has no function; raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
