"""The judge of the transaction log detects each broken promise, in a log made for it."""

import json
from pathlib import Path

import pytest

from tests.chaos.log_judge import LogJudge, logged_violations
from tests.chaos.transaction_log import Change, Created, Deleted, Transaction, Written

ROOT = "/r"
RECORD = f"{ROOT}/jobs/0a/x"
ATTEMPT = f"{RECORD}/attempt-1-k"
LOCK = f"{ROOT}/locks/default/x"
ELSEWHERE = f"{ROOT}/locks/other/x"
STOP = f"{ROOT}/stops/default/x"
NOW = 1_000_000
WORKER, DRIVER, OTHER = 11, 12, 13


def token(queue: str = "accept", due: int = NOW) -> str:
    return f"{ROOT}/queues/{queue}/default/queue-|x|{due:011x}|0000000000001"


def record(queue: str = "accept", due: int = NOW, run_key: str = "k") -> bytes:
    name = token(queue, due).rpartition("/")[2]
    return json.dumps({"run_key": run_key, "queue": queue, "pool": "default", "token": name}).encode()


def attempt(state: str, run_key: str = "k") -> bytes:
    return json.dumps({"state": state, "run_key": run_key}).encode()


def lock(name: str = "w0", owner: int = WORKER) -> Created:
    return Created(LOCK, json.dumps({"worker": name}).encode(), owner)


Step = tuple[int, list[Change]]


def put(due: int = NOW) -> list[Change]:
    return [Created(RECORD, record(due=due)), Created(token(due=due), b"")]


def claim(due: int = NOW) -> list[Change]:
    return [lock(), Written(RECORD, record(due=due), 1)]


def begun() -> list[Change]:
    """From accept to running, with an attempt."""
    moved: list[Change] = [
        Deleted(token()),
        Written(RECORD, record("running"), 2),
        Created(token("running"), b""),
    ]
    return [*moved, Created(ATTEMPT, attempt("intent"))]


def judged(*steps: Step) -> list[str]:
    log = [Transaction(zxid, session, NOW, tuple(changes)) for zxid, (session, changes) in enumerate(steps)]
    return list(LogJudge(ROOT).violations(log))


def test_a_job_that_is_put_claimed_run_and_removed_violates_nothing() -> None:
    ended: list[Change] = [Deleted(token("running")), Deleted(ATTEMPT), Deleted(RECORD), Deleted(LOCK)]
    assert not judged(
        (OTHER, put()),
        (WORKER, claim()),
        (WORKER, begun()),
        (DRIVER, [Written(ATTEMPT, attempt("started"), 1)]),
        (DRIVER, [Written(ATTEMPT, attempt("succeeded"), 2)]),
        (WORKER, ended),
        (OTHER, put()),
    )


@pytest.mark.parametrize(
    ("session", "changes", "words"),
    [
        (OTHER, [Written(RECORD, record(), 2)], "without its lock"),
        (OTHER, [Deleted(RECORD), Deleted(token())], "without its lock"),
        (WORKER, [Created(token("running"), b"")], "has tokens in 2 queues"),
        (WORKER, [Deleted(token())], "has tokens in 0 queues"),
        (WORKER, [Deleted(RECORD)], "has no record"),
        (WORKER, [Written(RECORD, record("running"), 2)], "its record names"),
        (WORKER, [Written(RECORD, record(), 3)], "gap"),
        (WORKER, [Created(ATTEMPT, attempt("started"))], "began as started"),
        (WORKER, [Created(ATTEMPT, attempt("intent", "of a later one"))], "an attempt of put of a later one"),
        (OTHER, [Created(ATTEMPT, attempt("intent"))], "intent without the lock"),
        (WORKER, [Written(RECORD, record(run_key="another"), 2)], "its run key changed from k to another"),
        (OTHER, [Created(ELSEWHERE, b"{}", OTHER)], "it is held 2 times"),
        (WORKER, [Deleted(LOCK), Created(ELSEWHERE, b"{}", WORKER)], "it is held in another pool"),
    ],
)
def test_a_claimed_item_is_changed_as_it_must_not_be(session: int, changes: list[Change], words: str) -> None:
    found = judged((OTHER, put()), (WORKER, claim()), (session, changes))
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["succeeded"], "from intent@0 to succeeded@1"),
        (["lost"], "from intent@0 to lost@1"),
        (["started", "closed"], "from started@1 to closed@2"),
        (["started", "started"], "from started@1 to started@2"),
        (["started", "lost", "succeeded"], "from lost@2 to succeeded@3"),
        (["killed", "started"], "from killed@1 to started@2"),
    ],
)
def test_an_attempt_goes_where_it_must_not(states: list[str], words: str) -> None:
    writes: list[Step] = [
        (WORKER, [Written(ATTEMPT, attempt(state), version)]) for version, state in enumerate(states, 1)
    ]
    found = judged((OTHER, put()), (WORKER, claim()), (WORKER, begun()), *writes)
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize("states", [["closed"], ["started", "lost"]])
def test_an_outcome_that_only_the_holder_may_write_is_written_by_another_session(states: list[str]) -> None:
    writes: list[Step] = [
        (OTHER, [Written(ATTEMPT, attempt(state), version)]) for version, state in enumerate(states, 1)
    ]
    found = judged((OTHER, put()), (WORKER, claim()), (WORKER, begun()), *writes)
    assert [words.split(" (")[0] for words in found] == [
        f"x: an attempt became {states[-1]} without the lock of its item"
    ]


@pytest.mark.parametrize("state", ["intent", "started"])
def test_an_attempt_that_is_open_is_removed(state: str) -> None:
    ends: list[Change] = [Deleted(ATTEMPT), Deleted(RECORD), Deleted(token("running")), Deleted(LOCK)]
    starts: list[Step] = [(DRIVER, [Written(ATTEMPT, attempt("started"), 1)])] if state == "started" else []
    begins: list[Step] = [(OTHER, put()), (WORKER, claim()), (WORKER, begun()), *starts]
    (found,) = judged(*begins, (WORKER, ends))
    assert f"an attempt that is {state} was removed" in found


def test_an_attempt_is_made_a_second_time() -> None:
    steps: list[Step] = [(OTHER, put()), (WORKER, claim()), (WORKER, begun())]
    steps += [(WORKER, [Written(ATTEMPT, attempt("closed"), 1)]), (WORKER, [Deleted(ATTEMPT)])]
    (found,) = judged(*steps, (WORKER, [Created(ATTEMPT, attempt("intent"))]))
    assert "an attempt was made again" in found


def test_an_item_is_claimed_before_it_is_due() -> None:
    (found,) = judged((OTHER, put(NOW + 5_000)), (WORKER, claim(NOW + 5_000)))
    assert "claimed 5000 ms before it was due" in found


def test_an_item_is_locked_before_it_is_due_and_changed_later() -> None:
    due = NOW + 5_000
    (found,) = judged((OTHER, put(due)), (WORKER, [lock()]), (WORKER, [Written(RECORD, record(due=due), 1)]))
    assert "claimed 5000 ms before it was due" in found


def test_an_item_claimed_for_a_stop_that_is_gone_is_begun_before_it_is_due() -> None:
    due = NOW + 5_000
    steps: list[Step] = [(OTHER, put(due)), (OTHER, [Created(STOP, b"")]), (WORKER, claim(due))]
    begins = [Deleted(token(due=due)), *begun()[1:]]
    (found,) = judged(*steps, (OTHER, [Deleted(STOP)]), (WORKER, begins))
    assert "begun 5000 ms before it was due" in found


def test_a_request_to_stop_overrides_the_due_time_of_a_claim_and_not_of_a_removal() -> None:
    due = NOW + 5_000
    stopped: list[Step] = [(OTHER, put(due)), (OTHER, [Created(STOP, b"")]), (WORKER, claim(due))]
    assert not judged(*stopped)
    (found,) = judged(*stopped, (WORKER, [Deleted(RECORD), Deleted(token(due=due)), Deleted(LOCK)]))
    assert "removed 5000 ms before it was due" in found
    (found,) = judged(*stopped[:2], (OTHER, [Deleted(STOP)]), stopped[2])
    assert "claimed 5000 ms before it was due" in found


def test_an_operator_takes_and_removes_what_is_not_due() -> None:
    due = NOW + 5_000
    takes: list[Change] = [lock("client-7", OTHER), Written(RECORD, record(due=due), 1)]
    removes: list[Change] = [Deleted(RECORD), Deleted(token(due=due)), Deleted(LOCK)]
    assert not judged((OTHER, put(due)), (OTHER, takes), (OTHER, removes))


def test_a_lock_that_goes_with_its_session_is_not_held_any_more() -> None:
    late: list[Change] = [Written(RECORD, record(), 2)]
    (found,) = judged((OTHER, put()), (WORKER, claim()), (WORKER, [Deleted(LOCK)]), (WORKER, late))
    assert "without its lock" in found


def test_a_log_in_which_nothing_was_claimed_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no item below /r was claimed"):
        logged_violations([tmp_path], ROOT)
