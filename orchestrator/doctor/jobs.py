"""Jobs that somebody should look at."""

from collections.abc import Iterator
from datetime import UTC, datetime

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.operating.queue_views import QueueViews
from orchestrator.operating.views import decoded
from orchestrator.states import Queue, Status
from queues.names import LOW, Token
from queues.record import MAX_RECORD_BYTES

_LATE_MS = 300_000
_LARGE_BYTES = MAX_RECORD_BYTES * 3 // 4
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
    """Jobs that warn, jobs that are claimed and never brought on, jobs whose records are nearly too large."""
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
        if job.size > _LARGE_BYTES:
            what = f"the record of {job_id} has {job.size:,} bytes, and {MAX_RECORD_BYTES:,} are the most"
            remedy = f"see with `orchestrator job show {job_id}` what fills it: beyond that it goes to dead"
            yield Finding.of(Kind.LARGE_RECORD, job.path, what, remedy)


def look_at_overdue(survey: Survey) -> Iterator[Finding]:
    """The oldest of those that are due in a queue of a pool for minutes while workers have free slots."""
    for (queue, pool), tokens in survey.tokens.items():
        if queue is Queue.DEAD or (queue is Queue.ACCEPT and _is_bound(survey, pool)):
            continue
        if not _free_slots(survey, pool):
            continue  # all are busy, or there is none: that is another finding
        late = [token for token in tokens if survey.now - token.due > _LATE_MS]
        late = [token for token in late if survey.layout.lock(pool, token.id) not in survey.locks]
        if queue is Queue.ACCEPT:
            late = _without_limited(survey, late)
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
        "see what `job show` says it waits for, and whether its workers can reach what they need: "
        "the archive, the callback"
    )
    return Finding.of(Kind.OVERDUE, survey.layout.token(queue, pool, first), what, remedy)


def _free_slots(survey: Survey, pool: str) -> int:
    """How many jobs the workers that serve a pool could start now."""
    serving = {consumer.name for consumer in survey.consumers.get(pool, ())}
    workers = [worker for worker in survey.workers if worker.name in serving]
    return sum(max(0, worker.number("slots") - worker.number("running")) for worker in workers)


def _without_limited(survey: Survey, tokens: list[Token]) -> list[Token]:
    """Those that do not wait until another job of their name has ended."""
    session, names = survey.session, {job.record.id: job.state.name for job in survey.jobs}
    known = sorted({names[token.id] for token in tokens if token.id in names})
    folders = session.get_many([survey.nodes.name_slots(name) for name in known])
    running = {name: node[1].children for name, node in zip(known, folders, strict=True) if node is not None}
    left = list[Token]()
    for token in tokens:
        taken = running.get(names.get(token.id, ""), 0)
        path = f"{survey.layout.record(token.id)}/definition"
        limit = (decoded(session.get(path)) or {}).get("concurrency", 0) if taken else 0
        if not (isinstance(limit, int) and 0 < limit <= taken):
            left.append(token)
    return left


def _is_bound(survey: Survey, pool: str) -> bool:
    """Whether a pause or the cap keeps the jobs of a pool back."""
    limits = survey.limits.get(pool.removesuffix(LOW))
    if limits is None:
        return False
    if limits.paused or survey.limits[pool].paused:
        return True
    return 0 < limits.cap <= len(survey.session.children(survey.nodes.slots(pool.removesuffix(LOW))) or ())
