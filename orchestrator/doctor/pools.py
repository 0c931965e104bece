"""Pools that are paused or full, and folders that are too long for ZooKeeper's own tools."""

from collections.abc import Iterator

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey
from orchestrator.states import Queue
from queues.names import LOW
from queues.pools import LS_LIMITS, USUAL_ID_CHARACTERS, fits_ls, ls_limit

_NEARLY_FULL = 0.9
_UNSERVED_MS = 60_000  # workers see a new pool within seconds
_LARGE = 10_000  # names; beyond some 1 MB the tools of ZooKeeper cannot list them


def look_at_service(survey: Survey) -> Iterator[Finding]:
    """Pools whose jobs are due for a while, and that none of the workers takes jobs of."""
    for pool in survey.limits:
        if not survey.workers or survey.consumers.get(pool):
            continue  # where there is no worker at all, that is told
        late = dict[Queue, int]()
        for queue in Queue:
            tokens = () if queue is Queue.DEAD else survey.tokens.get((queue, pool), ())
            late[queue] = sum(
                survey.now - token.due > _UNSERVED_MS
                for token in tokens
                if survey.layout.lock(pool, token.id) not in survey.locks
            )
        if any(late.values()):
            told = ", ".join(f"{number:,} in {queue}" for queue, number in late.items() if number)
            what = f"no worker takes jobs of pool {pool}, and some are due for more than a minute: {told}"
            remedy = (
                f"start one for it: `orchestrator worker --pool {pool.removesuffix(LOW)}`, or one for all"
            )
            yield Finding.of(Kind.UNSERVED_POOL, survey.layout.pool(pool), what, remedy)


def look_at_pools(survey: Survey) -> Iterator[Finding]:
    """Pauses, bounds and sizes."""
    layout = survey.layout
    for pool, limits in survey.limits.items():
        waiting = survey.sizes.get(layout.queue(Queue.ACCEPT, pool), 0)
        if limits.paused:
            lane = f"{pool}{LOW}"
            if lane in survey.limits:  # a pause holds for it too
                waiting += survey.sizes.get(layout.queue(Queue.ACCEPT, lane), 0)
            what = f"pool {pool} is paused; waiting in accept: {waiting:,}"
            remedy = f"`orchestrator queue resume {pool}` when the reason is gone"
            yield Finding.of(Kind.PAUSED_POOL, layout.pool(pool), what, remedy)
        if waiting >= limits.bound * _NEARLY_FULL:
            what = f"accept of pool {pool} has {waiting:,} jobs, and takes {limits.bound:,} at most"
            remedy = (
                "start more workers, submit less, or raise `bound` of the pool: `orchestrator config set`"
            )
            yield Finding.of(Kind.FULL_POOL, layout.queue(Queue.ACCEPT, pool), what, remedy)
        if limits.bound > ls_limit(USUAL_ID_CHARACTERS):
            what = (
                f"pool {pool} takes {limits.bound:,} jobs in a queue, too many to list by hand: {LS_LIMITS}"
            )
            remedy = "lower `bound` of the pool: `orchestrator config set`; spread the jobs over more pools"
            yield Finding.of(Kind.LARGE_BOUND, layout.pool(pool), what, remedy)
    too_long = {
        layout.queue(queue, pool)
        for (queue, pool), tokens in survey.tokens.items()
        if not fits_ls(token.name for token in tokens)
    }
    for path, size in survey.sizes.items():
        if size > _LARGE or path in too_long:
            what = f"{size:,} nodes stand in one folder: ZooKeeper's own tools may fail to list it"
            remedy = "spread the jobs over more pools; for finish, lower `retention_count` or `retention`"
            if path == survey.nodes.histories:
                remedy = "name jobs by what they do, not by the run: each name has a history for 90 days"
            yield Finding.of(Kind.LARGE_FOLDER, path, what, remedy)
