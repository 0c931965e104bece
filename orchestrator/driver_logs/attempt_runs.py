"""Finds the run of an attempt, and the place where it was submitted."""

from contextlib import suppress
from dataclasses import dataclass, replace

from orchestrator.logs.reading.query import ALL, DRIVER
from orchestrator.logs.record.redaction import secrets_of
from orchestrator.model.errors import NoSuchAttempt
from orchestrator.model.job import state_of
from orchestrator.model.plan import plan_path
from queues import AccessDenied, Layout, Record, Session, decode
from spark_runner.protocol.attempt import attempt_path, earlier_path, run_name
from spark_runner.runners.base import SubmissionPlace


@dataclass(frozen=True, slots=True)
class AttemptRun:
    """One attempt, by the name of its run outside ZooKeeper."""

    job_id: str
    number: int
    run: str
    place: SubmissionPlace


def find_run(session: Session, layout: Layout, record: Record, number: int | None) -> AttemptRun:
    """The run of an attempt, of the last one without a number; raises NoSuchAttempt, CorruptRecord.

    A driver may write anything into the node of its attempt. So the place is that of the record, or of the
    same backend and cluster: no driver makes a reader open other folders, or ask other servers.
    """
    state = state_of(record)
    wanted = number or state.attempt
    if not wanted or (found := _place_in(session, layout, record, wanted)) is _MISSING:
        have = f"its last attempt is {state.attempt}" if state.attempt else "it has not been started"
        of_attempt = f" of attempt {number}" if number else ""
        raise NoSuchAttempt(f"job {record.id!r} has no logs{of_attempt}: {have}")
    last, own = SubmissionPlace.of(state.place), SubmissionPlace.of(found)
    if wanted == state.attempt:
        own = last or own
    elif own is not None and last is not None and (own.backend, own.cluster) != (last.backend, last.cluster):
        own = None
    if own is None:
        raise NoSuchAttempt(
            f"job {record.id!r} has no logs of attempt {wanted}: its node does not record where it ran"
        )
    return AttemptRun(record.id, wanted, run_name(record.run_key, wanted), replace(own, pid_namespace=""))


def secrets_of_job(session: Session, layout: Layout, job_id: str) -> list[str]:
    """The secrets in the definition of a job and in its compiled script; raises the errors of reads.

    A host that did not submit the attempt, such as one that reads the logs of a cluster, has no other source.
    """
    path, found = layout.record(job_id), list[str]()
    for node in session.get_many([f"{path}/definition", plan_path(path)]):
        with suppress(ValueError):  # of another program
            found += [] if node is None else secrets_of(decode(node[0]))
    return found


def no_files(found: AttemptRun, executor: str) -> str:
    """That a host or a cluster has no log files of an attempt, for the user."""
    if executor not in {ALL, DRIVER}:
        return f"{found.place} has no logs of executor {executor} of {found.job_id} attempt {found.number}"
    whose = f"the logs of {found.job_id} attempt {found.number}"
    return f"{whose} are not on {found.place} any more: run {found.run}"


_MISSING = object()


def _place_in(session: Session, layout: Layout, record: Record, number: int) -> object:
    path = layout.record(record.id)
    for node in (attempt_path(path, record.run_key, number), earlier_path(path, number)):
        try:
            found = session.get(node)
        except AccessDenied:  # its driver has closed it
            return None
        if found is not None:
            try:
                return decode(found[0]).get("place")
            except ValueError:
                return None
    return _MISSING
