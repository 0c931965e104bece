"""Bulk claims of jobs for the leader: despite pauses of their pools, and never from a holder.

A folder is listed again only after a token was added or removed, and a record is read once per token.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from loguru import logger

from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues import (
    Candidate,
    Claim,
    CorruptRecord,
    ItemNotFound,
    NotClaimed,
    QueueSet,
    Record,
    Stat,
    Token,
    Transition,
    is_token,
    order_of,
    run_transitions,
)

_READ_AT_ONCE = 500  # records; those of a whole pool would be many megabytes


class TokenFolders:
    """The tokens of a queue in all pools, low lanes included. Used by one thread."""

    def __init__(self, queue_set: QueueSet, queue: Queue) -> None:
        self._set, self._queue = queue_set, queue
        self._listed: dict[str, int] = {}  # pool -> children_zxid of the listing that was returned last

    def stats(self) -> Mapping[str, Stat]:
        """The stat of each pool's folder, in two requests."""
        pools, layout = self._set.pools.names(low=True), self._set.layout
        found = self._set.session.get_many([layout.queue(self._queue, pool) for pool in pools])
        return {pool: node[1] for pool, node in zip(pools, found, strict=True) if node is not None}

    def names(self, pool: str) -> list[str]:
        """The tokens of a pool, in the order in which they are due."""
        return self._list(pool)[0]

    def changes(self) -> Iterator[tuple[str, list[str]]]:
        """Each pool that has changed since the last call, with all its tokens; none for one that is gone.

        A pool at which the caller fails is returned again by the next call.
        """
        stats = self.stats()
        for pool in self._listed.keys() - stats.keys():
            yield pool, []
            del self._listed[pool]
        for pool, stat in stats.items():
            if self._listed.get(pool) != stat.children_zxid:
                names, zxid = self._list(pool)
                yield pool, names
                self._listed[pool] = zxid

    def _list(self, pool: str) -> tuple[list[str], int]:
        listed = self._set.session.listing(self._set.layout.queue(self._queue, pool))
        if listed is None:
            return [], -1
        return sorted(filter(is_token, listed[0]), key=order_of), listed[1].children_zxid


class AcceptDeadlines:
    """When `timeout.queued` of each job in accept is over. Used by one thread."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._folders = TokenFolders(queue_set, Queue.ACCEPT)
        self._by_pool: dict[str, dict[str, float]] = {}  # pool -> name of a token -> epoch ms, inf for none

    def refresh(self) -> None:
        """Read the records of new tokens; raises the errors of reads."""
        for pool, names in self._folders.changes():
            self._read(pool, names)

    def overdue(self, now: int) -> list[Candidate]:
        """The jobs whose deadline is not after `now`, in epoch milliseconds, the longest overdue first."""
        late = sorted(
            (deadline, pool, name)
            for pool, deadlines in self._by_pool.items()
            for name, deadline in deadlines.items()
            if deadline <= now
        )
        return list(_candidates((pool, name) for _, pool, name in late))

    def next_after(self, now: int) -> float:
        """The first deadline after `now`, in epoch milliseconds; inf without one."""
        # A job that is overdue was tried already: it is held, or the next refresh finds it gone.
        deadlines = (d for of_pool in self._by_pool.values() for d in of_pool.values() if d > now)
        return min(deadlines, default=math.inf)

    def disable(self, pool: str, token: Token) -> None:
        """Return this token from `overdue` no more."""
        self._by_pool[pool][token.name] = math.inf

    def _read(self, pool: str, names: Sequence[str]) -> None:
        known = self._by_pool.get(pool, {})
        deadlines = {name: known[name] for name in names if name in known}
        unknown = [name for name in names if name not in known]
        for start in range(0, len(unknown), _READ_AT_ONCE):
            chunk = list(_candidates((pool, name) for name in unknown[start : start + _READ_AT_ONCE]))
            layout = self._set.layout
            found = self._set.session.get_many([layout.record(c.token.id) for c in chunk])
            for candidate, node in zip(chunk, found, strict=True):
                token = candidate.token
                if node is not None and (deadline := _deadline(token, node[0])) is not None:
                    deadlines[token.name] = deadline
        if deadlines:
            self._by_pool[pool] = deadlines
        else:
            self._by_pool.pop(pool, None)


def _candidates(names: Iterator[tuple[str, str]]) -> Iterator[Candidate]:
    for pool, name in names:
        if (token := Token.parse(name)) is not None:
            yield Candidate(Queue.ACCEPT, pool, token)


def _deadline(token: Token, data: bytes) -> float | None:
    """The deadline in epoch ms; None if the record names another token, because the job is moving."""
    try:
        record = Record.decode(token.id, data)
        if record.token != token or record.queue != Queue.ACCEPT:
            return None
        state = JobState.from_payload(record.payload)
    except (CorruptRecord, ValueError):
        return math.inf  # the worker that claims it moves it to dead
    if state.status is not Status.ACCEPT or state.queued_limit <= 0:
        return math.inf
    return token.due + state.queued_limit * 1000


def claim_many(queue_set: QueueSet, candidates: Sequence[Candidate]) -> list[Claim]:
    """Claim the candidates that are still in place and unheld; one that cannot be read goes to dead."""
    if not candidates:
        return []
    claims = []
    for candidate, outcome in zip(candidates, queue_set.take_many(candidates), strict=True):
        match outcome:
            case Claim():
                claims.append(outcome)
            case NotClaimed():
                pass  # another worker holds it
            case CorruptRecord() | ItemNotFound():
                queue_set.move_to_dead(candidate.queue, candidate.pool, candidate.token, outcome)
            case _:
                logger.warning("{} was not claimed: {}", candidate.token.id, outcome)
    return claims


def commit_and_release(steps: Iterable[Transition]) -> list[Claim]:
    """Commit these transitions together; returns the claims of those that were committed, and keeps none."""
    done = []
    for step, error in run_transitions(steps):
        if error is None:
            done.append(step.claim)
        else:
            logger.warning("{} is released unchanged: {}", step.claim.id, error)
            step.claim.give_up()
    return done
