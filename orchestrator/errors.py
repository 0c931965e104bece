"""Errors of `orchestrator`: one tree, each message fit for a user."""

from collections.abc import Sequence


class OrchestratorError(Exception):
    """Base of every error of this package."""


class DefinitionError(OrchestratorError):
    """A job definition or its script cannot be accepted; nothing was enqueued."""


class SettingsError(OrchestratorError):
    """A setting has a value that cannot be used."""


class StateDirectoryError(OrchestratorError):
    """The state directory cannot be written."""


class NotRunning(OrchestratorError):
    """No ZooKeeper is configured and none was started on this machine."""


class AlreadyEnded(OrchestratorError):
    """The job has ended; what was asked for can no longer be done."""


class StateConflict(OrchestratorError):
    """The state of the job does not allow what was asked for; the job is as it was."""


class NotEnded(StateConflict):
    """The job has not ended yet, and what was asked for is for jobs that have."""


class NotDead(StateConflict):
    """The job does not stand in dead, so there is nothing to bring back."""


class MoveRefused(StateConflict):
    """A job is not brought by hand from where it stands to that queue."""


class JobHeld(StateConflict):
    """Somebody works on the job at this moment."""

    def __init__(self, job_id: str, holder: str, remedy: str) -> None:
        super().__init__(f"job {job_id!r} is held by {holder or 'somebody'}, who works on it now; {remedy}")
        self.job_id = job_id
        self.holder = holder


class AttemptOpen(StateConflict):
    """An attempt of the job is open: its driver may be running."""

    def __init__(self, job_id: str, attempt: str, remedy: str) -> None:
        super().__init__(f"{attempt} of job {job_id!r} is open, its driver may be running; {remedy}")
        self.job_id = job_id


class NotConfirmed(OrchestratorError):
    """What was asked for cannot be undone, and nobody was there to confirm it."""


class WaitTimeout(OrchestratorError):
    """The job had not ended when the time to wait was over."""


class NoSuchAttempt(OrchestratorError):
    """The job has no attempt of this number, so there are no logs of it."""


class LogsElsewhere(OrchestratorError):
    """The logs of the job are on another host."""


class NotLeading(OrchestratorError):
    """This worker does not lead, or another one may do so by now."""


class ScheduleNotFound(OrchestratorError):
    """No schedule has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule has the name {name!r}; `schedule list` shows those that there are")
        self.name = name


class CorruptSchedule(OrchestratorError):
    """The node of a schedule cannot be read as one."""

    def __init__(self, name: str, path: str, reason: str) -> None:
        super().__init__(
            f"the schedule {name!r} cannot be read ({path}): {reason}; "
            f"no run of it is enqueued; remove it with `schedule remove {name}` and register it again"
        )
        self.name = name
        self.path = path


class HistoryNotFound(OrchestratorError):
    """No run of this name has ended, or none for so long that its history was removed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no run of a job named {name!r} is known; `job list --name {name}` shows its jobs")
        self.name = name


class CorruptHistory(OrchestratorError):
    """The node of a history cannot be read as one."""

    def __init__(self, name: str, path: str, reason: str) -> None:
        super().__init__(
            f"the history of {name!r} cannot be read ({path}): {reason}; its next run begins it anew"
        )
        self.name = name
        self.path = path


class ConfigUnreadable(OrchestratorError):
    """What stands in the node of the configuration is none; the last good limits hold."""

    def __init__(self, path: str, version: int, reason: str) -> None:
        super().__init__(
            f"version {version} of {path} is no configuration ({reason}); "
            f"mend it, or start anew with: orchestrator zkcli set {path} {{}}"
        )
        self.path = path
        self.version = version
        self.reason = reason


class NoSuchPool(OrchestratorError):
    """No pool has this name: one is made by its first job, or by a worker that is told to serve it."""

    def __init__(self, pool: str, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no pool {pool!r}, there are {', '.join(known) or 'none yet'}; "
            "a pool is made by its first job, or by a worker that serves it by name"
        )
        self.pool = pool
