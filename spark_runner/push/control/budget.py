"""Shares the limits of a push among its tasks: what they use together never exceeds the limits.

A task that gets less confirms it, and only then others get more. A task without contact keeps its share for
its lease, and then stops by itself: then others get it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_runner.push.errors import PushError
from spark_runner.push.settings import Limits


class Fenced(PushError):
    """A later attempt of this task has taken its place."""


class TaskId(NamedTuple):
    """A task: its partition, and the id of the attempt, which grows over all stages of an application."""

    partition: int
    attempt: int


class Share(NamedTuple):
    """What one task may use: requests in flight and per second, and the records and bytes of its buffer."""

    concurrency: int = 0
    rate: float = 0.0
    buffer_records: int = 0
    buffer_bytes: int = 0


_NOTHING = Share()
_MAX_GRANTS = 3  # that are kept for a task
UNLIMITED = 1e9
"""The requests per second of a task without a limit of the rate."""


class Grant(NamedTuple):
    """A share, by its number among those of the task."""

    version: int
    share: Share


@dataclass(slots=True)
class _Member:
    nonce: str
    seen: float
    grants: list[Grant] = field(default_factory=lambda: [Grant(0, _NOTHING)])
    """The one that the task has confirmed, the most of those that followed, and the last one."""

    @property
    def held(self) -> Share:
        """The most that it may use."""
        return _most(self.grants)

    def grant(self, share: Share) -> Grant:
        """A further grant."""
        self.grants.append(Grant(self.grants[-1].version + 1, share))
        if len(self.grants) > _MAX_GRANTS:
            between = self.grants[1:-1]
            self.grants[1:-1] = [Grant(between[-1].version, _most(between))]
        return self.grants[-1]


def _most(grants: list[Grant]) -> Share:
    return Share(*map(max, *(grant.share for grant in grants), _NOTHING))


class Budget:
    """The limits of a push, and the shares of its tasks. All times are those of one monotonic clock.

    `lease` are the seconds without contact after which a task uses nothing any more. With `is_exclusive`, for
    deliveries in order, an attempt gets its share once earlier ones at its partition use nothing: these get
    nothing any more, and have confirmed that, or ended, or their lease is over.
    """

    def __init__(self, limits: Limits, lease: float, *, is_exclusive: bool) -> None:
        self._limits, self._lease, self._is_exclusive = limits, lease, is_exclusive
        self._members = dict[TaskId, _Member]()
        self._latest = dict[int, int]()  # the latest attempt at each partition that was ever there
        self._attempts = dict[int, set[TaskId]]()  # those of each partition that are there

    def __iter__(self) -> Iterator[TaskId]:
        """The tasks that may use something."""
        return iter(self._members)

    def held(self, task: TaskId) -> Share:
        """The most that a task may use now."""
        return self._members[task].held

    def adjust(self, limits: Limits) -> None:
        """Change the limits."""
        self._limits = limits

    def join(self, task: TaskId, nonce: str, now: float) -> None:
        """A task is there, perhaps again; raises Fenced if a later attempt was, or another process is.

        `nonce` is that of its process.
        """
        if self._is_exclusive and self._latest.get(task.partition, task.attempt) > task.attempt:
            raise Fenced(f"a later attempt at partition {task.partition} has begun")
        member = self._members.setdefault(task, _Member(nonce, now))
        if member.nonce != nonce:
            raise Fenced(f"another process is attempt {task.attempt} at partition {task.partition}")
        member.seen = now
        self._latest[task.partition] = max(task.attempt, self._latest.get(task.partition, task.attempt))
        self._attempts.setdefault(task.partition, set()).add(task)

    def leave(self, task: TaskId) -> None:
        """A task has ended: it uses nothing any more."""
        if self._members.pop(task, None) is not None:
            self._attempts[task.partition].discard(task)

    def confirm(self, task: TaskId, version: int, now: float) -> bool:
        """A task uses the grant of this version, and none before it; returns whether that is news.

        Raises Fenced if it has no place any more.
        """
        member = self._members.get(task)
        if member is None:
            raise Fenced(f"the lease of attempt {task.attempt} at partition {task.partition} is over")
        member.seen = now
        kept = [grant for grant in member.grants if grant.version >= version] or member.grants[-1:]
        is_news = len(kept) < len(member.grants)
        member.grants = kept
        return is_news

    def expire(self, now: float) -> list[TaskId]:
        """Forget tasks without contact whose lease is over; returns them."""
        found = [task for task, member in self._members.items() if now - member.seen > self._lease]
        for task in found:
            self.leave(task)
        return found

    def rebalance(self) -> dict[TaskId, Grant]:
        """The grants that tasks get now, of those whose share changes."""
        tasks = sorted(self._members)
        entitled = [task for task in tasks if self._is_entitled(task)]
        wanted = dict(zip(entitled, shares(self._limits, len(entitled)), strict=True))
        held = {task: self._members[task].held for task in tasks}
        most = Share(*map(sum, zip(*wanted.values(), _NOTHING, strict=True)))
        free = [
            whole - sum(each)
            for whole, each in zip(most, zip(*held.values(), _NOTHING, strict=True), strict=True)
        ]
        return {
            task: grant
            for task in tasks
            if (grant := self._granted(task, wanted.get(task, _NOTHING), held[task], free))
        }

    def _granted(self, task: TaskId, wanted: Share, held: Share, free: list[float]) -> Grant | None:
        """The new grant of a task, which takes what it gets from what is free; None without a change."""
        found = list[float]()
        for index, (wish, has) in enumerate(zip(wanted, held, strict=True)):
            more = max(0, min(wish - has, free[index]))
            free[index] -= more
            found.append(min(wish, has + more))
        share = Share(int(found[0]), found[1], int(found[2]), int(found[3]))
        share = share if all(share) else _NOTHING  # of what is free, some kinds may not do
        member = self._members[task]
        return None if share == member.grants[-1].share else member.grant(share)

    def _is_entitled(self, task: TaskId) -> bool:
        if not self._is_exclusive:
            return True
        earlier = [other for other in self._attempts[task.partition] if other < task]
        is_latest = self._latest[task.partition] == task.attempt
        return is_latest and all(self._members[other].held == _NOTHING for other in earlier)


def shares(limits: Limits, tasks: int) -> list[Share]:
    """Equal shares of the limits; of more tasks than requests in flight, the last ones get nothing."""
    if not tasks or limits.is_suspended:
        return [_NOTHING] * tasks
    users = min(tasks, limits.concurrency, limits.buffer_records, limits.buffer_bytes)
    each, more = divmod(limits.concurrency, users)
    rate = limits.rate / users if limits.rate else UNLIMITED
    buffers = limits.buffer_records // users, limits.buffer_bytes // users
    used = [Share(each + (index < more), rate, *buffers) for index in range(users)]
    return used + [_NOTHING] * (tasks - users)
