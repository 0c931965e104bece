"""Removes a job at the request of an operator, with all its nodes in ZooKeeper."""

from orchestrator.admin.job_changes import Operator, retry_on_conflict
from orchestrator.model.act import Act
from orchestrator.model.errors import JobHeld
from orchestrator.model.job_nodes import JobNodes
from orchestrator.model.states import Queue
from queues import (
    Check,
    Claim,
    Conflict,
    CorruptRecord,
    Create,
    Delete,
    ItemNotFound,
    Operation,
    QueueError,
    Token,
    commit,
)

_AT_ONCE = 500  # nodes of attempts in one multi; few jobs have more than three


class Removal:
    """Removes jobs of which no attempt is open. Files of their runs stay on the hosts where they ran."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._set = operator.set

    def remove(self, job_id: str) -> None:
        """Remove a job from any queue; files of its runs stay on the hosts where it ran.

        A job that cannot be read can be removed once it is in dead; before that this raises CorruptRecord.
        Raises ItemNotFound, JobHeld, AttemptOpen, StateConflict.
        """
        try:
            self._check(job_id)
            with self._operator.claimed(job_id) as claim:
                act = self._operator.trail.act("remove", f"from {claim.queue}")
                retry_on_conflict(lambda: self._remove(claim, act))
        except (CorruptRecord, ItemNotFound) as error:
            self._remove_unreadable(job_id, error)

    def _check(self, job_id: str) -> JobNodes:
        # Before the claim, so that the error for a running job names `job kill` and not its holder.
        job_nodes = self._operator.job_nodes(job_id)
        job_nodes.check_closed(job_id, self._set.get(job_id).queue)
        return job_nodes

    def _remove(self, claim: Claim, act: Act) -> None:
        job_nodes = self._check(claim.id)
        job_nodes.clear(self._set.session)
        deletes = job_nodes.deletes
        while len(deletes) > _AT_ONCE:  # the oldest attempts first: a crash in between leaves a whole job
            claim.commit(extra=deletes[:_AT_ONCE])
            deletes = deletes[_AT_ONCE:]
        entries = self._operator.entries(act, claim, None)
        claim.remove([*self._operator.side_nodes.removals(claim.record), *deletes, *entries])

    def _remove_unreadable(self, job_id: str, error: QueueError) -> None:
        """Remove the token in dead, and the record if there is one; raises `error` when there is no token."""
        for pool in self._set.pools.names(low=True):
            for token in self._set.tokens(Queue.DEAD, pool):
                if token.id == job_id:
                    self._remove_token(pool, token)
                    return
        raise error

    def _remove_token(self, pool: str, token: Token) -> None:
        layout, session = self._set.layout, self._set.session
        record, token_path = layout.record(token.id), layout.token(Queue.DEAD, pool, token)
        lock, stop = layout.lock(pool, token.id), layout.stop(pool, token.id)
        found = session.get(record)
        job_nodes = self._operator.job_nodes(token.id)
        job_nodes.check_closed(token.id, Queue.DEAD)
        job_nodes.clear(session)
        operations: list[Operation] = [Create(lock, ephemeral=True), Delete(token_path)]
        if found is not None:
            # Refused if the bytes have changed: the record may have been repaired meanwhile.
            operations += [Check(record, found[1].version), *job_nodes.deletes, Delete(record)]
        if session.exists(stop) is not None:
            operations.append(Delete(stop))
        trail = self._operator.trail
        act = trail.act("remove", "from dead; its record could not be read")
        operations += [Delete(lock), trail.entry(act, "job", token.id, pool=pool)]
        try:
            commit(session, operations)
        except Conflict as conflict:
            if conflict.ambiguous and session.exists(token_path) is None:
                return
            if conflict.index == 0:
                raise JobHeld(token.id, "", "try again later") from conflict
            raise
