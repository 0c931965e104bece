"""Locks, requests to stop and places of running jobs that belong to nothing."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from loguru import logger

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Lock, Survey
from orchestrator.leader.duty import Fence
from orchestrator.leader.election import Election
from orchestrator.leader.proofs import JobProofs, Proof
from orchestrator.leader.stale_slots import StaleSlots
from orchestrator.leader.stale_stops import StaleStops
from orchestrator.leader.suspects import Suspect
from orchestrator.nodes import Nodes
from queues.bundle import commit_many
from queues.operations import Delete
from queues.queue import QueueSet
from queues.record import Record
from queues.transaction import Transaction

PATIENCE_MS = 60_000  # what is on its way looks like a left-over too: a minute, as the leader's duties wait

_Known = tuple[Record | None, Proof]


# ---------------------------------------------------------------------- locks
def look_at_locks(survey: Survey) -> Iterator[Finding]:
    """Locks of items that are gone or elsewhere, and of workers that are not announced."""
    announced = {worker.name for worker in survey.workers}
    doubtful = list[tuple[Lock, str, bool]]()
    known = JobProofs(survey.queue_set).read((lock.job_id for lock in survey.locks.values()), prepare=False)
    for lock in survey.locks.values():
        reason = _misplaced(lock, known)
        if reason:
            doubtful.append((lock, reason, True))
        elif lock.worker not in announced and survey.now - lock.created > PATIENCE_MS:
            doubtful.append((lock, f"{lock.worker or 'who holds it'} is not announced as a worker", False))
    # Jobs go on while this looks: a lock that has been let go of meanwhile is none of these.
    again = survey.session.get_many([lock.path for lock, *_ in doubtful])
    for (lock, reason, fixable), node in zip(doubtful, again, strict=True):
        if node is not None and (node[1].owner, node[1].created) == (lock.owner, lock.created):
            since = f" since {lock.since}" if lock.since else ""
            what = f"{lock.worker or 'somebody'} holds {lock.job_id}{since}, and {reason}"
            yield Finding.of(Kind.ORPHAN_LOCK, lock.path, what, _LOCK_REMEDIES[fixable], fixable=fixable)


_LOCK_REMEDIES = {
    True: "--fix removes the lock",
    False: (
        "it goes with the session of that program, which may be an operator's or a worker that starts or "
        "hangs: end it, or take the job from it with `orchestrator queue move ID QUEUE --force`"
    ),
}


def _misplaced(lock: Lock, known: dict[str, _Known]) -> str:
    if lock.job_id not in known:  # its record cannot be read: that is another finding
        return ""
    record, _ = known[lock.job_id]
    if record is None:
        return "the job is gone"
    if not lock.owner:
        return "no session owns the lock: it would keep the job for ever"
    return "" if record.pool == lock.pool else f"the job stands in pool {record.pool}"


def _mend_locks(survey: Survey, wanted: Collection[str]) -> None:
    # Who claims an item makes the lock in the multi that writes its record, in the pool that this names: with
    # the proof that there is no record, or that it is as it was read, the lock cannot be a valid one.
    locks = [lock for lock in survey.locks.values() if lock.path in wanted]
    known = JobProofs(survey.queue_set).read(lock.job_id for lock in locks)
    _commit(
        survey.queue_set,
        [(*known[lock.job_id][1], Delete(lock.path)) for lock in locks if _misplaced(lock, known)],
    )


# ---------------------------------------------------------------------- requests and places
def look_at_stops(survey: Survey) -> Iterator[Finding]:
    """Requests to stop what has ended, is gone, or was enqueued anew."""
    yield from _stale(survey, Kind.STALE_STOP, "somebody asked to stop a job, and")


def look_at_slots(survey: Survey) -> Iterator[Finding]:
    """Places of running jobs, of capped pools and limited names, that no running job has."""
    yield from _stale(survey, Kind.STALE_SLOT, "this place of a running job is taken, and")


def _duty(queue_set: QueueSet, kind: Kind, fence: Fence) -> StaleStops | StaleSlots:
    if kind is Kind.STALE_STOP:
        return StaleStops(queue_set, fence)
    return StaleSlots(queue_set, Nodes(queue_set.layout.root), fence)


def _stale(survey: Survey, kind: Kind, words: str) -> Iterator[Finding]:
    nodes = survey.nodes
    suspects = [
        suspect
        for suspect in _duty(survey.queue_set, kind, tuple).found(())
        if suspect.path.rpartition("/")[0] != nodes.named  # an empty folder takes nobody's place
    ]
    found = survey.session.get_many([suspect.path for suspect in suspects])
    for suspect, node in zip(suspects, found, strict=True):
        if node is not None and survey.now - node[1].modified > PATIENCE_MS:
            remedy = "--fix removes it where nobody leads; else the leader does within two minutes"
            yield Finding.of(kind, suspect.path, f"{words} {suspect.reason}", remedy, fixable=True)


def mend(survey: Survey, findings: Iterable[Finding]) -> None:
    """Remove what was found, each with the proof that it still is what it was."""
    wanted = defaultdict[Kind, set[str]](set)
    for finding in findings:
        wanted[finding.kind].add(finding.path)
    _mend_locks(survey, wanted[Kind.ORPHAN_LOCK])
    if wanted[Kind.STALE_STOP] or wanted[Kind.STALE_SLOT]:
        _mend_stale(survey.queue_set, survey.nodes, wanted)


def _mend_stale(queue_set: QueueSet, nodes: Nodes, wanted: Mapping[Kind, Collection[str]]) -> None:
    # Only who leads may remove the others: two who do so could take a request that was made in between.
    election = Election(queue_set.session, nodes, f"doctor-{os.getpid()}")
    try:
        if not election.look(_nothing):
            logger.info("{} leads, and removes what is stale", nodes.leader)
            return
        for kind in (Kind.STALE_STOP, Kind.STALE_SLOT):
            suspects = _duty(queue_set, kind, election.fence).found(election.fence())
            _commit(queue_set, _removals(suspects, wanted[kind]))
    finally:
        election.resign()


def _removals(suspects: Iterable[Suspect], wanted: Collection[str]) -> list[Transaction]:
    return [suspect.removal for suspect in suspects if suspect.path in wanted]


def _commit(queue_set: QueueSet, steps: list[Transaction]) -> None:
    for refused in commit_many(queue_set.session, steps):
        if refused is not None:  # it has changed meanwhile: the next look tells
            logger.info("left as it is: {}", refused)


def _nothing() -> None:
    """Nobody waits for a change of the leader here."""
