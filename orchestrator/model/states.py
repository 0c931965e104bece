"""The statuses of a job, the queue of each, and the legal transitions."""

from enum import StrEnum
from typing import assert_never


class Queue(StrEnum):
    """The seven queues; a job is in exactly one of them."""

    ACCEPT = "accept"
    RUNNING = "running"
    SUCCESS = "success"
    FAIL = "fail"
    KILL = "kill"
    FINISH = "finish"
    DEAD = "dead"


class Status(StrEnum):
    """The state of a job."""

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
        """The queue whose handler processes a job of this status, until the job is in finish."""
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
            Status.ERROR_FAIL,  # the definition can never run, or the job has waited too long
            Status.CANCEL,  # killed while no attempt was open
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.RUNNING: frozenset(
        {
            Status.RUNNING_WARN,  # its backend does not answer, or it makes no progress
            Status.SUCCESS,  # the outcome of the attempt, or its driver's exit, says so
            Status.ERROR_FAIL,  # the outcome of the attempt, or its driver's exit, says so; or it is lost
            Status.KILL,  # killed on request, or at its time limit
            Status.ACCEPT,  # the intent was closed before a driver started: nothing has run
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
            Status.ERROR_FAIL,  # the reply to its callback says so
            Status.DEAD,  # its handler failed too often
        }
    ),
    Status.ERROR_FAIL: frozenset(
        {
            Status.ACCEPT,  # attempts are left: retried after a delay; or the reply to its callback says so
            Status.SUCCESS,  # the reply to its callback says so
            Status.CANCEL,  # killed while it failed; or the reply to its callback says so
            Status.DEAD,  # its handler failed too often, or it exceeded its time limit in the low lane
        }
    ),
    Status.KILL: frozenset(
        {
            Status.SUCCESS,  # the driver ended first; or the reply to its callback says so
            Status.ERROR_FAIL,  # the driver failed first; killed at its time limit; or its callback says so
            Status.CANCEL,  # no driver had started; or the reply to its callback says so
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
    """A handler requested a transition that is not in the table: a bug, never an error of a user."""

    def __init__(self, before: Status, after: Status) -> None:
        super().__init__(f"no transition leads from {before} to {after}")


def check_transition(before: Status, after: Status) -> None:
    """Raise IllegalTransition unless the table allows the transition, or the status stays."""
    if before is not after and after not in TRANSITIONS[before]:
        raise IllegalTransition(before, after)
