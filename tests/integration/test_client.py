import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from orchestrator import Client, Definition
from orchestrator.model.errors import AlreadyEnded, DefinitionError, NoSuchPool
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues.model.codec import decode
from queues.model.errors import ItemNotFound
from queues.model.operations import Delete, Set
from queues.model.record import NewItem, Record
from queues.queue_set import QueueSet
from queues.session.reads import Reads
from queues.store.commit import commit
from spark_runner.protocol.attempt import AttemptState
from tests.jobs_support import python_job
from tests.operators_support import JOB, Stage


def ids(jobs: Any) -> list[str]:
    return [job.id for job in jobs]


# ---------------------------------------------------------------------- the library by itself
def test_a_client_of_ones_own_connects_and_lets_go(stage: Stage) -> None:
    settings = stage.office.settings
    with Client.connect(settings.zookeeper_hosts, root=settings.root) as client:
        job = client.submit(python_job("pass"), job_id=JOB)
        assert (job.id, job.status, job.queue) == (JOB, Status.ACCEPT, Queue.ACCEPT)
    assert stage.client.get(JOB) == job


def test_the_package_itself_imports_nothing_until_a_name_of_it_is_used() -> None:
    program = (
        "import sys, orchestrator\n"
        "heavy = {'pydantic', 'kazoo', 'loguru', 'pyspark'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "from orchestrator import Client\n"
        "assert Client.__module__ == 'orchestrator.client.client'\n"
        "assert not hasattr(orchestrator, 'Clint')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Definition(name="a", python="pass").pool == "default"


# ---------------------------------------------------------------------- submit
def test_a_job_goes_to_the_pool_of_its_definition(stage: Stage) -> None:
    job = stage.client.submit(python_job("pass", pool="team"), job_id=JOB)
    assert job.pool == "team"
    assert stage.places_of() == [("accept", "team")]


def test_a_named_pool_overrides_that_of_the_definition_and_is_stored_in_it(stage: Stage) -> None:
    stage.client.submit(python_job("pass", pool="team"), job_id=JOB, pool="night")
    detail = stage.client.detail(JOB)
    assert stage.places_of() == [("accept", "night")]
    assert detail.definition["pool"] == "night"


@pytest.mark.parametrize("pool", ["team.low", "no pool", ""])
def test_a_pool_that_cannot_be_is_refused_and_nothing_is_enqueued(stage: Stage, pool: str) -> None:
    with pytest.raises(DefinitionError, match="pool"):
        stage.client.submit(python_job("pass"), job_id=JOB, pool=pool)
    assert stage.is_gone()


def test_a_job_carries_how_long_it_may_wait(stage: Stage) -> None:
    stage.client.submit(python_job("pass", timeout={"queued": "90s"}), job_id=JOB)
    assert stage.state().queued_limit == 90.0


# ---------------------------------------------------------------------- list
def test_jobs_of_all_pools_are_listed_the_newest_first(stage: Stage) -> None:
    for number, pool in enumerate(["default", "team", "team.low", "night"]):
        stage.put(job_id=f"job-{number}", pool=pool)
    stage.put(Queue.FINISH, job_id="ended", pool="team")
    assert ids(stage.client.list()) == ["ended", "job-3", "job-2", "job-1", "job-0"]
    assert [job.pool for job in stage.client.list()] == ["team", "night", "team.low", "team", "default"]
    assert sorted(ids(stage.client.jobs())) == sorted(ids(stage.client.list()))
    assert ids(stage.client.jobs((Queue.FINISH, Queue.ACCEPT)))[-1] == "ended", "in the order of the queues"


def test_a_list_is_of_those_that_fit(stage: Stage) -> None:
    stage.put(job_id="a", name="one")
    stage.put(Queue.FINISH, job_id="b", name="two", pool="team")
    stage.put(Queue.FINISH, Status.KILL, job_id="c", name="one", pool="team")
    stage.put(Queue.RUNNING, Status.RUNNING, AttemptState.STARTED, job_id="d", name="three")
    listed = stage.client.list
    assert ids(listed(names=["one"])) == ["c", "a"]
    assert ids(listed(pools=["team"])) == ["c", "b"]
    assert ids(listed(statuses=[Status.KILL, Status.RUNNING])) == ["d", "c"]
    assert ids(listed(queues=[Queue.ACCEPT, Queue.RUNNING])) == ["d", "a"]
    assert ids(listed(names=["one", "two"], queues=[Queue.FINISH], limit=1)) == ["c"]
    assert ids(listed(limit=2)) == ["d", "c"]
    assert ids(listed(pools=["nobody"])) == []


@pytest.mark.parametrize(
    ("stood", "moves_to"), [(Queue.ACCEPT, Queue.RUNNING), (Queue.RUNNING, Queue.ACCEPT)], ids=str
)
def test_a_job_that_moves_while_folders_are_listed_is_listed_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, stood: Queue, moves_to: Queue
) -> None:
    # Its new folder was empty when the listing began, or was listed before the job returned to it.
    stage.put(stood)
    stage.put(Queue.ACCEPT if stood is Queue.RUNNING else Queue.FINISH, job_id="other")
    tokens, moved = QueueSet.tokens, list[str]()

    def moving(self: QueueSet, queue: str, pool: str = "default") -> Any:
        if self is not stage.queues and queue == stood and not moved:
            moved.append(queue)
            stage.queues.move(JOB, moves_to, payload={**stage.queues.get(JOB).payload})
        return tokens(self, queue, pool)

    monkeypatch.setattr(QueueSet, "tokens", moving)
    assert sorted(ids(stage.client.list())) == [JOB, "other"]
    assert moved


def test_a_long_list_costs_few_requests(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = JobState.enqueued("many").model_dump(mode="json", exclude_defaults=True)
    stage.queues.put_many("accept", [NewItem(payload, f"job-{number}") for number in range(600)])
    read, calls = Reads.ask, list[str]()

    def counted(self: Reads, path: str, call: Callable[[], Any]) -> Any:
        calls.append(path)
        return read(self, path, call)

    monkeypatch.setattr(Reads, "ask", counted)
    assert len(stage.client.list()) == 600
    assert len(calls) < 20
    calls.clear()
    assert len(stage.client.list(limit=10)) == 10
    assert len(calls) < 10


def test_an_unreadable_job_is_listed_and_named_in_its_queue(stage: Stage) -> None:
    stage.put(job_id="well")
    stage.put(Queue.DEAD, pool="team")
    stage.commit(Set(stage.queues.layout.record(JOB), b"no record", -1))
    assert {view.id: view.is_readable for view in stage.client.list()} == {"well": True, JOB: False}
    (row,) = stage.client.standing(Queue.DEAD)
    assert (row["id"], row["pool"], row["status"]) == (JOB, "team", None)
    assert "cannot be read" in row["reason"]


# ---------------------------------------------------------------------- queues
def test_the_items_of_a_queue_are_shown_for_all_pools_in_order_of_their_due_times(stage: Stage) -> None:
    stage.client.submit(python_job("pass"), job_id="later", delay=3600)
    stage.put(job_id="first", pool="team.low")
    stage.put(job_id="held", pool="team")
    claim = stage.hold("held")
    rows = stage.client.standing(Queue.ACCEPT)
    assert [(row["id"], row["pool"], row["held_by"]) for row in rows] == [
        ("first", "team.low", None),
        ("held", "team", "worker-7"),
        ("later", "default", None),
    ]
    assert [row["id"] for row in stage.client.standing(Queue.ACCEPT, "team")] == ["held"]
    claim.release()
    assert (stage.client.count(Queue.ACCEPT), stage.client.count(Queue.ACCEPT, "team")) == (3, 1)


def test_the_queues_are_counted_for_each_pool_with_what_binds_it(stage: Stage) -> None:
    stage.put(job_id="a")
    stage.put(job_id="b", pool="team.low")
    stage.put(Queue.FINISH, job_id="c", pool="team")
    stage.queues.pools.change("team", cap=3, weight=5)
    stage.client.pause("team")
    loads = {(load.queue, load.pool): load for load in stage.client.queues()}
    assert {key: load.jobs for key, load in loads.items() if load.jobs} == {
        (Queue.ACCEPT, "default"): 1,
        (Queue.ACCEPT, "team.low"): 1,
        (Queue.FINISH, "team"): 1,
    }
    assert len(loads) == 7 * len({"default", "team", "team.low"} | {pool for _, pool in loads})
    default, team, low = (loads[Queue.ACCEPT, pool] for pool in ("default", "team", "team.low"))
    assert (default.paused, default.cap, default.weight) == (False, 0, 1)
    assert (team.paused, team.cap, team.weight) == (True, 3, 5)
    assert (low.paused, low.cap, low.weight) == (True, None, None), "the limits of its pool hold for it"
    stage.client.resume("team")
    assert not any(load.paused for load in stage.client.queues())


def test_a_pool_that_is_not_there_is_not_paused(stage: Stage) -> None:
    with pytest.raises(NoSuchPool, match="defualt"):
        stage.client.pause("defualt")
    assert stage.queues.pools.names() == ["default"]


# ---------------------------------------------------------------------- kill
@pytest.mark.parametrize("pool", ["default", "team", "team.low"])
def test_a_job_of_any_pool_is_asked_to_stop(stage: Stage, pool: str) -> None:
    run_key = stage.put(pool=pool)
    stage.client.kill(JOB)
    stage.client.kill(JOB)  # a repetition is no error
    found = stage.session.get(stage.stop(pool))
    assert found is not None
    assert decode(found[0])["run_key"] == run_key


Acts = dict[int, Callable[[], object]]


def interfere(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, before: Acts | None = None, after: Acts | None = None
) -> None:
    """Do something just before or after the nth time that a client reads the record of a job."""
    read, counted = QueueSet.read, itertools.count(1)

    def interfered(self: QueueSet, job_id: str) -> tuple[Record, int]:
        if self is stage.queues:
            return read(self, job_id)
        number = next(counted)
        if act := (before or {}).get(number):
            act()
        found = read(self, job_id)
        if act := (after or {}).get(number):
            act()
        return found

    monkeypatch.setattr(QueueSet, "read", interfered)


@pytest.mark.parametrize("times", [1, 2])
def test_a_request_to_stop_follows_a_job_that_changes_its_pool_meanwhile(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    stage.put(Queue.RUNNING, Status.RUNNING, AttemptState.STARTED, pool="team")
    stage.queues.ensure_pool("team.low")
    pools = ["team.low", "team"][:times]
    moves = [partial(stage.queues.move, JOB, "accept", pool=pool, force=True) for pool in pools]
    interfere(stage, monkeypatch, after=dict(enumerate(moves, 1)))
    stage.client.kill(JOB)
    current = stage.queues.get(JOB).pool
    assert [pool for pool in ("team", "team.low") if stage.is_there(stage.stop(pool))] == [current]


def test_a_request_to_stop_follows_a_job_that_changes_its_pool_after_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put(Queue.RUNNING, Status.RUNNING, AttemptState.STARTED, pool="team")
    stage.queues.ensure_pool("team.low")
    move = partial(stage.queues.move, JOB, "accept", pool="team.low", force=True)
    interfere(stage, monkeypatch, before={2: move})
    stage.client.kill(JOB)
    assert [pool for pool in ("team", "team.low") if stage.is_there(stage.stop(pool))] == ["team.low"]


def test_a_job_that_ends_before_it_is_asked_to_stop_is_said_to_have_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put(Queue.SUCCESS)
    interfere(stage, monkeypatch, after={1: partial(stage.queues.move, JOB, "finish")})
    with pytest.raises(AlreadyEnded, match="SUCCESS"):
        stage.client.kill(JOB)
    assert not stage.is_there(stage.stop())


def test_a_job_that_ends_at_once_when_it_is_asked_to_stop_was_asked_in_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put(Queue.FAIL, Status.ERROR_FAIL)
    interfere(stage, monkeypatch, before={2: partial(stage.queues.move, JOB, "finish")})
    assert stage.client.kill(JOB).queue is Queue.FAIL
    assert not stage.is_there(stage.stop())


def test_a_job_that_is_removed_before_it_is_asked_to_stop_is_said_to_be_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put()
    other = Client(stage.other("operator"))
    interfere(stage, monkeypatch, after={1: partial(other.remove, JOB)})
    with pytest.raises(AlreadyEnded, match="removed"):
        stage.client.kill(JOB)
    assert not stage.is_there(stage.stop())


def test_a_job_that_is_removed_at_once_when_it_is_asked_to_stop_leaves_no_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put()
    other = Client(stage.other("operator"))
    interfere(stage, monkeypatch, before={2: partial(other.remove, JOB)})
    stage.client.kill(JOB)
    assert not stage.is_there(stage.stop())


@pytest.mark.parametrize("of_whom", ["a time limit", "an earlier job"])
def test_a_request_of_another_kind_is_replaced(stage: Stage, of_whom: str) -> None:
    run_key = stage.put()
    if of_whom == "a time limit":
        stage.ask_to_stop(run_key, reason="timeout.run")
    else:
        stage.ask_to_stop("another")
    stage.client.kill(JOB)
    found = stage.session.get(stage.stop())
    assert found is not None
    document = decode(found[0])
    assert document["run_key"] == run_key
    assert "reason" not in document


def test_an_ended_or_missing_job_cannot_be_killed(stage: Stage) -> None:
    stage.put(Queue.FINISH, Status.SUCCESS)
    with pytest.raises(AlreadyEnded, match="SUCCESS"):
        stage.client.kill(JOB)
    with pytest.raises(ItemNotFound):
        stage.client.kill("nobody")
    assert not stage.is_there(stage.stop())


def test_two_who_kill_at_once_are_both_content(stage: Stage) -> None:
    stage.put()
    clients = [Client(stage.other(f"client-{number}")) for number in range(2)]
    threads = [threading.Thread(target=client.kill, args=(JOB,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stage.is_there(stage.stop())


def test_a_job_is_stopped_though_the_folder_of_the_requests_was_removed_by_hand(stage: Stage) -> None:
    client, queues = stage.client, stage.office.queues
    job_id = client.submit(python_job("pass", pool="team")).id
    folder = queues.layout.stops("team")
    commit(queues.session, [Delete(folder)])
    client.kill(job_id)
    assert queues.session.children(folder) == [job_id]
