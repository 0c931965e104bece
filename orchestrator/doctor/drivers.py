"""Drivers that hang, and drivers that nobody watches."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from orchestrator.admission.hosts import reaches
from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Job, Survey
from orchestrator.models.definition import Timeout
from orchestrator.operating.views import decoded
from orchestrator.states import Queue
from queues.errors import AccessDenied
from queues.session import Session, Stat
from queues.session.multi_read import Found
from spark_runner.attempt import Attempt, AttemptState, attempt_path
from spark_runner.runners.base import SubmissionPlace

_GRACE_SECONDS = 60.0  # a worker that watches has acted by then
_DEFINITIONS_AT_ONCE = 16  # each may have 384 KiB
_WITH_DRIVERS = {Queue.RUNNING, Queue.KILL}


class _Run(NamedTuple):
    job: Job
    attempt: Attempt
    alive: Stat | None
    timeout: Timeout


def look_at_drivers(survey: Survey) -> Iterator[Finding]:
    """Attempts that are open: those that stand still, run for too long, or are held by nobody."""
    alone = list[_Run]()
    for run in _runs(survey):
        if (stuck := _stuck(survey, run)) is not None:
            yield stuck
        if survey.workers and _is_alone(survey, run):
            alone.append(run)
    locks = [survey.layout.lock(run.job.place.pool, run.job.record.id) for run in alone]
    now = survey.session.get_many([run.job.path for run in alone])
    held = survey.session.get_many(locks)
    for run, lock, record in zip(alone, held, now, strict=True):
        if lock is None and record is not None and record[1].version == run.job.version:
            yield _unwatched(survey, run)


def open_attempts(survey: Survey) -> list[tuple[Job, Attempt]]:
    """The jobs of which a driver may run, with the attempt that it has or is to have."""
    jobs = _with_attempts(survey)
    paths = [attempt_path(job.path, job.record.run_key, job.state.attempt) for job in jobs]
    found = zip(jobs, paths, survey.session.get_many(paths), strict=True)
    return [
        (job, attempt)
        for job, path, node in found
        if (attempt := _attempt(path, node)) is not None and attempt.state.is_open
    ]


def _runs(survey: Survey) -> Iterator[_Run]:
    started = open_attempts(survey)
    alive = _stats(survey.session, [attempt.alive for _, attempt in started])
    definitions = list[Found]()
    for at in range(0, len(started), _DEFINITIONS_AT_ONCE):
        part = started[at : at + _DEFINITIONS_AT_ONCE]
        definitions += survey.session.get_many([f"{job.path}/definition" for job, _ in part])
    for (job, attempt), node, definition in zip(started, alive, definitions, strict=True):
        yield _Run(job, attempt, node, _timeout(definition))


def _stats(session: Session, paths: Sequence[str]) -> list[Stat | None]:
    try:
        return [None if node is None else node[1] for node in session.get_many(paths)]
    except AccessDenied:  # a driver has closed its own to us: then it shows no life
        return [_stat(session, path) for path in paths]


def _stat(session: Session, path: str) -> Stat | None:
    try:
        return session.exists(path)
    except AccessDenied:
        return None


def look_at_attempts(survey: Survey) -> Iterator[Finding]:
    """Attempts without which nobody can tell what became of a driver."""
    jobs = _with_attempts(survey)
    paths = [attempt_path(job.path, job.record.run_key, job.state.attempt) for job in jobs]
    for job, path, node in zip(jobs, paths, survey.session.get_many(paths), strict=True):
        if _attempt(path, node) is None and survey.session.exists(job.path) is not None:
            job_id, how = job.record.id, "is missing" if node is None else "cannot be read"
            what = f"attempt {job.state.attempt} of {job_id} {how}: nobody can say what became of its driver"
            remedy = (
                f"see that no driver of it runs, then `orchestrator queue move {job_id} dead --force`, "
                f"`job remove {job_id}`, and enqueue it anew"
            )
            yield Finding.of(Kind.UNREADABLE_RECORD, path, what, remedy)


def _with_attempts(survey: Survey) -> list[Job]:
    return [job for job in survey.jobs if job.place.queue in _WITH_DRIVERS and job.state.attempt]


def _attempt(path: str, node: Found) -> Attempt | None:
    try:
        return None if node is None else Attempt.of(path, *node)
    except ValueError:  # told as such
        return None


def _timeout(definition: Found) -> Timeout:
    try:
        return Timeout.model_validate((decoded(definition) or {}).get("timeout", {}))
    except ValidationError:  # likewise
        return Timeout()


def _stuck(survey: Survey, run: _Run) -> Finding | None:
    job_id, limits = run.job.record.id, run.timeout
    if run.attempt.state is not AttemptState.STARTED:
        return None
    runs = (survey.now - run.attempt.changed_ms) / 1000
    still = -math.inf if run.alive is None else (survey.now - run.alive.modified) / 1000
    if limits.run and runs > limits.run + _GRACE_SECONDS:
        path = run.attempt.path
        what = (
            f"{job_id} runs for {runs:.0f} s, longer than timeout.run ({limits.run:g} s), and nobody ended it"
        )
    elif limits.stall and still > limits.stall:
        path = run.attempt.alive
        what = f"{job_id} shows no progress for {still:.0f} s, longer than timeout.stall ({limits.stall:g} s)"
    else:
        return None
    remedy = f"look at `orchestrator job logs {job_id}`; `orchestrator job kill {job_id}` ends it"
    return Finding.of(Kind.STUCK_DRIVER, path, what, remedy)


def _is_alone(survey: Survey, run: _Run) -> bool:
    # Letting go writes nothing but the lock: since when it is gone is not known, only that the job was to be
    # taken, and was not, for so long.
    since = max(run.job.place.token.due, run.job.modified, run.attempt.changed_ms)
    return not survey.is_held(run.job) and survey.now - since > _GRACE_SECONDS * 1000


def _unwatched(survey: Survey, run: _Run) -> Finding:
    job_id = run.job.record.id
    place = SubmissionPlace.of(run.job.state.place) or SubmissionPlace.of(run.attempt.document.get("place"))
    remedy = "see in the logs of the workers why none takes it"
    if place is not None and not any(reaches(worker.document, place) for worker in survey.workers):
        where = f"on {place.host}, with the state directory of the one that submitted it"
        if not place.host:
            where = f"that reaches {place}"
        remedy = f"start a worker {where}: nobody else can see whether this driver is alive"
    what = f"attempt {run.job.state.attempt} of {job_id} is {run.attempt.state}, and no worker holds the job"
    return Finding.of(Kind.UNWATCHED_DRIVER, run.attempt.path, what, remedy)
