"""Nodes with any content: listings and views continue and name what cannot be read."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.cli.job.listing import list_row
from orchestrator.cli.job.show import show_detail
from orchestrator.cli.options import OutputFormat
from orchestrator.model.errors import OrchestratorError
from orchestrator.model.states import Queue, Status
from orchestrator.schedules.known import KnownSchedules
from queues.model.errors import CorruptRecord, InvalidName, QueueError
from queues.model.operations import Create, Operation, Set
from queues.store.commit import commit
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.jobs_support import ScriptedDeployment, python_job
from tests.operators_support import Stage
from tests.waiting import wait_until

WELL, BAD, NAME = "well", "bad", "test"
HALF = "\ud800"
"""Half of a surrogate pair: JSON can encode it, and UTF-8 cannot."""

VALUES: list[Any] = [
    *(
        None,
        True,
        -1,
        10**18,
        10**30,
        10**400,
        1e308,
        "",
        "x",
        HALF,
        "\x00",
        "\x1b[2J",
        "a/b",
        "../..",
        [],
        [HALF],
        {},
    ),
    *({"a": {"b": HALF}}, "not a time", "2026-01-31", "2026-01-31T06:00:00", "0001-01-01T00:00:00Z"),
    "9999-12-31T23:59:59-14:00",
]
RAW = [
    *(b"", b"\xff\xfe", b"null", b"[]", b"7", b"[" * 50_000, b'{"a":' * 50_000, b'{"a": "\\ud800"}'),
    *(b'{"a": ' + b"9" * 5_000 + b"}", b'{"a": NaN, "b": 1e999}', b'{"x": "\xe2\x80\xa8"}'),
]
ATTEMPT = {
    "run_key": "key",
    "attempt": 1,
    "state": "failed",
    "place": {"backend": "yarn", "host": "there", "cluster": {"a": "b"}},
    "created": "2026-01-31T06:00:00Z",
    "started": "2026-01-31T06:00:00Z",
    "ended": "2026-01-31T06:00:01Z",
    "application_id": "app-1",
    "exit_code": 1,
    "error": {"class": "user", "message": "x"},
    "tables": [{"target": "t", "connector": "csv", "rows": 1, "seconds": 1.0, "location": "/x"}],
}
ALIVE = {
    "application_id": "app-1",
    "ui": "http://x",
    "phase": "x",
    "stages": [{"stage": 1, "done": 1, "tasks": 2}],
    "executors": {"number": 1, "active_tasks": 1, "failed_tasks": 1},
    "read": {"rows": 1},
}


class Poisoned:
    """A stage with a healthy job and one whose nodes may be spoilt."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        layout, nodes = stage.queues.layout, stage.nodes
        stage.put(Queue.RUNNING, None, AttemptState.SUCCEEDED, job_id=WELL)
        stage.put(Queue.RUNNING, None, AttemptState.STARTED, job_id=BAD)
        record = layout.record(BAD)
        (token,) = (token for token in stage.queues.tokens("running") if token.id == BAD)
        attempt = attempt_path(record, stage.queues.get(BAD).run_key, 1)
        self.paths = {
            "record": record,
            "definition": f"{record}/definition",
            "attempt": attempt,
            "alive": f"{attempt}/alive",
            "attempt of a huge number": attempt_path(record, "k", 10**20 - 1),
            "token": layout.token("running", "default", token),
            "lock": layout.lock("default", BAD),
            "stop": layout.stop("default", BAD),
            "pool": layout.pool("default"),
            "consumer": f"{layout.consumers}/some",
            "worker": nodes.worker("some"),
            "leader": nodes.leader,
            "config": nodes.config,
            "schedule": nodes.schedule(NAME),
            "schedule without a name": f"{nodes.schedules}/no name",
            "success": nodes.success(NAME),
            "history": nodes.history(NAME),
            "slot": f"{nodes.slots('default')}/0",
        }
        self.before = dict(self._made())
        self.before[attempt] = json.dumps(ATTEMPT).encode()
        self.before[f"{attempt}/alive"] = json.dumps(ALIVE).encode()

    def _made(self) -> Iterator[tuple[str, bytes]]:
        session = self.stage.session
        for path in self.paths.values():
            session.ensure_path(path.rpartition("/")[0])
            found = session.get(path)
            if found is None:
                commit(session, [Create(path, b"")])
            yield path, b"" if found is None else found[0]

    def spoil(self, kind: str, data: bytes) -> None:
        """Only this node has invalid content."""
        spoilt = {**self.before, self.paths[kind]: data}
        changes: list[Operation] = [Set(path, content, -1) for path, content in spoilt.items()]
        commit(self.stage.session, changes)

    def document(self, kind: str) -> Any:
        return json.loads(self.before[self.paths[kind]])


@pytest.fixture
def poisoned(stage: Stage) -> Poisoned:
    return Poisoned(stage)


def look_at_everything(stage: Stage) -> None:
    """Each listing has both jobs; a view of one node raises at most an error that names it."""
    client = stage.client
    for listed in (client.list(), list(client.jobs())):
        assert {view.id for view in listed} == {WELL, BAD}
        for output in OutputFormat:
            rows = [list_row(view, output) for view in listed]
            json.dumps(rows, ensure_ascii=False, allow_nan=False, default=str).encode()
    assert {row["id"] for row in client.jobs_in_queue(Queue.RUNNING)} == {WELL, BAD}
    for look in (
        lambda: show_detail(client.detail(BAD)),
        lambda: client.history(NAME),
        lambda: client.schedules.get(NAME),
        lambda: client.get(BAD),
    ):
        with suppress(QueueError, OrchestratorError):  # the errors name the fault
            look()
    show_detail(client.detail(WELL))
    client.queues()
    client.status()
    client.doctor.check()
    client.schedules.list()
    client.pools()


def paths_in(document: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """The path to each value in a document, including the document itself."""
    yield above
    items = document.items() if isinstance(document, dict) else ()
    for name, value in [*items, *(enumerate(document) if isinstance(document, list) else ())]:
        yield from paths_in(value, *above, name)


def replaced(document: Any, path: tuple[str | int, ...], value: object) -> Any:
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


SLOW_TO_MAKE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=40, suppress_health_check=SLOW_TO_MAKE)
@given(data=st.data())
def test_every_listing_continues_whatever_bytes_a_node_has(poisoned: Poisoned, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(poisoned.paths)))
    poisoned.spoil(kind, data.draw(st.sampled_from(RAW) | st.binary(max_size=20)))
    look_at_everything(poisoned.stage)


@settings(max_examples=60, suppress_health_check=SLOW_TO_MAKE)
@given(data=st.data())
def test_every_listing_continues_whatever_value_a_document_has(
    poisoned: Poisoned, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(["record", "attempt", "alive", "definition"]))
    document = poisoned.document(kind)
    path = data.draw(st.sampled_from(list(paths_in(document))))
    value = data.draw(st.sampled_from(VALUES))
    poisoned.spoil(kind, json.dumps(replaced(document, path, value)).encode())
    look_at_everything(poisoned.stage)


HALF_POOL = b'"pool": "\\ud800"'


def test_an_unreadable_node_is_listed_with_its_error(poisoned: Poisoned) -> None:
    good = poisoned.before[poisoned.paths["record"]]
    poisoned.spoil("record", good.replace(b'"created": "', b'"created": 7, "was": "'))
    (view,) = (view for view in poisoned.stage.client.list() if view.id == BAD)
    assert (view.status, view.queue, view.pool, view.is_readable) == (
        Status.DEAD,
        Queue.RUNNING,
        "default",
        False,
    )
    assert view.error is not None
    assert "field 'created': Input should be a valid string" in view.error.message
    assert [view.id for view in poisoned.stage.client.list(names=[NAME])] == [WELL]
    assert poisoned.stage.client.list(statuses=[Status.DEAD]) == ()


def test_the_path_in_a_record_that_has_no_bytes_does_not_end_the_connection(poisoned: Poisoned) -> None:
    stage = poisoned.stage
    good = poisoned.before[poisoned.paths["record"]]
    poisoned.spoil("record", good.replace(b'"pool": "default"', HALF_POOL))
    with pytest.raises(CorruptRecord):
        stage.client.detail(BAD)
    assert stage.client.get(WELL).id == WELL


@pytest.mark.parametrize("how", ["get", "exists", "children", "get_many", "ensure_path", "post"])
def test_a_path_that_has_no_bytes_is_refused_and_the_session_continues(stage: Stage, how: str) -> None:
    session, path = stage.session, f"/x/{HALF}"
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: session.get(path),
        "exists": lambda: session.exists(path),
        "children": lambda: session.children(path),
        "get_many": lambda: session.get_many(["/", path]),
        "ensure_path": lambda: session.ensure_path(path),
        "post": lambda: session.post([Create(path)]),
    }
    with pytest.raises(InvalidName, match="surrogate"):
        calls[how]()
    assert session.exists("/") is not None


def test_a_schedule_that_cannot_be_read_is_listed_and_keeps_no_other_back(stage: Stage) -> None:
    schedules = stage.client.schedules
    schedules.put(python_job("pass", name="good", schedule={"every": "1h"}))
    stage.make(f"{stage.nodes.schedules}/no name", {})
    stage.make(stage.nodes.schedule("broken"), {"definition": {}})
    listed = {view.name: view.error for view in schedules.list()}
    assert listed["good"] is None
    assert "not valid" in str(listed["no name"])
    assert "cannot be read" in str(listed["broken"])
    known = KnownSchedules(schedules)
    known.refresh()
    assert [schedule.name for schedule in known] == ["good"]


def test_a_worker_continues_whatever_the_nodes_of_other_jobs_contain(
    scripted_deployment: ScriptedDeployment,
) -> None:
    deployment, layout = scripted_deployment, scripted_deployment.queues.layout
    session = deployment.session()
    for number, data in enumerate([b"[" * 50_000, b'{"a": "\\ud800"}', b"\xff", HALF_POOL]):
        job_id = f"bad-{number}"
        deployment.client.submit(python_job("pass"), job_id=job_id)
        path = layout.record(job_id)
        good = session.get(path)
        assert good is not None
        spoilt = good[0].replace(b'"pool": "default"', data) if data == HALF_POOL else data
        commit(session, [Set(path, spoilt, -1)])
    deployment.client.submit(python_job("pass"), job_id="bad-definition")
    commit(session, [Set(f"{layout.record('bad-definition')}/definition", b"[" * 50_000, -1)])
    deployment.worker()
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS
    bad = {f"bad-{number}" for number in range(4)}
    wait_until(
        lambda: bad <= {row["id"] for row in deployment.client.jobs_in_queue(Queue.DEAD)},
        30,
        "they are in dead",
    )
    listed = {view.id: view for view in deployment.client.list(queues=[Queue.DEAD])}
    assert all(not listed[job_id].is_readable for job_id in bad)
