"""One leader at a time, and only it performs duties: on a real server, with sessions that end."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from orchestrator.leader.duty import Duty
from orchestrator.leader.election import Election
from orchestrator.leader.leadership import Leadership
from orchestrator.model.errors import NotLeading
from orchestrator.model.paths import Nodes
from queues.model.codec import decode
from queues.model.errors import Conflict, ItemNotFound
from queues.model.operations import Create, Delete, Set
from queues.session import Session, SessionSettings
from queues.store.commit import commit
from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.claims_support import lose_reply, names_node
from tests.queues_support import expire
from tests.waiting import wait_until

SESSION_S = 2.0
TAKE_OVER_S = SESSION_S + 2 * 2 + 2  # as promised: session timeout, two ticks of 2 s, 2 s


class Counting:
    """A duty that counts its steps."""

    def __init__(self, name: str = "counting", pause: float = 0.01) -> None:
        self.name, self.pause = name, pause
        self.steps = 0

    def step(self) -> float:
        self.steps += 1
        return self.pause


class Failing(Counting):
    def __init__(self, error: Exception) -> None:
        super().__init__("failing")
        self.error = error

    def step(self) -> float:
        super().step()
        raise self.error


class Slow:
    """A duty that reads, pauses until the test releases it, and then writes."""

    name = "slow"

    def __init__(self, path: str) -> None:
        self.election: Election | None = None
        self.path = path
        self.looked, self.go_on = threading.Event(), threading.Event()
        self.outcome: list[object] = []

    def step(self) -> float:
        assert self.election is not None
        fence = self.election.fence()
        self.looked.set()
        assert self.go_on.wait(60)
        try:
            self.outcome += commit(self.election.session, [*fence, Create(self.path)])
        except Conflict as conflict:
            self.outcome.append(conflict)
        return 3600


class Candidate:
    def __init__(self, hosts: str, root: str, name: str, duties: Sequence[Duty]) -> None:
        self.session = Session(SessionSettings(hosts, session_timeout=SESSION_S, call_timeout=20)).start()
        self.election = Election(self.session, Nodes(root), name)
        self.leadership = Leadership(self.election, duties)

    @property
    def leads(self) -> bool:
        return self.leadership.is_leader

    def wait_leads(self, timeout: float = 10) -> None:
        wait_until(lambda: self.leads, timeout, "this one leads")


Stand = Callable[..., Candidate]


@pytest.fixture
def stand(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[Stand]:
    """Make a candidate with another session and start it; all are stopped at the end."""
    made: list[Candidate] = []

    def make(*duties: Duty, name: str = "", hosts: str = zookeeper_hosts, start: bool = True) -> Candidate:
        candidate = Candidate(hosts, zookeeper_root, name or f"worker-{len(made)}", duties)
        made.append(candidate)
        if start:
            candidate.leadership.start()
        return candidate

    yield make
    for candidate in made:
        candidate.leadership.stop()
        candidate.session.close()


@pytest.fixture
def proxy(zookeeper_hosts: str) -> Iterator[FaultProxy]:
    with ProxyLoop() as loop, FaultProxy(loop, zookeeper_hosts) as made:
        yield made


def leader_of(session: Session, root: str) -> dict[str, object]:
    found = session.get(Nodes(root).leader)
    return {} if found is None else decode(found[0])


# ---------------------------------------------------------------------- one leads
def test_of_two_candidates_one_leads_and_does_the_duties(stand: Stand, zookeeper_root: str) -> None:
    first, second = Counting(), Counting()
    leader = stand(first, name="alice")
    leader.wait_leads()
    standby = stand(second, name="bob")
    wait_until(lambda: first.steps > 20, 10, "the duty is done again and again")
    assert not standby.leads
    assert second.steps == 0
    document = leader_of(standby.session, zookeeper_root)
    assert document["worker"] == "alice"
    assert document["session"] == f"{leader.session.id:#x}"
    assert document.keys() == {"worker", "host", "pid", "session", "since"}
    stat = standby.session.exists(Nodes(zookeeper_root).leader)
    assert stat is not None
    assert stat.owner == leader.session.id


def test_a_leader_that_is_cut_off_stops_before_another_one_leads_which_is_soon(
    stand: Stand, proxy: FaultProxy
) -> None:
    before, after = Counting(), Counting()
    old = stand(before, hosts=proxy.address)
    old.wait_leads()
    new = stand(after)
    wait_until(lambda: before.steps > 0, 10, "the first does its duty")

    def new_leads_alone() -> bool:
        leads = new.leads
        assert not (leads and old.leads), "two lead"  # in this order: it led before the other one started
        return leads

    cut_at = time.monotonic()
    proxy.refuse(60)
    wait_until(new_leads_alone, 60, "the standby leads")
    assert time.monotonic() - cut_at < TAKE_OVER_S
    done = before.steps
    wait_until(lambda: after.steps > 20, 10, "it does the duty")
    assert before.steps == done
    proxy.heal()
    wait_until(lambda: old.session.wait_connected(0.1), 20, "the old one is back")
    steps = after.steps
    wait_until(lambda: after.steps > steps + 20, 10, "the new one continues")
    assert not old.leads
    assert before.steps == done


def test_a_leader_whose_session_was_ended_is_elected_anew_or_does_nothing(stand: Stand) -> None:
    duties = [Counting(), Counting()]
    candidates = [stand(duties[0])]
    candidates[0].wait_leads()
    candidates.append(stand(duties[1]))
    for _ in range(3):
        (leader,) = (candidate for candidate in candidates if candidate.leads)
        expire(leader.session)
        wait_until(lambda: any(candidate.leads for candidate in candidates), TAKE_OVER_S, "one of them leads")
        assert sum(candidate.election.verify() for candidate in candidates) == 1


# ---------------------------------------------------------------------- drain
def test_a_leader_that_drains_hands_over_at_once_although_its_session_continues(stand: Stand) -> None:
    first, second = Counting(), Counting()
    leader = stand(first)
    leader.wait_leads()
    standby = stand(second)
    assert leader.leadership.stop()
    done = first.steps
    standby.wait_leads()
    wait_until(lambda: second.steps > 5, 10, "the standby does the duty")
    assert leader.session.wait_connected(0)
    assert not leader.leads
    assert first.steps == done


def test_a_standby_that_drains_leaves_the_leader_alone(stand: Stand, zookeeper_root: str) -> None:
    leader = stand(name="alice")
    leader.wait_leads()
    standby = stand()
    standby.leadership.stop()
    assert leader.election.verify()
    assert leader_of(standby.session, zookeeper_root)["worker"] == "alice"


def test_a_former_leader_that_drains_does_not_remove_the_next_one(stand: Stand, zookeeper_root: str) -> None:
    former, leader = stand(start=False), stand(start=False)
    assert former.election.look(lambda: None)
    commit(leader.session, [Delete(Nodes(zookeeper_root).leader)])
    assert leader.election.look(lambda: None)
    assert former.leads  # it has not read since
    former.election.resign()
    assert leader.election.verify()
    assert not former.election.look(lambda: None)


def test_a_drain_is_quick_when_zookeeper_does_not_answer(stand: Stand, proxy: FaultProxy) -> None:
    leader = stand(Counting(), hosts=proxy.address)
    leader.wait_leads()
    proxy.cut_upstream(60)
    started = time.monotonic()
    leader.leadership.stop()
    assert time.monotonic() - started < 8  # a worker has ten seconds in all
    proxy.heal()


# ---------------------------------------------------------------------- the fence
def test_writes_of_a_leader_after_too_long_a_pause_are_refused(stand: Stand, zookeeper_root: str) -> None:
    slow = Slow(f"{zookeeper_root}/too-late")
    old = stand(slow, start=False)
    slow.election = old.election
    old.leadership.start()
    assert slow.looked.wait(10)
    new = stand()
    expire(old.session)  # the server expired it; its thread has noticed nothing and is connected again
    wait_until(lambda: old.leads or new.leads, TAKE_OVER_S, "one of them leads")
    slow.go_on.set()
    wait_until(lambda: slow.outcome, 10, "it has tried")
    assert isinstance(slow.outcome[0], Conflict)
    assert new.session.exists(slow.path) is None


def test_a_leader_that_was_replaced_without_noticing_is_found_out_before_it_acts(
    stand: Stand, zookeeper_root: str
) -> None:
    old, new = stand(start=False), stand(start=False)
    assert old.election.look(lambda: None)
    fence = old.election.fence()
    commit(old.session, [*fence])
    commit(new.session, [Delete(Nodes(zookeeper_root).leader)])
    assert new.election.look(lambda: None)
    assert old.leads
    assert not old.election.verify()
    assert new.election.verify()
    with pytest.raises(Conflict):
        commit(old.session, [*fence])
    assert not old.election.look(lambda: None)
    with pytest.raises(NotLeading):
        old.election.fence()


def test_a_leader_looks_again_before_each_step_of_a_duty(
    stand: Stand, zookeeper_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, looked = Counting(), Counting(), threading.Event()
    old = stand(before)
    old.wait_leads()

    def blind(_wake: object) -> bool:
        looked.set()
        return True

    # Its watch is lost, and its next rescan is far away.
    monkeypatch.setattr(old.election, "look", blind)
    wait_until(looked.is_set, 10, "no look of its own is under way any more")
    commit(old.session, [Delete(Nodes(zookeeper_root).leader)])
    new = stand(after)
    new.wait_leads()
    wait_until(lambda: after.steps > 5, 10, "the new one does the duty")
    done = before.steps
    wait_until(lambda: after.steps > 50, 10, "the new one continues")
    assert before.steps == done
    assert old.leads  # it has not noticed its loss


def test_a_candidate_that_never_led_has_no_fence(stand: Stand) -> None:
    with pytest.raises(NotLeading):
        stand(start=False).election.fence()


# ---------------------------------------------------------------------- accidents
@pytest.mark.parametrize("arrives", [True, False])
def test_a_leader_whose_election_got_no_reply_detects_that_it_leads(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    candidate = stand(start=False)
    lost = lose_reply(monkeypatch, names_node("/leader"), arrives=arrives)
    assert candidate.election.look(lambda: None)
    assert lost
    assert candidate.election.verify()
    commit(candidate.session, [*candidate.election.fence()])


def test_a_removed_node_is_created_again(stand: Stand, zookeeper_root: str) -> None:
    duty = Counting()
    candidate = stand(duty)
    candidate.wait_leads()
    fence = candidate.election.fence()
    commit(candidate.session, [Delete(Nodes(zookeeper_root).leader)])
    wait_until(candidate.election.verify, 10, "it leads again")
    with pytest.raises(Conflict):
        commit(candidate.session, [*fence])
    steps = duty.steps
    wait_until(lambda: duty.steps > steps, 10, "its duty continues")


def test_a_changed_node_is_created_anew(stand: Stand, zookeeper_root: str) -> None:
    candidate = stand(name="alice")
    candidate.wait_leads()
    commit(candidate.session, [Set(Nodes(zookeeper_root).leader, b"bob", -1)])
    wait_until(
        lambda: b"alice" in (candidate.session.get(Nodes(zookeeper_root).leader) or (b"",))[0],
        10,
        "the node is right again",
    )
    wait_until(candidate.election.verify, 10, "it leads again")
    commit(candidate.session, [*candidate.election.fence()])


# ---------------------------------------------------------------------- duties
@pytest.mark.parametrize("error", [ItemNotFound("x"), ValueError("a bug")])
def test_a_duty_that_fails_is_tried_again_and_hinders_no_other(stand: Stand, error: Exception) -> None:
    failing, counting = Failing(error), Counting()
    stand(failing, counting)
    wait_until(lambda: failing.steps >= 2 and counting.steps > 20, 20, "both are called again")
    assert failing.steps < counting.steps


def test_a_slow_duty_hinders_no_other(stand: Stand, zookeeper_root: str) -> None:
    slow, counting = Slow(f"{zookeeper_root}/slow"), Counting()
    candidate = stand(slow, counting, start=False)
    slow.election = candidate.election
    candidate.leadership.start()
    assert slow.looked.wait(10)
    steps = counting.steps
    wait_until(lambda: counting.steps > steps + 20, 10, "the other one continues")
    assert not slow.outcome
    slow.go_on.set()
    wait_until(lambda: slow.outcome, 10, "the slow one ends")


def test_each_duty_is_called_when_it_wants_to_be(stand: Stand, zookeeper_root: str) -> None:
    rare, often = Counting("rare", pause=3600), Counting("often")
    candidate = stand(rare, often)
    wait_until(lambda: rare.steps and often.steps, 10, "both are done")
    for _ in range(3):  # each election wakes them
        commit(candidate.session, [Delete(Nodes(zookeeper_root).leader)])
        wait_until(candidate.election.verify, 10, "it leads again")
        steps = often.steps
        wait_until(lambda: often.steps > steps + 5, 10, "what is due is done")  # noqa: B023 - called at once
    assert rare.steps == 1
