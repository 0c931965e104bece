"""The clocks, and how fast ZooKeeper answers."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

from orchestrator.doctor.findings import Finding, Kind, Severity
from orchestrator.doctor.survey import Survey
from orchestrator.times import moment
from queues.clock_jump import ClockJump
from queues.operations import Check
from queues.session import Session
from queues.transaction import commit

_TOLERATED_SECONDS = 2.0
_SLOW_MS = 100.0
_READS, _WRITES = 10, 5
_REMEDY = "check the time service (NTP) of that host and of the ZooKeeper servers"


def latencies(session: Session, path: str) -> list[float]:
    """How long some reads of one node took, in milliseconds, the fastest first."""
    return _timed(lambda: session.exists(path), _READS)


def write_latencies(session: Session, path: str) -> list[float]:
    """The same of what goes the way of a write, through the leader to the disks, and changes nothing."""
    return _timed(lambda: commit(session, [Check(path)]), _WRITES)


def _timed(call: Callable[[], object], times: int) -> list[float]:
    taken = list[float]()
    for _ in range(times):
        before = time.perf_counter()
        call()
        taken.append((time.perf_counter() - before) * 1000)
    return sorted(taken)


def look_at_latency(survey: Survey) -> Iterator[Finding]:
    """A warning when reads or writes take long, else a note with the figures."""
    session, path = survey.session, survey.layout.root
    taken = {"reads": latencies(session, path)}
    if session.exists(path) is not None:  # else nothing of ours is there yet
        taken["writes"] = write_latencies(session, path)
    medians = {what: statistics.median(times) for what, times in taken.items()}
    what = "; ".join(
        f"{len(times)} {what} took {times[0]:.1f} to {times[-1]:.1f} ms, median {medians[what]:.1f} ms"
        for what, times in taken.items()
    )
    slow = any(median > _SLOW_MS for median in medians.values())
    remedy = "look at disk and garbage collection of the servers, and at the network" if slow else ""
    severity = Severity.WARNING if slow else Severity.NOTE
    yield Finding(kind=Kind.ZOOKEEPER_LATENCY, severity=severity, path=path, what=what, remedy=remedy)


def look_at_clocks(survey: Survey) -> Iterator[Finding]:
    """This host against the ensemble, and workers by what they wrote into nodes that they made."""
    ahead = time.time() - survey.queue_set.clock.now_ms() / 1000
    if abs(ahead) > _TOLERATED_SECONDS:
        yield _skew(survey.layout.clock, "the clock of this host", ahead)
    if jumped := ClockJump(survey.session, survey.layout).found_ms() / 1000:
        how = "ahead" if jumped > 0 else "behind"
        what = f"ZooKeeper's clock is suddenly {abs(jumped):.1f} s {how}; those who saw it do not follow"
        yield Finding.of(Kind.CLOCK_SKEW, survey.layout.clock_jump, what, _REMEDY)
    locks = defaultdict[str, list[float]](list)
    for lock in survey.locks.values():
        locks[lock.worker].append(_ahead(lock.since, lock.created))
    leader, serving = survey.leader, defaultdict[str, list[float]](list)
    for consumer in (consumer for consumers in survey.consumers.values() for consumer in consumers):
        if consumer.text("since"):
            serving[consumer.name].append(_ahead(consumer.text("since"), consumer.created))
    for worker in survey.workers:
        # An announcement is made anew with each session, and a lock with the words of the old one when its
        # job goes to another pool: an old `since` says nothing, one from the future does. Who leads, and who
        # takes jobs of a pool, wrote it in the moment in which the node was made; what was on its way for
        # long seems to be behind, so the latest counts.
        ahead = max(0.0, _ahead(worker.text("since"), worker.created), *locks[worker.name])
        if serving[worker.name]:
            ahead = max(serving[worker.name])
        if leader is not None and leader.name == worker.name and leader.text("since"):
            ahead = _ahead(leader.text("since"), leader.created)
        if abs(ahead) > _TOLERATED_SECONDS:
            yield _skew(worker.path, f"the clock of {worker.name} on {worker.text('host')}", ahead)


def _skew(path: str, whose: str, ahead: float) -> Finding:
    how = "ahead of" if ahead > 0 else "behind"
    what = f"{whose} is {abs(ahead):.1f} s {how} that of ZooKeeper; times in logs and records do not fit"
    return Finding.of(Kind.CLOCK_SKEW, path, what, _REMEDY)


def _ahead(since: str, created_ms: int) -> float:
    """By how many seconds a time of a host is later than that of the ensemble; 0 for what is no time."""
    at = moment(since)
    return 0.0 if at is None else at.timestamp() - created_ms / 1000
