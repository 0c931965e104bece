"""Runs drivers on this host as another user than the worker, in a separate folder.

<users>/                    mode 0711, owned by the worker: paths below it can be entered, but not listed
    spark-conf/  class-archives/  driver/    files that all drivers may read and none can change
    <user>/                 mode 0711, owned by the worker
        <run>.<incarnation>/    mode 0700, owned by that user: the files of one driver
"""

import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from queues import UnsafeDirectory, private_directory
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.proc import status_field
from spark_runner.protocol.zookeeper import LOW_LANE_SUFFIX

_CAPABILITIES = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SYS_PTRACE": 19,
}
"""<linux/capability.h>: for other users' directories, and to start, see and end other users' processes."""

_OF_THE_WORKER = ("TMPDIR", "KRB5CCNAME")  # these locations are only for the worker
_PASSAGE, _READABLE = 0o711, 0o755
LINKS = {"stdout.log": 1, "stderr.log": 2, "spark.log": 3}
"""The logs of a driver without access to its run directory: file descriptors that its shim passes to it."""


class RunAsError(SparkRunnerError):
    """Drivers cannot run as the user that the settings name."""


@dataclass(frozen=True, slots=True)
class UserAccount:
    """An account of this host."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @classmethod
    def named(cls, name: str) -> "UserAccount":
        """The account; raises RunAsError if it does not exist, or has the rights of root or of the worker."""
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise RunAsError(f"drivers.run_as: this host has no user {name!r}") from None
        groups = tuple(sorted({*os.getgrouplist(name, found.pw_gid)}))
        if found.pw_uid == 0 or 0 in groups:
            raise RunAsError(
                f"drivers.run_as: {name!r} is root, or in the group of root; name an unprivileged user"
            )
        if found.pw_uid == os.geteuid():
            raise RunAsError(f"drivers.run_as: {name!r} is the worker's own user; name another one")
        return cls(name, found.pw_uid, found.pw_gid, groups, found.pw_dir)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process of this user, from the environment of a process of the worker."""
        kept = {name: value for name, value in given.items() if name not in _OF_THE_WORKER}
        return kept | {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


class Users:
    """The users of the drivers of each pool, and their directories."""

    def __init__(self, folder: Path, by_pool: Mapping[str, str]) -> None:
        """Raise RunAsError if this process may not change users, or the users cannot reach the folder."""
        self.folder = folder
        self._by_pool = {pool: UserAccount.named(name) for pool, name in by_pool.items()}
        if missing := _missing_capabilities():
            raise RunAsError(
                f"drivers.run_as: this worker may not start processes of other users: it has no {missing}; "
                "start it as root or with these capabilities, or remove the setting"
            )
        _make_folder(folder, _PASSAGE)
        _make_folder(self.conf_dir, _READABLE)
        _make_folder(folder / "class-archives", _PASSAGE)
        _make_folder(folder / "driver", _PASSAGE)  # files that drivers in YARN get
        for user in self._by_pool.values():
            _make_folder(folder / user.name, _PASSAGE)
        for parent in folder.parents:
            if not parent.stat().st_mode & stat.S_IXOTH:
                raise RunAsError(
                    f"drivers.run_as: other users cannot reach {folder}: make {parent} executable for them"
                )

    @property
    def conf_dir(self) -> Path:
        """The empty SPARK_CONF_DIR of their drivers."""
        return self.folder / "spark-conf"

    def of_pool(self, pool: str) -> UserAccount | None:
        """The user of a pool and its low lane, or the one of all pools; None for the worker's own user."""
        return self._by_pool.get(pool.removesuffix(LOW_LANE_SUFFIX)) or self._by_pool.get("*")

    def work_directory(self, user: UserAccount, run: str, incarnation: str) -> Path:
        """Create the directory of one driver, still owned by the worker; raises OSError."""
        path = self.folder / user.name / f"{run}.{incarnation}"
        path.mkdir(mode=0o700)
        return path


def change_owner(path: Path, user: UserAccount) -> None:
    """Give a directory of the worker and its contents to a user; raises OSError.

    The directory itself changes its owner last: until then no other user can change its contents.
    """
    for folder, names, files in os.walk(path, topdown=False):
        for name in (*names, *files):
            os.chown(Path(folder, name), user.uid, user.gid, follow_symlinks=False)
    os.chown(path, user.uid, user.gid, follow_symlinks=False)


def _make_folder(path: Path, mode: int) -> None:
    try:
        private_directory(path, mode=mode).chmod(mode)
    except UnsafeDirectory as error:
        raise RunAsError(f"drivers.run_as: {error}") from error
    except OSError as error:
        raise RunAsError(f"drivers.run_as: cannot create {path}: {error.strerror}") from error


def _missing_capabilities() -> str:
    has = int(status_field("self", "CapEff"), 16)
    return ", ".join(f"CAP_{name}" for name, bit in _CAPABILITIES.items() if not has >> bit & 1)
