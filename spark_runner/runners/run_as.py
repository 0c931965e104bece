"""The user whom drivers of this host run as: another one than their worker, in a folder of its own.

<users>/                    mode 0711, of the worker: names can be passed through, and not be listed
    spark-conf/  class-archives/  driver/    what all drivers may read, and none can change
    <user>/                 mode 0711, of the worker
        <run>.<incarnation>/    mode 0700, of that user: what one driver reads and writes
"""

import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_runner.directories import UnsafeDirectory, private_directory
from spark_runner.errors import SparkRunnerError
from spark_runner.zookeeper import LOW

_CAPABILITIES = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SYS_PTRACE": 19,
}
"""<linux/capability.h>: for directories of others, and to start, see and end processes of others."""

_OF_THE_WORKER = ("TMPDIR", "KRB5CCNAME")  # what is there is for the worker alone
_PASSAGE, _READABLE = 0o711, 0o755
LINKS = {"stdout.log": 1, "stderr.log": 2, "spark.log": 3}
"""The logs of a driver that may not reach its run directory: open files that its shim hands it."""


class RunAsError(SparkRunnerError):
    """Drivers cannot run as the user that the settings name."""


@dataclass(frozen=True, slots=True)
class User:
    """An account of this host."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @classmethod
    def named(cls, name: str) -> "User":
        """The account; raises RunAsError where there is none, or one that may do anything."""
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            raise RunAsError(f"drivers.run_as: this host has no user {name!r}") from None
        groups = tuple(sorted({*os.getgrouplist(name, found.pw_gid)}))
        if found.pw_uid == 0 or 0 in groups:
            raise RunAsError(f"drivers.run_as: {name!r} is root, or in its group; name a user without rights")
        if found.pw_uid == os.geteuid():
            raise RunAsError(f"drivers.run_as: {name!r} is the user of the worker itself")
        return cls(name, found.pw_uid, found.pw_gid, groups, found.pw_dir)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment of a process of its own, from that of one of ours."""
        kept = {name: value for name, value in given.items() if name not in _OF_THE_WORKER}
        return kept | {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


class Users:
    """Whom the drivers of which pool run as, and where."""

    def __init__(self, folder: Path, by_pool: Mapping[str, str]) -> None:
        """Raise RunAsError where this process may not change users, or a user cannot get to the folder."""
        self.folder = folder
        self._by_pool = {pool: User.named(name) for pool, name in by_pool.items()}
        if missing := _missing_capabilities():
            raise RunAsError(
                f"drivers.run_as: this worker may not start processes of other users: it has no {missing}; "
                "start it as root, or with these capabilities, or take the setting out"
            )
        _own_folder(folder, _PASSAGE)
        _own_folder(self.conf_dir, _READABLE)
        _own_folder(folder / "class-archives", _PASSAGE)
        _own_folder(folder / "driver", _PASSAGE)  # what travels with drivers to YARN
        for user in self._by_pool.values():
            _own_folder(folder / user.name, _PASSAGE)
        for parent in folder.parents:
            if not parent.stat().st_mode & stat.S_IXOTH:
                raise RunAsError(f"drivers.run_as: no other user gets through {parent} to {folder}")

    @property
    def conf_dir(self) -> Path:
        """The empty SPARK_CONF_DIR of their drivers."""
        return self.folder / "spark-conf"

    def of_pool(self, pool: str) -> User | None:
        """The user of a pool and of its low lane, or that of all; None for the worker's own."""
        return self._by_pool.get(pool.removesuffix(LOW)) or self._by_pool.get("*")

    def work_directory(self, user: User, run: str, incarnation: str) -> Path:
        """Make the directory of one driver, still ours; raises OSError."""
        path = self.folder / user.name / f"{run}.{incarnation}"
        path.mkdir(mode=0o700)
        return path


def hand_over(path: Path, user: User) -> None:
    """Make a directory that is ours, and all that we have made in it, that of a user; raises OSError.

    The directory itself goes last: until then nobody else can change what is in it.
    """
    for folder, names, files in os.walk(path, topdown=False):
        for name in (*names, *files):
            os.chown(Path(folder, name), user.uid, user.gid, follow_symlinks=False)
    os.chown(path, user.uid, user.gid, follow_symlinks=False)


def _own_folder(path: Path, mode: int) -> None:
    try:
        private_directory(path, mode=mode).chmod(mode)
    except UnsafeDirectory as error:
        raise RunAsError(f"drivers.run_as: {error}") from error
    except OSError as error:
        raise RunAsError(f"drivers.run_as: {path} cannot be made: {error.strerror}") from error


def _missing_capabilities() -> str:
    status = Path("/proc/self/status").read_text("utf-8", errors="replace")
    has = int(status.partition("CapEff:")[2].split()[0], 16)
    return ", ".join(f"CAP_{name}" for name, bit in _CAPABILITIES.items() if not has >> bit & 1)
