"""The folder of event logs on this host: made with safe permissions, or checked before a driver uses it."""

import os
import stat
from itertools import takewhile
from pathlib import Path

from orchestrator.model.errors import OrchestratorError
from queues import UnsafeDirectory, private_directory
from spark_runner.runners.run_as import RunAsError, UserAccount

_SHARED = 0o1733
"""Each user writes logs, and only their owner removes them; other users do not even see their names."""

_PASSAGE = 0o711
_LEAST_FREE_BYTES = 16 << 20
"""Spark fails an application whose log it cannot begin; one that finds no room later ends early."""


class FolderTrouble(OrchestratorError):
    """The folder of event logs cannot be used; the message says why and what to do."""


def make_folder(path: str, user: str | None, *, shared: bool) -> None:
    """Make the folder if it is missing, and check that the user of a driver can write to it, and has room.

    A folder that exists keeps its permissions: the operator has chosen them. `user` is None for the worker's
    own; with `shared` the drivers of several users write to it. Raises FolderTrouble.
    """
    folder = Path(path)
    try:
        account = None if user is None else UserAccount.named(user)
        if not folder.is_dir():
            for parent in reversed(list(takewhile(lambda each: not each.exists(), folder.parents))):
                private_directory(parent, mode=_PASSAGE).chmod(_PASSAGE)
            private_directory(folder)
            if shared:
                folder.chmod(_SHARED)
        found, disk = folder.stat(), os.statvfs(folder)
    except (UnsafeDirectory, RunAsError) as error:
        raise FolderTrouble(str(error)) from error
    except OSError as error:
        raise FolderTrouble(f"{path} cannot be made: {error.strerror}; make it, or correct `url`") from error
    trusted = {0, os.geteuid()} | ({account.uid} if account else set())
    if found.st_uid not in trusted:
        raise FolderTrouble(f"{path} belongs to user {found.st_uid}, who could replace them")
    if not _may_write(folder, found, account):
        name = account.name if account else f"user {os.geteuid()}"
        remedy = f"`chmod 1733 {path}`" if account else "`chown` it, or correct the setting `event_logs`"
        raise FolderTrouble(
            f"{name} may not write to {path} (mode {stat.S_IMODE(found.st_mode):04o}): {remedy}"
        )
    has_files = disk.f_favail > 0 or not disk.f_files  # some file systems do not count them
    if disk.f_bavail * disk.f_frsize < _LEAST_FREE_BYTES or not has_files:
        raise FolderTrouble(f"the disk of {path} is full: remove old logs, or shorten `retention`")


def _may_write(folder: Path, found: os.stat_result, account: UserAccount | None) -> bool:
    if account is None:
        return os.access(folder, os.W_OK | os.X_OK)
    if found.st_uid == account.uid:
        needed = stat.S_IWUSR | stat.S_IXUSR
    elif found.st_gid in account.groups:
        needed = stat.S_IWGRP | stat.S_IXGRP
    else:
        needed = stat.S_IWOTH | stat.S_IXOTH
    return found.st_mode & needed == needed
