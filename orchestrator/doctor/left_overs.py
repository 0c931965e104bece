"""Checks and fixes of orphans: locks, stop requests and slots that belong to no job."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from loguru import logger

from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.snapshot import ClusterSnapshot, Lock
from orchestrator.leader.duty import Fence
from orchestrator.leader.election import Election
from orchestrator.leader.stale_nodes import CheckedJob, JobPreconditions, OrphanCandidate, remove_orphans
from orchestrator.leader.stale_slots import StaleSlots
from orchestrator.leader.stale_stops import StaleStops
from orchestrator.model.paths import Nodes
from queues import Delete, QueueSet

PATIENCE_MS = (
    60_000  # a node of an operation in progress looks like an orphan too; the leader also waits a minute
)


# ---------------------------------------------------------------------- locks
def check_locks(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Locks of jobs that are gone or elsewhere, and of holders that are not announced as workers."""
    announced = {worker.name for worker in snapshot.workers}
    unconfirmed = list[tuple[Lock, str, bool]]()
    jobs = JobPreconditions(snapshot.queue_set).read(
        (lock.job_id for lock in snapshot.locks.values()), prepare=False
    )
    for lock in snapshot.locks.values():
        reason = _misplaced(lock, jobs)
        if reason:
            unconfirmed.append((lock, reason, True))
        elif lock.worker not in announced and snapshot.now - lock.created > PATIENCE_MS:
            unconfirmed.append((lock, f"{lock.worker or 'its holder'} is not announced as a worker", False))
    # Jobs continue while this runs: a lock that was released since is none of these.
    again = snapshot.session.get_many([lock.path for lock, *_ in unconfirmed])
    for (lock, reason, fixable), node in zip(unconfirmed, again, strict=True):
        if node is not None and (node[1].owner, node[1].created) == (lock.owner, lock.created):
            since = f" since {lock.since}" if lock.since else ""
            what = f"{lock.worker or 'an unnamed program'} holds {lock.job_id}{since}, and {reason}"
            yield Finding.of(
                FindingKind.ORPHAN_LOCK, lock.path, what, _LOCK_REMEDIES[fixable], fixable=fixable
            )


_LOCK_REMEDIES = {
    True: "--fix removes the lock",
    False: (
        "the lock ends with the session of that program: an operator's command, or a worker that starts or "
        "hangs. End it, or take the job from it with `orchestrator queue move ID QUEUE --force`"
    ),
}


def _misplaced(lock: Lock, jobs: Mapping[str, CheckedJob]) -> str:
    """Why a lock is an orphan; empty when it may be valid."""
    if lock.job_id not in jobs:  # an unreadable record is another finding
        return ""
    record = jobs[lock.job_id].record
    if record is None:
        return "the job is gone"
    if not lock.owner:
        return "no session owns the lock: it would block the job permanently"
    return "" if record.pool == lock.pool else f"the job is in pool {record.pool}"


def _fix_locks(snapshot: ClusterSnapshot, wanted: Collection[str]) -> None:
    # A claim creates the lock in the multi that writes the record, in the pool that the record names. While
    # the preconditions hold (no record, or the record as it was read), the lock cannot be a valid one.
    locks = [lock for lock in snapshot.locks.values() if lock.path in wanted]
    jobs = JobPreconditions(snapshot.queue_set).read(lock.job_id for lock in locks)
    orphans = [
        OrphanCandidate(
            lock.path,
            (lock.owner, lock.created),
            (*jobs[lock.job_id].preconditions, Delete(lock.path)),
            reason,
        )
        for lock in locks
        if (reason := _misplaced(lock, jobs))
    ]
    remove_orphans(snapshot.session, orphans)


# ---------------------------------------------------------------------- stop requests and slots
def check_stops(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Requests to stop a job that has ended, is gone, or was enqueued anew."""
    yield from _stale(snapshot, FindingKind.STALE_STOP, "this request to stop a job is stale:")


def check_slots(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Slots of capped pools and limited names that no running job uses."""
    yield from _stale(snapshot, FindingKind.STALE_SLOT, "this slot is taken by no running job:")


def _duty(queue_set: QueueSet, kind: FindingKind, fence: Fence) -> StaleStops | StaleSlots:
    if kind is FindingKind.STALE_STOP:
        return StaleStops(queue_set, fence)
    return StaleSlots(queue_set, Nodes(queue_set.layout.root), fence)


def _stale(snapshot: ClusterSnapshot, kind: FindingKind, words: str) -> Iterator[Finding]:
    nodes = snapshot.nodes
    candidates = [
        candidate
        for candidate in _duty(snapshot.queue_set, kind, tuple).found(())
        if candidate.path.rpartition("/")[0] != nodes.named  # an empty folder blocks no slot
    ]
    found = snapshot.session.get_many([candidate.path for candidate in candidates])
    for candidate, node in zip(candidates, found, strict=True):
        if node is not None and snapshot.now - node[1].modified > PATIENCE_MS:
            remedy = "--fix removes it if no worker leads; otherwise the leader does within two minutes"
            yield Finding.of(kind, candidate.path, f"{words} {candidate.reason}", remedy, fixable=True)


def fix(snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> None:
    """Remove the nodes of these findings, each with the preconditions that it is still an orphan."""
    wanted = defaultdict[FindingKind, set[str]](set)
    for finding in findings:
        wanted[finding.kind].add(finding.path)
    _fix_locks(snapshot, wanted[FindingKind.ORPHAN_LOCK])
    if wanted[FindingKind.STALE_STOP] or wanted[FindingKind.STALE_SLOT]:
        _fix_stale(snapshot.queue_set, snapshot.nodes, wanted)


def _fix_stale(queue_set: QueueSet, nodes: Nodes, wanted: Mapping[FindingKind, Collection[str]]) -> None:
    # Only a leader may remove these: two programs that do could remove a request that was made in between.
    election = Election(queue_set.session, nodes, f"doctor-{os.getpid()}")
    try:
        if not election.look(_ignore_changes):
            logger.info("the worker of {} leads, and removes stale nodes", nodes.leader)
            return
        for kind in (FindingKind.STALE_STOP, FindingKind.STALE_SLOT):
            candidates = _duty(queue_set, kind, election.fence).found(election.fence())
            remove_orphans(
                queue_set.session, [candidate for candidate in candidates if candidate.path in wanted[kind]]
            )
    finally:
        election.resign()


def _ignore_changes() -> None:
    """Called when the leader changes, which does not matter here."""
