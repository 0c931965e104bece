import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Client, Definition, JobUpdate, Schedule
from orchestrator.model.errors import AlreadyEnded, DefinitionError, NoSuchPool, WaitTimeout
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues.admin.inspection import Inspection
from queues.model.codec import decode
from queues.model.errors import ItemNotFound, SessionLost
from queues.model.operations import PERM_ALL, PERM_READ, Delete, Grant, Set
from queues.model.record import NewItem, Record
from queues.queue_set import QueueSet
from queues.session.reads import Reads
from queues.store.commit import commit
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.jobs_support import python_job
from tests.operators_support import JOB, Stage

ENDED = JobState.enqueued("test").evolve(status=Status.SUCCESS).to_payload()


def ids(jobs: Any) -> list[str]:
    return [job.id for job in jobs]


# ---------------------------------------------------------------------- the library by itself
def test_a_client_of_ones_own_connects_and_lets_go(stage: Stage) -> None:
    settings = stage.deployment.settings
    with Client.connect(settings.zookeeper_hosts, root=settings.root) as client:
        job = client.submit(python_job("pass"), job_id=JOB)
        assert (job.id, job.status, job.queue) == (JOB, Status.ACCEPT, Queue.ACCEPT)
    assert stage.client.get(JOB) == job


def test_a_client_needs_no_with_and_is_closed_once_or_more(stage: Stage) -> None:
    settings = stage.deployment.settings
    client = Client.connect(settings.zookeeper_hosts, root=settings.root)
    stage.put()
    assert client.get(JOB).id == JOB
    client.close()
    client.close()
    with pytest.raises(SessionLost):
        client.get(JOB)
    stage.client.close()
    assert stage.client.get(JOB).id == JOB, "the session is that of the caller"


def test_a_client_that_is_never_closed_does_not_keep_its_program_from_ending(stage: Stage) -> None:
    settings = stage.deployment.settings
    program = f"from orchestrator import Client; Client.connect({settings.zookeeper_hosts!r}).list()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------------- submit
@pytest.mark.parametrize("kind", [str, Path])
def test_a_job_is_submitted_by_the_name_of_its_file(
    stage: Stage, tmp_path: Path, kind: Callable[[str], str | Path]
) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t USING print; INSERT INTO t SELECT '${day}', '${n}'")
    (tmp_path / "a.yaml").write_text("name: file\nscript: a.sql\nvariables: {day: x, n: 1}\npool: night")
    stage.client.submit(kind(str(tmp_path / "a.sql")), job_id="a", variables={"day": "mon", "n": 2})
    stage.client.submit(kind(str(tmp_path / "a.yaml")), job_id="b", variables={"n": 2}, pool="day")
    found = [stage.client.detail(job_id).definition for job_id in ("a", "b")]
    assert [each["variables"] for each in found] == [{"day": "mon", "n": "2"}, {"day": "x", "n": "2"}]
    assert [each["name"] for each in found] == ["a", "file"]
    assert [each.get("pool") for each in found] == [None, "day"]
    assert found[0]["directory"] == str(tmp_path)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("INSERT INTO t SELECT 1", "give a text as Definition(name=..., script=...)"),
        ("SELECT 1\nFROM a.sql", "give a text as Definition(name=..., script=...)"),
        ("none.sql", "none.sql: cannot be read: No such file"),
        (Path("none.yaml"), "none.yaml: cannot be read"),
        (Path("none.txt"), "unknown file type '.txt'"),
        ("", "is not the name of a script"),
        (5, "a job is a Definition, or the name of a file, not int"),
        (
            Definition(name="a", python="pass", schedule=Schedule(every=60)),
            "'a' has a schedule: register it with client.schedules.put(definition)",
        ),
    ],
)
def test_what_is_no_job_is_refused_and_nothing_is_enqueued(stage: Stage, job: Any, words: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        stage.client.submit(job, job_id=JOB)
    assert words in str(refused.value)
    assert stage.is_gone()


def test_a_definition_that_was_altered_is_refused_and_nothing_is_enqueued(stage: Stage) -> None:
    altered = python_job("pass").model_copy(update={"labels": {"a": object()}})
    with pytest.raises(DefinitionError, match="labels"):
        stage.client.submit(altered, job_id=JOB)
    assert stage.is_gone()


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_delay_without_end_is_refused(stage: Stage, delay: float) -> None:
    with pytest.raises(DefinitionError, match=r"delay: .* is not a duration"):
        stage.client.submit(python_job("pass"), job_id=JOB, delay=delay)
    assert stage.is_gone()


# ---------------------------------------------------------------------- watch
def test_each_change_of_a_job_is_one_update_and_the_end_is_the_last(stage: Stage) -> None:
    stage.put()
    seen = list[JobUpdate]()
    for update in stage.client.watch(JOB, timeout=60):
        seen.append(update)
        if update.job.queue is Queue.ACCEPT:
            stage.queues.move(JOB, Queue.FINISH, payload=ENDED)
    assert [(each.job.queue, str(each).partition(":")[0]) for each in seen] == [
        (Queue.ACCEPT, "ACCEPT"),
        (Queue.FINISH, "SUCCESS"),
    ]
    assert "waits: no worker" in str(seen[0])


def test_a_watch_ends_with_its_time_and_says_what_the_job_waits_for(stage: Stage) -> None:
    stage.put()
    with pytest.raises(
        WaitTimeout, match=r"has not ended after 0\.1 s; it is still ACCEPT: waits: no worker"
    ):
        list(stage.client.watch(JOB, timeout=0.1))
    with pytest.raises(WaitTimeout, match="nan"):
        list(stage.client.watch(JOB, timeout=float("nan")))
    with pytest.raises(ItemNotFound):
        list(stage.client.watch("none"))


def test_a_wait_that_ends_with_its_time_says_what_the_job_waits_for(stage: Stage) -> None:
    stage.put()
    words = rf"job '{JOB}' is still ACCEPT after 0\.1 s: waits: no worker"
    with pytest.raises(WaitTimeout, match=words):
        stage.client.wait(JOB, timeout=0.1)


def test_a_job_prints_as_its_id_and_status_and_its_repr_has_all_fields(stage: Stage) -> None:
    stage.put()
    job = stage.client.get(JOB)
    assert str(job) == f"job {JOB}: ACCEPT"
    assert "run_key=" in repr(job)


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


def test_jobs_are_found_by_their_labels_and_the_time_of_their_submission(stage: Stage) -> None:
    stage.put(job_id="of-an-earlier-version")
    definition = python_job("pass").model_copy(update={"labels": {"team": "sales", "tier": "gold"}})
    stage.client.submit(definition, job_id="gold")
    stage.client.submit(definition.model_copy(update={"labels": {"team": "sales"}}), job_id="plain")
    listed = stage.client.list
    assert ids(listed(labels={"team": "sales"})) == ["plain", "gold"]
    assert ids(listed(labels={"team": "sales", "tier": "gold"})) == ["gold"]
    assert ids(listed(labels={"team": "sal"})) == []
    submitted = datetime.fromtimestamp(stage.queues.get("plain").token.seq / 1_000_000, UTC)
    assert ids(listed(since=submitted)) == ["plain"]
    assert len(listed(since=submitted - timedelta(minutes=5))) == 3
    assert ids(listed(since=submitted + timedelta(seconds=1))) == []
    assert stage.state("gold").evolve(status=Status.RUNNING).labels == {"team": "sales", "tier": "gold"}
    assert listed(labels={"tier": "gold"})[0].labels == {"team": "sales", "tier": "gold"}


def test_the_progress_of_many_jobs_comes_without_those_that_are_closed_to_this_user(stage: Stage) -> None:
    alive = dict[str, str]()
    for number in range(5):
        job_id = f"job-{number}"
        run_key = stage.put(Queue.RUNNING, None, AttemptState.STARTED, job_id=job_id)
        alive[job_id] = f"{attempt_path(stage.queues.layout.record(job_id), run_key, 1)}/alive"
        if number != 4:  # its driver has not started
            stage.make(alive[job_id], {"phase": f"phase {number}"})
    stage.put(job_id="waits")
    closed, opened = Grant(PERM_ALL & ~PERM_READ, "world", "anyone"), Grant(PERM_ALL, "world", "anyone")
    assert stage.session.access.set([(alive["job-2"], [closed], -1)]) == [True]
    found = stage.client.progress_of(stage.client.list())
    assert found == {f"job-{number}": {"phase": f"phase {number}"} for number in (0, 1, 3)}
    stage.session.access.set([(alive["job-2"], [opened], -1)])


@pytest.mark.parametrize(
    ("stood", "moves_to"), [(Queue.ACCEPT, Queue.RUNNING), (Queue.RUNNING, Queue.ACCEPT)], ids=str
)
def test_a_job_that_moves_while_folders_are_listed_is_listed_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, stood: Queue, moves_to: Queue
) -> None:
    # Its new folder was empty when the listing began, or was listed before the job returned to it.
    stage.put(stood)
    stage.put(Queue.ACCEPT if stood is Queue.RUNNING else Queue.FINISH, job_id="other")
    listing, moved = Inspection.listing, list[str]()

    def moving(self: Inspection, queue: str, pool: str) -> Any:
        if queue == stood and not moved:
            moved.append(queue)
            stage.queues.move(JOB, moves_to, payload={**stage.queues.get(JOB).payload})
        return listing(self, queue, pool)

    monkeypatch.setattr(Inspection, "listing", moving)
    assert sorted(ids(stage.client.list())) == [JOB, "other"]
    assert moved


def test_a_long_list_costs_few_requests(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = JobState.enqueued("many").to_payload()
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
    (row,) = stage.client.jobs_in_queue(Queue.DEAD)
    assert (row["id"], row["pool"], row["status"]) == (JOB, "team", None)
    assert "cannot be read" in row["reason"]


# ---------------------------------------------------------------------- queues
def test_the_items_of_a_queue_are_shown_for_all_pools_in_order_of_their_due_times(stage: Stage) -> None:
    stage.client.submit(python_job("pass"), job_id="later", delay=3600)
    stage.put(job_id="first", pool="team.low")
    stage.put(job_id="held", pool="team")
    claim = stage.hold("held")
    rows = stage.client.jobs_in_queue(Queue.ACCEPT)
    assert [(row["id"], row["pool"], row["held_by"]) for row in rows] == [
        ("first", "team.low", None),
        ("held", "team", "worker-7"),
        ("later", "default", None),
    ]
    assert [row["id"] for row in stage.client.jobs_in_queue(Queue.ACCEPT, "team")] == ["held"]
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
    client, queues = stage.client, stage.deployment.queues
    job_id = client.submit(python_job("pass", pool="team")).id
    folder = queues.layout.stops("team")
    commit(queues.session, [Delete(folder)])
    client.kill(job_id)
    assert queues.session.children(folder) == [job_id]
