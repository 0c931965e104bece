"""Checks of drivers: those that hang, and those that no worker monitors."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from orchestrator.admin.views import decoded
from orchestrator.admission.hosts import reaches
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot, Job
from orchestrator.model.definition_parts import Timeout
from orchestrator.model.mode_limits import run_limit, stall_limit
from orchestrator.model.states import Queue
from queues import AccessDenied, NodeData, Session, Stat
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path
from spark_runner.runners.base import SubmissionPlace

_GRACE_SECONDS = 60.0  # a worker that monitors the driver has acted by then
_DEFINITIONS_AT_ONCE = 16  # each may have 384 KiB
_WITH_DRIVERS = {Queue.RUNNING, Queue.KILL}


class _OpenAttempt(NamedTuple):
    job: Job
    attempt: Attempt
    alive: Stat | None
    timeout: Timeout


def check_drivers(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Open attempts without progress, beyond their time, or of jobs that no worker holds."""
    unheld = list[_OpenAttempt]()
    for run in _open_runs(snapshot):
        if (stuck := _stuck(snapshot, run)) is not None:
            yield stuck
        if snapshot.workers and _is_unheld(snapshot, run):
            unheld.append(run)
    locks = [snapshot.layout.lock(run.job.place.pool, run.job.record.id) for run in unheld]
    now = snapshot.session.get_many([run.job.path for run in unheld])
    held = snapshot.session.get_many(locks)
    for run, lock, record in zip(unheld, held, now, strict=True):
        if lock is None and record is not None and record[1].version == run.job.version:
            yield _unwatched(snapshot, run)


def open_attempts(snapshot: ClusterSnapshot) -> list[tuple[Job, Attempt]]:
    """The jobs whose driver may run or start, with their open attempt."""
    jobs = _with_attempts(snapshot)
    paths = [attempt_path(job.path, job.record.run_key, job.state.attempt) for job in jobs]
    found = zip(jobs, paths, snapshot.session.get_many(paths), strict=True)
    return [
        (job, attempt)
        for job, path, node in found
        if (attempt := _attempt(path, node)) is not None and attempt.state.is_open
    ]


def _open_runs(snapshot: ClusterSnapshot) -> Iterator[_OpenAttempt]:
    started = open_attempts(snapshot)
    alive = _stats(snapshot.session, [attempt.alive for _, attempt in started])
    definitions = list[NodeData | None]()
    for at in range(0, len(started), _DEFINITIONS_AT_ONCE):
        chunk = started[at : at + _DEFINITIONS_AT_ONCE]
        definitions += snapshot.session.get_many([f"{job.path}/definition" for job, _ in chunk])
    for (job, attempt), node, definition in zip(started, alive, definitions, strict=True):
        yield _OpenAttempt(job, attempt, node, _timeout(definition))


def _stats(session: Session, paths: Sequence[str]) -> list[Stat | None]:
    try:
        return [None if node is None else node[1] for node in session.get_many(paths)]
    except AccessDenied:  # a driver has closed its own node to this login: it counts as absent
        return [_stat(session, path) for path in paths]


def _stat(session: Session, path: str) -> Stat | None:
    try:
        return session.exists(path)
    except AccessDenied:
        return None


def check_attempts(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Attempt nodes that are missing or unreadable: without them the outcome of a driver is unknown."""
    jobs = _with_attempts(snapshot)
    paths = [attempt_path(job.path, job.record.run_key, job.state.attempt) for job in jobs]
    for job, path, node in zip(jobs, paths, snapshot.session.get_many(paths), strict=True):
        if _attempt(path, node) is None and snapshot.session.exists(job.path) is not None:
            job_id, how = job.record.id, "is missing" if node is None else "cannot be read"
            what = f"attempt {job.state.attempt} of {job_id} {how}: the outcome of its driver is unknown"
            remedy = (
                f"make sure that no driver of it runs, then `orchestrator queue move {job_id} dead --force`, "
                f"`job remove {job_id}`, and enqueue it anew"
            )
            yield Finding.of(FindingKind.UNREADABLE_RECORD, path, what, remedy)


def _with_attempts(snapshot: ClusterSnapshot) -> list[Job]:
    return [job for job in snapshot.jobs if job.place.queue in _WITH_DRIVERS and job.state.attempt]


def _attempt(path: str, node: NodeData | None) -> Attempt | None:
    try:
        return None if node is None else Attempt.of(path, *node)
    except ValueError:  # reported by `check_attempts`
        return None


def _timeout(definition: NodeData | None) -> Timeout:
    try:
        return Timeout.model_validate((decoded(definition) or {}).get("timeout", {}))
    except ValidationError:  # its handler reports that
        return Timeout()


def _stuck(snapshot: ClusterSnapshot, run: _OpenAttempt) -> Finding | None:
    job_id, limits = run.job.record.id, run.timeout
    if run.attempt.state is not AttemptState.STARTED:
        return None
    runs = (snapshot.now - run.attempt.changed_ms) / 1000
    still = -math.inf if run.alive is None else (snapshot.now - run.alive.modified) / 1000
    longest = run_limit(limits, run.job.state.mode)
    stall = stall_limit(limits, run.job.state.trigger_seconds)
    if longest and runs > longest + _GRACE_SECONDS:
        path = run.attempt.path
        what = f"{job_id} has run for {runs:.0f} s, longer than timeout.run ({longest:g} s)"
    elif stall and still > stall:
        path = run.attempt.alive
        what = f"{job_id} has made no progress for {still:.0f} s, longer than timeout.stall ({stall:g} s)"
    else:
        return None
    remedy = f"see `orchestrator job logs {job_id}`; `orchestrator job kill {job_id}` ends it"
    return Finding.of(FindingKind.STUCK_DRIVER, path, what, remedy)


def _is_unheld(snapshot: ClusterSnapshot, run: _OpenAttempt) -> bool:
    # A release writes nothing but the lock, so its time is unknown: what counts is since when the job
    # could have been claimed.
    since = max(run.job.place.token.due, run.job.modified, run.attempt.changed_ms)
    return not snapshot.is_held(run.job) and snapshot.now - since > _GRACE_SECONDS * 1000


def _unwatched(snapshot: ClusterSnapshot, run: _OpenAttempt) -> Finding:
    job_id = run.job.record.id
    place = SubmissionPlace.of(run.job.state.place) or SubmissionPlace.of(run.attempt.document.get("place"))
    remedy = "see the logs of the workers for why none claims it"
    if place is not None and not any(reaches(worker.document, place) for worker in snapshot.workers):
        where = f"on {place.host}, with the state directory of the worker that submitted it"
        if not place.host:
            where = f"that reaches {place}"
        remedy = f"start a worker {where}: no other worker can see whether this driver is alive"
    what = f"attempt {run.job.state.attempt} of {job_id} is {run.attempt.state}, and no worker holds the job"
    return Finding.of(FindingKind.UNWATCHED_DRIVER, run.attempt.path, what, remedy)
