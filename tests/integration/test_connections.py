"""The catalog of connections in ZooKeeper, and the library that compiles scripts with it."""

from collections.abc import Sequence

import pytest

from orchestrator.connections import checks, store
from orchestrator.connections.store import ConnectionStore
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import ConnectionNotFound, CorruptConnection, InvalidConnection
from orchestrator.model.paths import Nodes
from orchestrator.model.plan import decode_plan
from queues.model.operations import Create, Operation, Set
from spark_runner.sql.compiler.connections import Connection, ConnectionUnknown
from spark_runner.sql.text.errors import SqlError
from tests.claims_support import lose_reply
from tests.operators_support import JOB, Stage

SCRIPT = """\
CREATE TABLE t (a INT) WITH ('connection' = 'exports', 'path' = '/x');
SELECT * FROM t;
"""


@pytest.fixture
def nodes(stage: Stage) -> Nodes:
    return Nodes(stage.queues.layout.root)


@pytest.fixture
def catalog(stage: Stage, nodes: Nodes) -> ConnectionStore:
    return ConnectionStore(stage.queues.session, nodes)


def definition(**fields: object) -> Definition:
    return build_definition({"name": "exports", "script": SCRIPT, **fields}, "test")


def test_a_submitted_job_and_a_schedule_keep_the_options_that_they_were_compiled_with(
    stage: Stage, catalog: ConnectionStore
) -> None:
    client = stage.client
    with pytest.raises(SqlError, match="no connection has the name 'exports'"):
        client.submit(definition(), job_id=JOB)
    client.connections.set("exports", "csv", {"Null-Value": "${secret:crm/null}"})
    client.submit(definition(), job_id=JOB)
    client.schedules.put(definition(schedule={"every": "1d"}))
    catalog.remove("exports")
    found = stage.queues.session.get(f"{stage.queues.layout.record(JOB)}/plan")
    assert found is not None
    table = decode_plan(found[0])["steps"][0]
    assert table["references"] == {"null_value": [{"kind": "secret", "name": "crm/null"}]}
    record = client.schedules.read("exports")
    assert record is not None
    assert record[0].plan is not None
    assert record[0].plan["steps"][0]["references"] == table["references"]


def test_an_unreadable_node_is_listed_and_can_be_replaced(
    stage: Stage, catalog: ConnectionStore, nodes: Nodes
) -> None:
    catalog.set("good", "csv", {"delimiter": ";"})
    for name, data in (
        ("damaged", b"{"),
        ("large", b" " * (checks.MAX_CONNECTION_BYTES + 1)),
        ("odd", b"[]"),
    ):
        stage.commit(Create(nodes.connection(name), data))
    errors = {view.name: view.error for view in catalog.list()}
    assert errors.pop("good") is None
    assert errors.keys() == {"damaged", "large", "odd"}
    assert all(errors.values())
    with pytest.raises(CorruptConnection, match="store it again with `connection set damaged`"):
        catalog.get("damaged")
    with pytest.raises(ConnectionUnknown, match="cannot be read"):
        catalog.find("damaged")
    catalog.set("damaged", "json", {})
    assert catalog.find("damaged") == Connection("damaged", "json")


def test_what_another_program_has_written_is_checked_before_a_script_uses_it(
    stage: Stage, catalog: ConnectionStore, nodes: Nodes
) -> None:
    catalog.set("exports", "csv", {})
    stage.commit(Set(nodes.connection("exports"), b'{"connector": "csv", "options": {"delimeter": ";"}}', 0))
    with pytest.raises(ConnectionUnknown, match="did you mean 'delimiter'"):
        catalog.find("exports")


def test_a_name_that_is_not_there_has_a_hint(catalog: ConnectionStore) -> None:
    catalog.set("exports", "csv", {})
    with pytest.raises(ConnectionNotFound, match="did you mean 'exports'"):
        catalog.get("export")
    with pytest.raises(ConnectionNotFound):
        catalog.remove("export")


def test_the_catalog_is_bounded(catalog: ConnectionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_CONNECTIONS", 1)
    catalog.set("one", "csv", {})
    with pytest.raises(InvalidConnection, match="which is the limit"):
        catalog.set("two", "csv", {})
    catalog.set("one", "csv", {"delimiter": ";"})
    with pytest.raises(InvalidConnection, match="the limit is 16,384"):
        catalog.set("one", "csv", {"null_value": "x" * checks.MAX_CONNECTION_BYTES})


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_reply_changes_nothing_twice(
    catalog: ConnectionStore, nodes: Nodes, monkeypatch: pytest.MonkeyPatch, *, arrives: bool
) -> None:
    path = nodes.connection("one")

    def concerns(operations: Sequence[Operation]) -> bool:
        return any(getattr(operation, "path", "") == path for operation in operations)

    with monkeypatch.context() as patch:
        assert lose_reply(patch, concerns, arrives=arrives) == []
        catalog.set("one", "csv", {"delimiter": ";"})
    assert catalog.get("one").options == {"delimiter": ";"}
    with monkeypatch.context() as patch:
        lose_reply(patch, concerns, arrives=arrives)
        catalog.remove("one")
    assert catalog.list() == ()
