import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from queues.model.errors import OutcomeUnknown
from queues.model.operations import Operation
from queues.session import Login, ReplyLost, Session, boottime
from queues.store.commit import commit
from spark_runner.driver.attempt_holder import AttemptHolder, Superseded
from spark_runner.driver.push_nodes import PushNodes
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import MAX_TABLES, Attempt, AttemptState, intent, outcome_facts
from spark_runner.push.control.budget import TaskId
from spark_runner.push.positions import OF_NAME
from spark_runner.push.pushes import Pushes
from tests.queues_support import Open, expire
from tests.run_plans import run_plan
from tests.waiting import wait_until

PLACE = {"backend": "local", "host": "h", "boot": "b"}


@pytest.fixture
def path(open_queues: Open, zookeeper_root: str) -> str:
    path = f"{zookeeper_root}/attempt-1-key"
    commit(open_queues().session, [intent(path, run_key="key", number=1, place=PLACE, at="now")])
    return path


def holder(session: Session, path: str, incarnation: str) -> AttemptHolder:
    plan = run_plan(attempt_path=path, stop_path=f"{path}-stop", incarnation=incarnation)
    return AttemptHolder(session, plan)


def state_of(session: Session, path: str) -> tuple[AttemptState, str]:
    attempt = Attempt.read(session, path)
    assert attempt is not None
    return attempt.state, attempt.incarnation


def test_one_driver_takes_the_attempt_and_the_second_is_superseded(open_queues: Open, path: str) -> None:
    session = open_queues().session
    first, second = holder(session, path, "first"), holder(open_queues().session, path, "second")
    first.take()
    with pytest.raises(Superseded, match="started by another driver, of submission first"):
        second.take()
    assert session.exists(f"{path}/alive") is not None
    first.end({"state": "succeeded"})
    assert state_of(session, path) == (AttemptState.SUCCEEDED, "first")
    assert session.exists(f"{path}/alive") is None
    with pytest.raises(Superseded, match="succeeded"):
        second.take()


def test_a_submission_that_its_cluster_starts_a_second_time_is_superseded_by_its_first_start(
    open_queues: Open, path: str
) -> None:
    session = open_queues().session
    first, again = holder(session, path, "same"), holder(open_queues().session, path, "same")
    first.take()
    with pytest.raises(Superseded, match="another driver"):
        again.take()
    first.end({"state": "succeeded"})
    assert state_of(session, path) == (AttemptState.SUCCEEDED, "same")


@pytest.mark.parametrize("was_done", [True, False])
def test_a_start_of_which_nothing_was_heard_is_looked_up_when_zookeeper_is_back(
    open_queues: Open, path: str, monkeypatch: pytest.MonkeyPatch, was_done: bool
) -> None:
    session = open_queues().session

    def unheard(session: Session, operations: Sequence[Operation], **_: object) -> None:
        if was_done:
            commit(session, operations)
        raise OutcomeUnknown("it stayed away")

    monkeypatch.setattr("spark_runner.driver.attempt_holder.commit", unheard)
    driver = holder(session, path, "driver")
    if was_done:
        driver.take()
        assert state_of(session, path) == (AttemptState.STARTED, "driver")
        monkeypatch.undo()
        driver.end({"state": "succeeded"})
    else:
        with pytest.raises(OutcomeUnknown):  # a failure before the start: the worker submits it again
            driver.take()


def test_an_attempt_that_is_closed_between_look_and_take_is_not_taken(
    open_queues: Open, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_queues().session
    read = Attempt.read
    stale = read(session, path)
    assert stale is not None
    commit(session, [stale.advance(AttemptState.CLOSED)])
    answers = [stale]
    monkeypatch.setattr(Attempt, "read", lambda *args: answers.pop() if answers else read(*args))
    with pytest.raises(Superseded, match="closed"):
        holder(session, path, "late").take()
    assert state_of(session, path)[0] is AttemptState.CLOSED


def test_an_outcome_is_refused_once_the_attempt_was_given_up(open_queues: Open, path: str) -> None:
    session = open_queues().session
    driver = holder(open_queues().session, path, "driver")
    driver._thread = type("Unstarted", (), {"start": lambda _self: None})()  # noqa: SLF001 - its guard would end this process, as it should
    driver.take()
    attempt = Attempt.read(session, path)
    assert attempt is not None
    commit(session, [attempt.advance(AttemptState.LOST)])
    with pytest.raises(Superseded, match="lost"):
        driver.end({"state": "succeeded"})
    assert state_of(session, path)[0] is AttemptState.LOST


def test_lost_replies_are_recognised_as_the_drivers_own_doing(
    open_queues: Open, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_queues().session
    send, seen = Session.send, []

    def lossy(self: Session, operations: Sequence[Operation], timeout: float) -> list[Any]:
        results = send(self, operations, timeout)
        if tuple(operations) not in seen:  # the first send of each multi is applied and its reply lost
            seen.append(tuple(operations))
            raise ReplyLost("lost by the test")
        return results

    monkeypatch.setattr(Session, "send", lossy)
    driver = holder(session, path, "driver")
    driver.take()
    driver.end({"state": "failed", "exit_code": 3})
    assert state_of(session, path) == (AttemptState.FAILED, "driver")


def test_alive_is_made_again_after_a_lost_session(open_queues: Open, path: str) -> None:
    watcher, session = open_queues().session, open_queues().session
    driver = holder(session, path, "driver")
    driver.take()
    expire(session)
    wait_until(lambda: watcher.exists(f"{path}/alive") is not None, 15, "alive is there again")
    driver.end({"state": "succeeded"})


def test_the_run_of_an_attempt_is_the_one_of_its_node_whatever_its_driver_has_written() -> None:
    written = {"run_key": "key", "attempt": 99, "state": "started"}
    assert Attempt("/jobs/id/attempt-3-key", 1, written).run == "key-3"
    assert Attempt("/jobs/id/attempt-3", 1, written).run == "key-3"


@pytest.mark.parametrize("written", [None, 7, "", "user", "world:anyone", "a:b", "run:" + "x" * 28 + "\n"])
def test_only_a_valid_login_in_an_attempt_gets_rights(written: object) -> None:
    assert Attempt("/jobs/id/attempt-3-key", 1, {"login": written}).login == ""
    login = Login.random("run-key-3").digest_id
    assert Attempt("/jobs/id/attempt-3-key", 1, {"login": login}).login == login


def test_previews_stay_out_of_zookeeper() -> None:
    table = {"target": "t", "rows": 1, "columns": ["a"], "preview": [["secret"]]}
    facts = outcome_facts({"state": "succeeded", "tables": [table]})
    assert facts == {"tables": [{"target": "t", "rows": 1}]}
    many = outcome_facts({"state": "succeeded", "tables": [table] * (MAX_TABLES + 7)})
    assert (len(many["tables"]), many["tables_left_out"]) == (MAX_TABLES, 7)


def test_progress_is_shown_though_alive_was_made_by_a_resent_take(open_queues: Open, path: str) -> None:
    watcher, session = open_queues().session, open_queues().session
    driver = holder(session, path, "driver")
    expire(session)  # between the first and the second send of the take
    driver.take()
    driver.report("phase one")
    wait_until(lambda: b"phase one" in (watcher.get(f"{path}/alive") or (b"",))[0], 10, "the phase is shown")
    driver.end({"state": "succeeded"})


def test_a_driver_that_was_suspended_for_longer_than_its_lease_ends_itself_before_anything_is_heard(
    open_queues: Open, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = list[int]()
    monkeypatch.setattr(AttemptHolder, "_exit", lambda _self, code, _reason: ended.append(code))
    driver = holder(open_queues().session, path, "first")
    driver.take()
    monkeypatch.setattr("queues.session.contact.boottime", lambda: boottime() + 3600)
    try:
        wait_until(lambda: ended[:1] == [exit_codes.NO_CONTACT], 10, "it ends")
    finally:
        driver._ended.set()  # noqa: SLF001 - else its thread would continue


def test_a_driver_that_was_suspended_tries_no_longer_than_its_lease_to_record_its_outcome(
    open_queues: Open, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, slept, tries = holder(open_queues().session, path, "first"), [0.0], list[float]()
    driver.take()

    def away() -> Attempt:
        tries.append(boottime())
        slept[0] = 3600.0  # the machine is suspended
        raise OutcomeUnknown("no answer")

    monkeypatch.setattr("spark_runner.driver.attempt_holder.boottime", lambda: boottime() + slept[0])
    monkeypatch.setattr("spark_runner.driver.attempt_holder._BEAT_SECONDS", 0.1)
    monkeypatch.setattr(driver, "_read", away)
    driver._ended.set()  # noqa: SLF001 - polls for orders do not count
    driver._thread.join(10)  # noqa: SLF001
    tries.clear()
    slept[0] = 0.0
    driver.end({"state": "succeeded"})
    assert len(tries) == 1


# ---------------------------------------------------------------------- positions of pushes
def test_the_positions_at_the_end_are_the_last_ones_though_the_guard_is_at_it(
    open_queues: Open, path: str
) -> None:
    session, guard_writes, has_ended = open_queues().session, threading.Event(), threading.Event()

    def write(operations: Sequence[Operation]) -> None:
        if not guard_writes.is_set():
            guard_writes.set()
            has_ended.wait(1)  # the end has to wait for this
        commit(session, operations)

    nodes = PushNodes(
        session,
        run_plan(attempt_path=path, delivered={"attempt": {"dst#0": {"0": [7, "digest"]}}}),
        Pushes(),
        write,
    )
    with ThreadPoolExecutor() as pool:
        guard = pool.submit(nodes.keep_positions)
        assert guard_writes.wait(20)
        nodes.keep_positions(is_done=True)
        has_ended.set()
        guard.result(20)
    nodes.keep_positions()  # a last look of the guard
    assert session.get(f"{path}/positions") is None, "after a success, nothing is left to go on after"


def test_an_outcome_is_recorded_whatever_positions_a_task_reports(open_queues: Open, path: str) -> None:
    session = open_queues().session
    driver = holder(session, path, "driver")
    driver.take()
    kept = driver.streams.pushes._kept.start(OF_NAME, "numbers")  # noqa: SLF001 - as a push does
    kept.add([(TaskId(0, 1), {"position": "a file \udcff", "read_position": 1})])
    driver.end({"state": "succeeded"})
    assert state_of(session, path) == (AttemptState.SUCCEEDED, "driver")
