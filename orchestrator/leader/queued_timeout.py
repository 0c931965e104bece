"""Jobs that wait in accept for longer than `timeout.queued` fail, also when no worker has room for them."""

import math
from collections.abc import Iterator, Sequence

from loguru import logger

from orchestrator.audit.documents import AuditLog
from orchestrator.handlers.accept import queued_too_long
from orchestrator.hooks import Hooks
from orchestrator.leader.duty import Fence
from orchestrator.leader.taking import settle, take
from orchestrator.leader.token_folders import TokenFolders
from orchestrator.models.job import JobState
from orchestrator.states import Queue, Status, check_transition
from orchestrator.transitions import about
from queues.claim import Claim, Transition
from queues.claim_attempt import Candidate
from queues.documents import timestamp
from queues.errors import CorruptRecord, QueueError
from queues.names import Token
from queues.operations import Operation
from queues.queue import QueueSet
from queues.record import Record

_LOOK_SECONDS = 5.0  # how late a job may fail, when it came after the last look
_AT_ONCE = 100
_READ_AT_ONCE = 500  # records; all of a pool would be many megabytes


class QueuedTimeout:
    """Brings jobs that have waited for too long to fail: in all pools, paused ones and low lanes too.

    By claim, as an operator would, so that two who do it at once cannot do it twice, and with the fence of
    the leader; a job that is held is being started, and is left alone. A record is read once for each token:
    its deadline is remembered.
    """

    name = "queued-timeout"

    def __init__(
        self, queue_set: QueueSet, hooks: Hooks, fence: Fence, audit: AuditLog | None = None
    ) -> None:
        self._set, self._hooks, self._fence, self._audit = queue_set, hooks, fence, audit
        self._folders = TokenFolders(queue_set, Queue.ACCEPT)
        self._deadlines: dict[str, dict[str, float]] = {}  # pool -> name of a token -> epoch ms, inf for none

    def step(self) -> float:
        """Fail those whose time is over, a hundred at most; raises NotLeading, and what reads raise."""
        fence = self._fence()
        for pool, names in self._folders.changes():
            self._learn(pool, names)
        now = self._set.clock.confirmed_ms()
        late = sorted(
            (deadline, pool, name)
            for pool, deadlines in self._deadlines.items()
            for name, deadline in deadlines.items()
            if deadline <= now
        )
        candidates = list(_candidates((pool, name) for _, pool, name in late[:_AT_ONCE]))
        failed = self._fail(take(self._set, candidates), now, fence)
        if failed and len(late) > _AT_ONCE:
            return 0.0
        return min(_LOOK_SECONDS, max(0.0, (self._earliest(now) - now) / 1000))

    def _learn(self, pool: str, names: Sequence[str]) -> None:
        known = self._deadlines.get(pool, {})
        deadlines = {name: known[name] for name in names if name in known}
        unknown = [name for name in names if name not in known]
        for start in range(0, len(unknown), _READ_AT_ONCE):
            part = list(_candidates((pool, name) for name in unknown[start : start + _READ_AT_ONCE]))
            layout = self._set.layout
            found = self._set.session.get_many([layout.record(c.token.id) for c in part])
            for candidate, node in zip(part, found, strict=True):
                token = candidate.token
                if node is not None and (deadline := _deadline(token, node[0])) is not None:
                    deadlines[token.name] = deadline
        if deadlines:
            self._deadlines[pool] = deadlines
        else:
            self._deadlines.pop(pool, None)

    def _earliest(self, after: int) -> float:
        # What is late already was tried: it is held, or the next look finds it gone.
        deadlines = (d for of_pool in self._deadlines.values() for d in of_pool.values() if d > after)
        return min(deadlines, default=math.inf)

    # ------------------------------------------------------------------ fail
    def _fail(self, claims: Sequence[Claim], now: int, fence: tuple[Operation, ...]) -> int:
        changes: dict[Transition, tuple[JobState, JobState]] = {}
        for claim in claims:
            try:
                before = JobState.model_validate(claim.record.payload)
                after = self._after(before, claim, now)
                if after is not None:
                    if self._audit is not None:
                        self._audit.write_submission(claim.record)
                    changes[_step(claim, after, fence)] = before, after
                    continue
            except (ValueError, QueueError) as error:  # whoever handles it counts that against it
                logger.warning("{} does not fail, though its time is over: {}", claim.id, error)
            # Else it would be claimed at each look.
            self._deadlines[claim.record.pool][claim.record.token.name] = math.inf
            claim.give_up()
        done = settle(list(changes))
        for step in done:
            self._tell(step.claim.record, *changes[step])
        return len(done)

    def _after(self, before: JobState, claim: Claim, now: int) -> JobState | None:
        waited, limit = (now - claim.record.token.due) / 1000, before.queued_limit
        # The very comparison that made it late: else one of this millisecond would never be looked at again.
        if before.status is not Status.ACCEPT or not limit > 0 or claim.record.token.due + limit * 1000 > now:
            return None  # of another status: for the handler of that
        check_transition(before.status, Status.ERROR_FAIL)
        at = timestamp()
        return before.evolve(
            status=Status.ERROR_FAIL,
            error=queued_too_long(waited, before.queued_limit),
            handler_errors=0,
            ended=at,
            updated=at,
            times={**before.times, Queue.FAIL.value: at},
        )

    def _tell(self, record: Record, before: JobState, after: JobState) -> None:
        job_id, reason = record.id, after.error.message if after.error is not None else ""
        about(record, Queue.FAIL, after).info(
            "{} {} -> {} {}: {}", job_id, before.status, Queue.FAIL, after.status, reason
        )
        self._hooks.fire(lambda hook: hook.after_transition(job_id, before, after, Queue.FAIL))


def _step(claim: Claim, after: JobState, fence: tuple[Operation, ...]) -> Transition:
    payload = after.model_dump(mode="json", exclude_defaults=True)
    return claim.transition(payload=payload, queue=Queue.FAIL, extra=fence, release=True)


def _candidates(places: Iterator[tuple[str, str]]) -> Iterator[Candidate]:
    for pool, name in places:
        if (token := Token.parse(name)) is not None:
            yield Candidate(Queue.ACCEPT, pool, token)


def _deadline(token: Token, data: bytes) -> float | None:
    """When its time is over, in epoch ms; None when the record is not of this token: it is just moving."""
    try:
        record = Record.decode(token.id, data)
        if record.token != token or record.queue != Queue.ACCEPT:
            return None
        state = JobState.model_validate(record.payload)
    except (CorruptRecord, ValueError):
        return math.inf  # whoever claims it brings it to dead
    if state.status is not Status.ACCEPT or state.queued_limit <= 0:
        return math.inf
    return token.due + state.queued_limit * 1000
