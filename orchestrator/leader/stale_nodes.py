"""Stale nodes: the preconditions of their removal, and candidates that must be found twice."""

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loguru import logger

from queues import (
    Check,
    CorruptRecord,
    Create,
    Delete,
    Operation,
    QueueSet,
    Record,
    Session,
    Transaction,
    commit_many,
)


class CheckedJob(NamedTuple):
    """A record as it was read, None if the job is gone, and the operations that check that it still is so."""

    record: Record | None
    preconditions: tuple[Operation, ...]


class JobPreconditions:
    """Reads records of jobs that may be gone."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._root = queue_set.root

    def read(self, ids: Iterable[str], *, prepare: bool = True) -> dict[str, CheckedJob]:
        """The jobs with these ids; those whose records cannot be read are left out.

        `prepare`: create the folders that the preconditions need. Without it nothing is written, for callers
        that only inspect.
        """
        root, found = self._root, dict[str, CheckedJob]()
        wanted = list(dict.fromkeys(ids))
        paths = [root.layout.record(job_id) for job_id in wanted]
        for job_id, path, node in zip(wanted, paths, root.session.get_many(paths), strict=True):
            if node is None:
                if prepare:
                    root.ensure_bucket(job_id)
                found[job_id] = CheckedJob(None, (Create(path), Delete(path)))
                continue
            try:
                record = Record.decode(job_id, node[0])
            except CorruptRecord:
                continue
            # Versions restart at 0 when the id is put again; the name of a token never comes back.
            token = root.layout.token(record.queue, record.pool, record.token)
            found[job_id] = CheckedJob(record, (Check(path, node[1].version), Check(token)))
        return found


@dataclass(frozen=True, slots=True)
class OrphanCandidate:
    """A node that seems to be an orphan: its identity when it was read, and the multi that removes it."""

    path: str
    identity: Hashable
    removal: Transaction
    reason: str


class OrphanCandidates:
    """Stores when each candidate was first seen. Used by one thread.

    `patience`: seconds for which a node has to stay unchanged, because a node of an operation in progress
    looks like an orphan too.
    """

    def __init__(self, session: Session, patience: float) -> None:
        self._session, self.patience = session, patience
        self._since: dict[tuple[str, Hashable], float] = {}

    def examine(self, found: Iterable[OrphanCandidate]) -> None:
        """Remove those of `found`, the complete list of this look, that were first seen long enough ago."""
        candidates, ripe = list(found), []
        now, before, self._since = time.monotonic(), self._since, {}
        for candidate in candidates:
            key = (candidate.path, candidate.identity)
            since = self._since[key] = before.get(key, now)
            if now - since >= self.patience:
                ripe.append(candidate)
        remove_orphans(self._session, ripe)


def remove_orphans(session: Session, candidates: Sequence[OrphanCandidate]) -> None:
    """Remove these nodes, each in its own multi; one that has changed since it was read stays."""
    refusals = commit_many(session, [candidate.removal for candidate in candidates])
    for candidate, refused in zip(candidates, refusals, strict=True):
        if refused is None:
            logger.info("{} is removed: {}", candidate.path, candidate.reason)
        else:  # it has changed since, or another worker leads: the next look decides
            logger.info("{} is not removed: {}", candidate.path, refused)
