"""Jobs that somebody should look at."""

from collections.abc import Iterator
from datetime import UTC, datetime

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.queue_views import QueueViews
from orchestrator.states import Queue, Status
from queues.names import LOW, Token

_LATE_MS = 300_000
_MANY_CLAIMS = 5  # a worker that dies leaves one; a job that ends its workers leaves one for each


def look_at_dead(survey: Survey) -> Iterator[Finding]:
    """What could not be processed, with the reason."""
    layout = survey.layout
    paths = {
        (pool, token.id): layout.token(queue, pool, token)
        for (queue, pool), tokens in survey.tokens.items()
        if queue is Queue.DEAD
        for token in tokens
    }
    if not paths:
        return
    reasons = {job.path: (job.record.error or {}).get("reason") for job in survey.jobs}
    for row in QueueViews(survey.queue_set).standing(Queue.DEAD):
        path = paths.get((row["pool"], row["id"]))
        if path is None:  # it came meanwhile
            continue
        reason = row["reason"] or reasons.get(layout.record(row["id"])) or "nobody has noted why"
        if row["status"] is None:  # no command can read it
            remedy = (
                f"repair the bytes of {layout.record(row['id'])}, then `orchestrator queue replay "
                f"{row['id']}`; or delete that node, where there is one, and this one: `zkcli deleteall PATH`"
            )
        else:
            remedy = (
                f"mend the cause, then `orchestrator queue replay {row['id']}`, or `job remove {row['id']}`"
            )
        yield Finding.of(Kind.JOB_IN_DEAD, path, f"{row['id']} could not be processed: {reason}", remedy)


def look_at_warnings(survey: Survey) -> Iterator[Finding]:
    """Jobs that warn, and jobs that are claimed and never brought on."""
    for job in survey.jobs:
        job_id = job.record.id
        if job.state.status is Status.RUNNING_WARN:
            what = f"{job_id} warns: {job.state.warning or 'nobody has noted why'}"
            remedy = f"look at it with `orchestrator job show {job_id}` and `job logs {job_id}`"
            yield Finding.of(Kind.WARNED_JOB, job.path, what, remedy)
        if job.record.claims > _MANY_CLAIMS and job.place.queue is not Queue.DEAD:
            what = f"{job_id} was claimed {job.record.claims} times since its last step: do its holders die?"
            remedy = "look at the logs of the workers; `orchestrator queue move` takes the job out of the way"
            yield Finding.of(Kind.CLAIMED_AGAIN_AND_AGAIN, job.path, what, remedy)


def look_at_overdue(survey: Survey) -> Iterator[Finding]:
    """The oldest of those that are due in a queue of a pool for minutes while workers have free slots."""
    free = sum(max(0, worker.number("slots") - worker.number("running")) for worker in survey.workers)
    if not free:
        return  # all are busy, or there is none: that is another finding
    for (queue, pool), tokens in survey.tokens.items():
        if queue is Queue.DEAD or (queue is Queue.ACCEPT and _is_bound(survey, pool)):
            continue
        late = [token for token in tokens if survey.now - token.due > _LATE_MS]
        late = [token for token in late if survey.layout.lock(pool, token.id) not in survey.locks]
        if late:
            yield _overdue(survey, queue, pool, late)


def _overdue(survey: Survey, queue: Queue, pool: str, late: list[Token]) -> Finding:
    first = min(late)
    since = datetime.fromtimestamp(first.due / 1000, UTC).isoformat(timespec="seconds")
    what = (
        f"{len(late):,} due in {queue} of pool {pool} for longer than {_LATE_MS // 60_000} min while workers "
        f"have free slots; the oldest, {first.id}, since {since}"
    )
    remedy = (
        "see whether a worker serves this pool (`worker --pool`), what its guard of load and memory says in "
        "its log, and `concurrency` in the definition"
    )
    return Finding.of(Kind.OVERDUE, survey.layout.token(queue, pool, first), what, remedy)


def _is_bound(survey: Survey, pool: str) -> bool:
    """Whether a pause or the cap keeps the jobs of a pool back."""
    limits = survey.limits.get(pool.removesuffix(LOW))
    if limits is None:
        return False
    if limits.paused or survey.limits[pool].paused:
        return True
    return 0 < limits.cap <= len(survey.session.children(survey.nodes.slots(pool.removesuffix(LOW))) or ())
