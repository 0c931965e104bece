"""The limits of a push are shared among its tasks: together they never use more."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spark_runner.push.control.budget import UNLIMITED, Budget, Fenced, Grant, Share, TaskId, shares
from spark_runner.push.settings import Limits

LEASE_S = 10.0
NONCE = "process"
PARTITIONS = st.integers(0, 3)


@pytest.mark.parametrize("tasks", [1, 3, 7, 16, 40])
def test_shares_add_up_to_the_limits_and_are_equal(tasks: int) -> None:
    limits = Limits(concurrency=16, rate=100.0, buffer_records=1000, buffer_bytes=10_000)
    found = shares(limits, tasks)
    assert sum(share.concurrency for share in found) == 16
    assert sum(share.rate for share in found) == pytest.approx(100.0)
    assert 1000 - 16 < sum(share.buffer_records for share in found) <= 1000
    used = [share for share in found if share.concurrency]
    assert len(used) == min(tasks, 16)
    assert max(share.concurrency for share in used) - min(share.concurrency for share in used) <= 1


def test_without_a_limit_of_the_rate_each_task_has_none() -> None:
    assert {share.rate for share in shares(Limits(), 3)} == {UNLIMITED}


def test_a_suspended_push_has_no_shares() -> None:
    assert shares(Limits(is_suspended=True), 2) == [Share(), Share()]


def test_a_task_that_comes_gets_its_share_once_the_others_have_confirmed_theirs() -> None:
    budget = Budget(Limits(concurrency=8), LEASE_S, is_exclusive=False)
    first, second = TaskId(0, 0), TaskId(1, 0)
    budget.join(first, NONCE, 0.0)
    granted = budget.rebalance()
    assert granted[first].share.concurrency == 8
    budget.confirm(first, granted[first].version, 0.0)
    budget.join(second, NONCE, 1.0)
    granted = budget.rebalance()
    assert granted[first].share.concurrency == 4
    assert second not in granted, "the first one may still use all"
    budget.confirm(first, granted[first].version, 2.0)
    assert budget.rebalance()[second].share.concurrency == 4


def test_a_later_attempt_waits_for_the_lease_of_the_one_before_which_is_fenced() -> None:
    budget = Budget(Limits(), LEASE_S, is_exclusive=True)
    lost, again = TaskId(0, 0), TaskId(0, 1)
    budget.join(lost, NONCE, 0.0)
    granted = budget.rebalance()
    budget.confirm(lost, granted[lost].version, 1.0)
    budget.join(again, NONCE, 2.0)
    assert budget.rebalance() == {lost: Grant(2, Share())}
    with pytest.raises(Fenced, match="a later attempt at partition 0 has begun"):
        budget.join(lost, NONCE, 3.0)
    budget.confirm(again, 0, 11.0)
    assert budget.expire(11.0) == []
    assert budget.expire(11.1) == [lost]
    assert budget.rebalance()[again].share.concurrency == Limits().concurrency


def test_a_later_attempt_waits_although_enough_is_free() -> None:
    budget = Budget(Limits(concurrency=2), LEASE_S, is_exclusive=True)
    first, again = TaskId(0, 0), TaskId(0, 1)
    budget.join(first, NONCE, 0.0)
    budget.confirm(first, budget.rebalance()[first].version, 0.0)
    budget.adjust(Limits(concurrency=20))
    budget.join(again, NONCE, 1.0)
    assert budget.rebalance() == {first: Grant(2, Share())}


def test_an_earlier_attempt_is_fenced_for_ever() -> None:
    budget = Budget(Limits(), LEASE_S, is_exclusive=True)
    budget.join(TaskId(0, 0), NONCE, 0.0)
    budget.join(TaskId(0, 1), NONCE, 1.0)
    budget.leave(TaskId(0, 1))
    with pytest.raises(Fenced):
        budget.join(TaskId(0, 0), NONCE, 2.0)
    assert budget.rebalance() == {}


def test_a_task_is_one_process() -> None:
    budget = Budget(Limits(), LEASE_S, is_exclusive=False)
    budget.join(TaskId(0, 0), NONCE, 0.0)
    with pytest.raises(Fenced, match="another process is attempt 0 at partition 0"):
        budget.join(TaskId(0, 0), "another", 0.0)


def test_grants_that_a_task_does_not_confirm_take_no_memory_and_count() -> None:
    budget = Budget(Limits(concurrency=8), LEASE_S, is_exclusive=False)
    task = TaskId(0, 0)
    budget.join(task, NONCE, 0.0)
    for concurrency in [8, *range(1, 8)] * 50:
        budget.adjust(Limits(concurrency=concurrency))
        (grant,) = budget.rebalance().values()
    assert budget.held(task).concurrency == 8, "it may still use the most of them"
    assert not budget.confirm(task, 0, 1.0)
    assert budget.held(task).concurrency == 8
    assert budget.confirm(task, grant.version, 1.0)
    assert budget.held(task).concurrency == 7


def test_a_fenced_attempt_that_confirms_to_use_nothing_makes_way_at_once() -> None:
    budget = Budget(Limits(), LEASE_S, is_exclusive=True)
    first, again = TaskId(0, 0), TaskId(0, 1)
    budget.join(first, NONCE, 0.0)
    budget.confirm(first, budget.rebalance()[first].version, 0.0)
    budget.join(again, NONCE, 1.0)
    budget.confirm(first, budget.rebalance()[first].version, 1.0)
    assert budget.rebalance()[again].share.concurrency == Limits().concurrency


def test_a_task_whose_lease_is_over_has_no_place_any_more() -> None:
    budget = Budget(Limits(), LEASE_S, is_exclusive=False)
    budget.join(TaskId(0, 0), NONCE, 0.0)
    budget.rebalance()
    assert budget.expire(10.1) == [TaskId(0, 0)]
    with pytest.raises(Fenced, match="the lease of attempt 0 at partition 0 is over"):
        budget.confirm(TaskId(0, 0), 1, 10.2)


class Shares(RuleBasedStateMachine):
    """Tasks come and go, lose contact and come back; grants and confirmations arrive late, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = Limits(concurrency=8, rate=50.0, buffer_records=100, buffer_bytes=1000)
        self.budget = Budget(self.limits, LEASE_S, is_exclusive=True)
        self.now = 0.0
        self.uses = dict[TaskId, Share]()  # what live tasks use
        self.under_way = dict[TaskId, list[Grant]]()
        self.confirmed = dict[TaskId, int]()
        self.contact = dict[TaskId, float]()
        self.is_within = True  # tasks may use no more than the limits

    @rule(partition=PARTITIONS)
    def begin(self, partition: int) -> None:
        """A first attempt, or a further one: that before may be dead, or cut off."""
        attempt = max((task.attempt for task in self.contact if task.partition == partition), default=-1) + 1
        task = TaskId(partition, attempt)
        self.budget.join(task, NONCE, self.now)
        self.uses[task], self.under_way[task] = Share(), []
        self.confirmed[task], self.contact[task] = 0, self.now
        self.distribute()

    @precondition(lambda self: self.uses)
    @rule(data=st.data(), count=st.integers(1, 3))
    def receive(self, data: st.DataObject, count: int) -> None:
        """A task receives its grants and confirms the last one."""
        task = data.draw(st.sampled_from(sorted(self.uses)))
        received, self.under_way[task] = self.under_way[task][:count], self.under_way[task][count:]
        if received:
            self.uses[task], self.confirmed[task] = received[-1].share, received[-1].version
        try:
            self.budget.confirm(task, self.confirmed[task], self.now)
        except Fenced:
            self.uses.pop(task)
        else:
            self.contact[task] = self.now
        self.distribute()

    @precondition(lambda self: self.uses)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.uses)))
        self.uses.pop(task)
        self.budget.leave(task)
        self.distribute()

    @rule(seconds=st.floats(0.5, 6.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for task in list(self.uses):
            if self.now - self.contact[task] > LEASE_S:
                self.uses.pop(task)  # it stops by itself
        self.budget.expire(self.now)
        self.distribute()

    @rule(concurrency=st.integers(1, 20), rate=st.sampled_from([0.0, 10.0, 80.0]))
    def adjust(self, concurrency: int, rate: float) -> None:
        self.limits = Limits(concurrency=concurrency, rate=rate, buffer_records=100, buffer_bytes=1000)
        self.budget.adjust(self.limits)
        self.is_within = False  # smaller ones hold once tasks have confirmed them
        self.distribute()

    def distribute(self) -> None:
        for task, grant in self.budget.rebalance().items():
            if task in self.under_way:
                self.under_way[task].append(grant)

    @invariant()
    def nobody_uses_more_than_is_held(self) -> None:
        for task, share in self.uses.items():
            if task in set(self.budget):
                assert all(used <= held for used, held in zip(share, self.budget.held(task), strict=True))

    @invariant()
    def one_attempt_at_a_partition_uses_something(self) -> None:
        users = [task.partition for task, share in self.uses.items() if share.concurrency]
        assert len(users) == len(set(users))

    @invariant()
    def what_tasks_may_use_stays_within_the_limits_once_it_is(self) -> None:
        held = [self.budget.held(task) for task in self.budget]
        is_within = (
            sum(share.concurrency for share in held) <= self.limits.concurrency
            and sum(share.buffer_records for share in held) <= self.limits.buffer_records
            and sum(share.rate for share in held) <= (self.limits.rate or float("inf")) * (1 + 1e-9)
        )
        assert is_within or not self.is_within
        self.is_within = is_within

    def teardown(self) -> None:
        """Tasks that keep contact get all that there is, but for those that are not the latest."""
        latest = {task.partition: task.attempt for task in sorted(self.contact)}
        for _ in range(10):
            self.now += LEASE_S / 4
            for task in sorted(self.uses):
                for grant in self.under_way[task]:
                    self.uses[task], self.confirmed[task] = grant.share, grant.version
                self.under_way[task] = []
                self.budget.confirm(task, self.confirmed[task], self.now)
            self.budget.expire(self.now)
            self.distribute()
        used = sum(share.concurrency for share in self.uses.values())
        is_any = any(latest[task.partition] == task.attempt for task in self.uses)
        assert used == (self.limits.concurrency if is_any else 0)


TestShares = Shares.TestCase
TestShares.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
