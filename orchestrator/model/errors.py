"""Errors of `orchestrator`: one tree, each with a message for users."""

from collections.abc import Iterable, Sequence

from queues import Error
from spark_runner.protocol.text import did_you_mean

_NAMED_WORKERS = 10


class OrchestratorError(Error):
    """Base of every error of this package."""


class DefinitionError(OrchestratorError):
    """A job definition or its script cannot be accepted; nothing was enqueued."""


class AlreadyExists(OrchestratorError):
    """A file that would be written is already there; nothing was written."""


class SettingsError(OrchestratorError):
    """A setting has a value that cannot be used."""


class StateDirectoryError(OrchestratorError):
    """The state directory cannot be written."""


class NotRunning(OrchestratorError):
    """No ZooKeeper is configured and none was started on this machine."""


class AlreadyEnded(OrchestratorError):
    """The job has ended, so the operation is no longer possible."""


class StateConflict(OrchestratorError):
    """The state of the job does not allow the operation; the job is unchanged."""


class NotEnded(StateConflict):
    """The job has not ended yet, but the operation is only for ended jobs."""


class NotDead(StateConflict):
    """The job is not in dead, so it cannot be replayed."""


class MoveRefused(StateConflict):
    """An operator cannot move the job from its queue to that queue."""


class JobHeld(StateConflict):
    """A worker or another operator holds the job."""

    def __init__(self, job_id: str, holder: str, remedy: str) -> None:
        super().__init__(
            f"job {job_id!r} is held by {holder or 'another client'}, which works on it now; {remedy}"
        )
        self.job_id = job_id
        self.holder = holder


class AttemptOpen(StateConflict):
    """An attempt of the job is open: its driver may be running."""

    def __init__(self, job_id: str, attempt: str, remedy: str) -> None:
        super().__init__(f"{attempt} of job {job_id!r} is open, its driver may be running; {remedy}")
        self.job_id = job_id


class NotStreaming(StateConflict):
    """The job has no micro-batches, so it cannot stop after one."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id!r} runs no SQL script in mode 'streaming' or 'available-now', so it has no"
            f" micro-batch to end after; `orchestrator job kill {job_id}` ends it at once"
        )
        self.job_id = job_id


class NotConfirmed(OrchestratorError):
    """The operation cannot be undone, and it was not confirmed."""


class WaitTimeout(OrchestratorError):
    """The job did not end in time."""


class NoSuchAttempt(OrchestratorError):
    """The job has no attempt with this number, so there are no logs of it."""


class LogsElsewhere(OrchestratorError):
    """The logs of the job are on another host."""


class NotLeading(OrchestratorError):
    """This worker is not the leader, or another one may lead by now."""


class ScheduleNotFound(OrchestratorError):
    """No schedule has this name."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(name, known) or "; `schedule list` shows all"
        super().__init__(f"no schedule has the name {name!r}{hint}")
        self.name = name


class CorruptSchedule(OrchestratorError):
    """The node of a schedule cannot be parsed."""

    def __init__(self, name: str, path: str, reason: str) -> None:
        super().__init__(
            f"the schedule {name!r} cannot be read ({path}): {reason}; "
            f"no run of it is enqueued; remove it with `schedule remove {name}` and register it again"
        )
        self.name = name
        self.path = path


class InvalidConnection(OrchestratorError):
    """A connection cannot be stored or used; nothing was changed."""


class ConnectionNotFound(OrchestratorError):
    """No connection has this name."""

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"no connection has the name {name!r}{hint or '; `connection list` shows all'}")
        self.name = name


class CorruptConnection(OrchestratorError):
    """The node of a connection cannot be parsed."""

    def __init__(self, name: str, path: str, reason: str) -> None:
        super().__init__(
            f"the connection {name!r} cannot be read ({path}): {reason}; "
            f"store it again with `connection set {name}`"
        )
        self.name = name
        self.path = path
        self.reason = reason


class CheckpointNotFound(OrchestratorError):
    """The job has no such checkpoint in the folders that this host knows."""

    def __init__(self, name: str, target: str | None, hint: str) -> None:
        whose = "" if target is None else f" of target {target!r}"
        super().__init__(
            f"job {name!r} has no checkpoint{whose} in the folders that this host knows{hint};"
            " `job checkpoint list` shows all"
        )
        self.name = name


class JobRunning(StateConflict):
    """A job with this name is running, but the operation needs a name without a running job."""

    def __init__(self, name: str, job_id: str) -> None:
        holder = f"job {job_id!r}" if job_id else "a job, or a removal of its checkpoints,"
        super().__init__(f"{holder} of the name {name!r} is running; wait for its end, or stop it")
        self.name = name


class HistoryNotFound(OrchestratorError):
    """No run with this name has ended, or its history was removed after a long time without a run."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no run of a job named {name!r} is known; `job list --name {name}` shows its jobs")
        self.name = name


class CorruptHistory(OrchestratorError):
    """The node of a history cannot be parsed."""

    def __init__(self, name: str, path: str, reason: str) -> None:
        super().__init__(
            f"the history of {name!r} cannot be read ({path}): {reason}; its next run restarts it"
        )
        self.name = name
        self.path = path


class CorruptTuning(OrchestratorError):
    """The node of a tuning cannot be parsed."""

    def __init__(self, name: str, path: str, reason: str) -> None:
        super().__init__(
            f"the tuning of {name!r} cannot be read ({path}): {reason}; its runs get what their definition "
            f"asks for; remove its pins, caps and decisions with `tuning reset {name} --all`"
        )
        self.name = name
        self.path = path
        self.reason = reason


class InvalidTuning(OrchestratorError):
    """A pin, a cap or a mode is refused; nothing was changed."""


class ConfigUnreadable(OrchestratorError):
    """The node of the configuration cannot be parsed; the last valid limits apply."""

    def __init__(self, path: str, version: int, reason: str) -> None:
        super().__init__(
            f"version {version} of {path} is not a valid configuration ({reason}); "
            f"repair it, or reset it with: orchestrator zkcli set {path} {{}}"
        )
        self.path = path
        self.version = version
        self.reason = reason


class NoSuchWorker(OrchestratorError):
    """No worker has this name now; the name of a worker is that of one process."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no worker {name!r}; workers now: {', '.join(known[:_NAMED_WORKERS]) or 'none'}"
            + (f" and {len(known) - _NAMED_WORKERS:,} more" if len(known) > _NAMED_WORKERS else "")
        )
        self.name = name


class SeveralWorkers(StateConflict):
    """Several workers run on the host, so its name does not identify one of them; nothing was changed."""

    def __init__(self, host: str, names: Sequence[str]) -> None:
        super().__init__(f"several workers run on {host!r}; name one of them: {', '.join(names)}")
        self.names = names


class CannotDrain(StateConflict):
    """The worker belongs to a command that stops it, or its version cannot drain; nothing was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"worker {name!r} follows no request to drain: it belongs to `up` or `run`, which Ctrl-C ends, "
            "or its version is older; TERM ends it, and its drivers continue"
        )
        self.name = name


class NotDraining(StateConflict):
    """The worker was not asked to drain, or the request was withdrawn."""

    def __init__(self, name: str) -> None:
        super().__init__(f"worker {name!r} is not asked to drain")
        self.name = name


class NoSuchPool(OrchestratorError):
    """No pool has this name; the first job of a pool, or a worker that serves it by name, creates it."""

    def __init__(self, pool: str, known: Sequence[str]) -> None:
        super().__init__(
            f"there is no pool {pool!r}; existing pools: {', '.join(known) or 'none'}; "
            "the first job of a pool, or a worker that serves it by name, creates it"
        )
        self.pool = pool
