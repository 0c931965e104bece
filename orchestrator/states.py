"""Statuses of a job, the queue each belongs to, and the only transitions that are legal."""

from enum import StrEnum
from typing import assert_never


class Queue(StrEnum):
    """The seven queues; a job stands in exactly one of them."""

    ACCEPT = "accept"
    RUNNING = "running"
    SUCCESS = "success"
    FAIL = "fail"
    KILL = "kill"
    FINISH = "finish"
    DEAD = "dead"


class Status(StrEnum):
    """What is true of a job."""

    ACCEPT = "ACCEPT"
    RUNNING = "RUNNING"
    RUNNING_WARN = "RUNNING_WARN"
    SUCCESS = "SUCCESS"
    ERROR_FAIL = "ERROR_FAIL"
    KILL = "KILL"
    CANCEL = "CANCEL"
    DEAD = "DEAD"

    @property
    def queue(self) -> Queue:
        """The queue whose handler works on a job of this status, until it stands in finish."""
        match self:
            case Status.ACCEPT:
                return Queue.ACCEPT
            case Status.RUNNING | Status.RUNNING_WARN:
                return Queue.RUNNING
            case Status.SUCCESS:
                return Queue.SUCCESS
            case Status.ERROR_FAIL:
                return Queue.FAIL
            case Status.KILL | Status.CANCEL:
                return Queue.KILL
            case Status.DEAD:
                return Queue.DEAD
            case _:
                assert_never(self)


FINAL = frozenset({Status.SUCCESS, Status.ERROR_FAIL, Status.KILL, Status.CANCEL})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.ACCEPT: frozenset(
        {
            Status.RUNNING,  # the intent is written: an attempt exists
            Status.ERROR_FAIL,  # the definition can never be run, or it has waited for too long
            Status.CANCEL,  # stopped while no attempt was open
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.RUNNING: frozenset(
        {
            Status.RUNNING_WARN,  # its backend does not answer, or it makes no progress
            Status.SUCCESS,  # the attempt, or the exit of its driver, says so
            Status.ERROR_FAIL,  # the attempt, or the exit of its driver, says so; or it was lost
            Status.KILL,  # somebody asked to stop it, or it has run for too long
            Status.ACCEPT,  # the intent was closed before any driver took it: nothing has run
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.RUNNING_WARN: frozenset(
        {
            Status.RUNNING,  # its backend answers again, or there is progress
            Status.SUCCESS,  # as from RUNNING
            Status.ERROR_FAIL,  # as from RUNNING
            Status.KILL,  # as from RUNNING
            Status.ACCEPT,  # as from RUNNING
            Status.DEAD,  # as from RUNNING
        }
    ),
    Status.SUCCESS: frozenset(
        {
            Status.ERROR_FAIL,  # the answer to its callback says so
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.ERROR_FAIL: frozenset(
        {
            Status.ACCEPT,  # attempts are left: once more, after a delay; or its callback's answer says so
            Status.SUCCESS,  # the answer to its callback says so
            Status.CANCEL,  # stopped in the moment of its failure; or the answer to its callback says so
            Status.DEAD,  # its handler failed too often, or it ran into its time limit in the low lane
        }
    ),
    Status.KILL: frozenset(
        {
            Status.SUCCESS,  # the driver's own outcome was faster; or the answer to its callback says so
            Status.ERROR_FAIL,  # as for SUCCESS; or its time limit asked for the kill
            Status.CANCEL,  # no driver had started: nothing was run; or the answer to its callback says so
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.CANCEL: frozenset(
        {
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.DEAD: frozenset(),
}


class IllegalTransition(Exception):
    """A handler asked for a change of status that the table does not have: a bug, never a user's fault."""

    def __init__(self, before: Status, after: Status) -> None:
        super().__init__(f"no transition leads from {before} to {after}")


def check_transition(before: Status, after: Status) -> None:
    """Raise IllegalTransition unless the table allows the change, or nothing changes."""
    if before is not after and after not in TRANSITIONS[before]:
        raise IllegalTransition(before, after)
