"""Fails jobs that wait in accept for longer than `timeout.queued`, even if no worker has capacity."""

from collections.abc import Sequence

from loguru import logger

from orchestrator.audit.documents import AuditLog
from orchestrator.handlers.accept import failed_in_accept
from orchestrator.handlers.hooks import Hooks
from orchestrator.history.log_records import about
from orchestrator.leader.bulk_claims import AcceptDeadlines, claim_many, commit_and_release
from orchestrator.leader.duty import Fence, FenceOperations
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues import Claim, QueueError, QueueSet

_LOOK_SECONDS = 5.0  # by how much a job that came after the last look may fail late
_AT_ONCE = 100


class QueuedTimeout:
    """Moves jobs that have waited for too long to fail: in all pools, paused pools and low lanes included.

    It claims each job as an operator would, so that two leaders cannot fail it twice, and commits with the
    fence of the leader. A held job is being started and stays.
    """

    name = "queued-timeout"

    def __init__(
        self, queue_set: QueueSet, hooks: Hooks, fence: Fence, audit: AuditLog | None = None
    ) -> None:
        self._set, self._hooks, self._fence, self._audit = queue_set, hooks, fence, audit
        self._deadlines = AcceptDeadlines(queue_set)

    def step(self) -> float:
        """Fail at most a hundred overdue jobs; raises NotLeading, and the errors of reads."""
        fence = self._fence()
        self._deadlines.refresh()
        now = self._set.clock.confirmed_ms()
        overdue = self._deadlines.overdue(now)
        failed = self._fail(claim_many(self._set, overdue[:_AT_ONCE]), now, fence)
        if failed and len(overdue) > _AT_ONCE:
            return 0.0
        return min(_LOOK_SECONDS, max(0.0, (self._deadlines.next_after(now) - now) / 1000))

    def _fail(self, claims: Sequence[Claim], now: int, fence: FenceOperations) -> int:
        changes: dict[Claim, tuple[JobState, JobState]] = {}
        for claim in claims:
            try:
                before = JobState.from_payload(claim.record.payload)
                if _is_overdue(before, claim, now):
                    after = failed_in_accept(before, (now - claim.record.token.due) / 1000)
                    if self._audit is not None:
                        self._audit.write_submission(claim.record)
                    changes[claim] = before, after
                    continue
            except (ValueError, QueueError) as error:  # its handler counts that error against the job
                logger.warning("{} is past timeout.queued but cannot be failed: {}", claim.id, error)
            # Without this each look would claim it again.
            self._deadlines.disable(claim.record.pool, claim.record.token)
            claim.give_up()
        steps = [
            claim.transition(
                payload=after.to_payload(),
                queue=Queue.FAIL,
                extra=fence,
                release=True,
            )
            for claim, (_, after) in changes.items()
        ]
        failed = commit_and_release(steps)
        for claim in failed:
            self._report(claim, *changes[claim])
        return len(failed)

    def _report(self, claim: Claim, before: JobState, after: JobState) -> None:
        job_id, reason = claim.record.id, after.error.message if after.error is not None else ""
        about(claim.record, Queue.FAIL, after).info(
            "{} {} -> {} {}: {}", job_id, before.status, Queue.FAIL, after.status, reason
        )
        self._hooks.fire(lambda hook: hook.after_transition(job_id, before, after, Queue.FAIL))


def _is_overdue(state: JobState, claim: Claim, now: int) -> bool:
    """Whether the deadline of a claimed job is over; False for another status, which has its own handler.

    The comparison is that of `AcceptDeadlines.overdue`: otherwise a job of this very millisecond would never
    be looked at again.
    """
    limit = state.queued_limit
    return state.status is Status.ACCEPT and limit > 0 and claim.record.token.due + limit * 1000 <= now
