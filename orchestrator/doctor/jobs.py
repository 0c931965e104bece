"""Jobs that need an operator, and schedules that are overdue."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from orchestrator.admin.queue_views import QueueViews
from orchestrator.admin.views import decoded
from orchestrator.admission.high_water import reports_in
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import to_text
from orchestrator.schedules.record import ScheduleRecord
from orchestrator.schedules.runs import GRACE_MS
from orchestrator.schedules.store import ScheduleStore
from orchestrator.schedules.triggers import circle_of
from queues import LOW_LANE_SUFFIX, MAX_RECORD_BYTES, Token

_OVERDUE_MS = 2 * GRACE_MS  # another leader has taken over by then


def check_schedules(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Each schedule by its next unhandled fire time, and schedules that wait for each other."""
    store = ScheduleStore(snapshot.session, snapshot.nodes, lambda: snapshot.now)
    records = store.records()
    yield from _circles({n: r for n, r in records.items() if isinstance(r, ScheduleRecord)}, snapshot)
    for name, record in records.items():
        path = snapshot.nodes.schedule(name)
        if not isinstance(record, ScheduleRecord):
            remedy = f"`orchestrator schedule remove {name}`, then register it with `orchestrator job submit`"
            yield Finding.of(
                FindingKind.UNREADABLE_SCHEDULE, path, f"its runs are not enqueued: {record}", remedy
            )
            continue
        due = record.next_ms
        if due is not None and snapshot.now - due > _OVERDUE_MS:
            late = (snapshot.now - due) // 60_000
            what = f"the run of {name} for {to_text(due)} was not enqueued, and is {late:,} min late"
            remedy = "check that a worker leads, and see its log for this schedule: the pool may be full"
            yield Finding.of(FindingKind.OVERDUE_SCHEDULE, path, what, remedy)


def _circles(records: Mapping[str, ScheduleRecord], snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Circles that were registered at the same moment: otherwise the registration is refused."""
    awaited = {name: record.definition.schedule.after for name, record in records.items()}
    reported = set[str]()
    for name, after in awaited.items():
        circle = circle_of(name, after, lambda other: awaited.get(other, ()))
        if circle is None or name in reported:
            continue
        reported.update(circle)
        way = " after ".join(circle)
        what = f"these schedules wait for each other: {way}; a success of one repeats for ever"
        remedy = f"change 'schedule.after' of one of them, or `orchestrator schedule remove {name}`"
        yield Finding.of(FindingKind.CIRCULAR_SCHEDULES, snapshot.nodes.schedule(name), what, remedy)


_LATE_MS = 300_000
_LARGE_BYTES = MAX_RECORD_BYTES * 3 // 4
_MANY_CLAIMS = 5  # a worker that dies counts one; a job that kills its workers counts one for each


def check_dead(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Jobs in dead, with the reason."""
    layout = snapshot.layout
    paths = {
        (pool, token.id): layout.token(queue, pool, token)
        for (queue, pool), tokens in snapshot.tokens.items()
        if queue is Queue.DEAD
        for token in tokens
    }
    if not paths:
        return
    reasons = {job.path: (job.record.error or {}).get("reason") for job in snapshot.jobs}
    for row in QueueViews(snapshot.queue_set).jobs_in_queue(Queue.DEAD):
        path = paths.get((row["pool"], row["id"]))
        if path is None:  # it came after the snapshot
            continue
        reason = row["reason"] or reasons.get(layout.record(row["id"])) or "no reason was recorded"
        if row["status"] is None:  # no command can read it
            remedy = (
                f"repair the bytes of {layout.record(row['id'])}, then `orchestrator queue replay "
                f"{row['id']}`; or delete that node, if it exists, and this one: `zkcli deleteall PATH`"
            )
        else:
            remedy = (
                f"fix the cause, then `orchestrator queue replay {row['id']}`, or `job remove {row['id']}`"
            )
        yield Finding.of(
            FindingKind.JOB_IN_DEAD, path, f"{row['id']} could not be processed: {reason}", remedy
        )


def check_warnings(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Jobs with a warning, jobs claimed repeatedly without a transition, and records near the size limit."""
    for job in snapshot.jobs:
        job_id = job.record.id
        if job.state.status is Status.RUNNING_WARN:
            what = f"{job_id} warns: {job.state.warning or 'no reason was recorded'}"
            remedy = f"see `orchestrator job show {job_id}` and `job logs {job_id}`"
            yield Finding.of(FindingKind.WARNED_JOB, job.path, what, remedy)
        if job.record.claims > _MANY_CLAIMS and job.place.queue is not Queue.DEAD:
            what = f"{job_id} was claimed {job.record.claims} times without a transition: its workers may die"
            remedy = "see the logs of the workers; `orchestrator queue move ID finish` ends the job"
            yield Finding.of(FindingKind.CLAIMED_AGAIN_AND_AGAIN, job.path, what, remedy)
        if job.size > _LARGE_BYTES:
            what = f"the record of {job_id} has {job.size:,} bytes, and the limit is {MAX_RECORD_BYTES:,}"
            remedy = (
                f"see `orchestrator job show {job_id}` for what fills it: beyond the limit it goes to dead"
            )
            yield Finding.of(FindingKind.LARGE_RECORD, job.path, what, remedy)


def check_overdue(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Queues with jobs that have been due for 5 minutes while workers of their pool have free slots."""
    for (queue, pool), tokens in snapshot.tokens.items():
        if queue is Queue.DEAD or (queue is Queue.ACCEPT and _is_bound(snapshot, pool)):
            continue
        if not _free_slots(snapshot, pool):
            continue  # all workers are busy; that there is none is another finding
        late = [token for token in tokens if snapshot.now - token.due > _LATE_MS]
        late = [token for token in late if snapshot.layout.lock(pool, token.id) not in snapshot.locks]
        if queue is Queue.ACCEPT:
            late = _without_limited(snapshot, late)
        if late:
            yield _overdue(snapshot, queue, pool, late)


def _overdue(snapshot: ClusterSnapshot, queue: Queue, pool: str, late: list[Token]) -> Finding:
    first = min(late)
    since = datetime.fromtimestamp(first.due / 1000, UTC).isoformat(timespec="seconds")
    what = (
        f"{len(late):,} due in {queue} of pool {pool} for longer than {_LATE_MS // 60_000} min while workers "
        f"have free slots; the oldest, {first.id}, since {since}"
    )
    remedy = (
        "see `job show` for what it waits for, and check that its workers reach the archive and the callback"
    )
    return Finding.of(FindingKind.OVERDUE, snapshot.layout.token(queue, pool, first), what, remedy)


def _free_slots(snapshot: ClusterSnapshot, pool: str) -> int:
    """The number of jobs that the workers of a pool could start now."""
    serving = {consumer.name for consumer in snapshot.consumers.get(pool, ())}
    workers = [worker for worker in snapshot.workers if worker.name in serving]
    return sum(max(0, worker.number("slots") - worker.number("running")) for worker in workers)


def _without_limited(snapshot: ClusterSnapshot, tokens: list[Token]) -> list[Token]:
    """Those that do not wait for the end of another job of their name."""
    session, names = snapshot.session, {job.record.id: job.state.name for job in snapshot.jobs}
    known = sorted({names[token.id] for token in tokens if token.id in names})
    folders = session.get_many([snapshot.nodes.name_slots(name) for name in known])
    running = {name: node[1].children for name, node in zip(known, folders, strict=True) if node is not None}
    left = list[Token]()
    for token in tokens:
        taken = running.get(names.get(token.id, ""), 0)
        path = f"{snapshot.layout.record(token.id)}/definition"
        limit = (decoded(session.get(path)) or {}).get("concurrency", 0) if taken else 0
        if not (isinstance(limit, int) and 0 < limit <= taken):
            left.append(token)
    return left


def _is_bound(snapshot: ClusterSnapshot, pool: str) -> bool:
    """Whether a pause, the cap or `high_water` holds back the jobs of a pool."""
    main = pool.removesuffix(LOW_LANE_SUFFIX)
    limits = snapshot.limits.get(main)
    if limits is None:
        return False
    if limits.paused or snapshot.limits[pool].paused:
        return True
    if limits.high_water and any(reports_in(snapshot.session, snapshot.nodes, main)):
        return True
    return 0 < limits.cap <= len(snapshot.session.children(snapshot.nodes.slots(main)) or ())
