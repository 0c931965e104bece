"""The exit codes."""

from enum import IntEnum


class Exit(IntEnum):
    """What scripts may rely on."""

    OK = 0
    FAILED = 1  # the job, or the operation
    USAGE = 2  # the command line, a definition or a script was refused; nothing was enqueued
    UNREACHABLE = 3  # ZooKeeper, or it does not let us in
    NOT_FOUND = 4
    CONFLICT = 5
    TIMEOUT = 6
    INTERRUPTED = 130
