"""Change events of Debezium on a real Kafka, and the table of a real PostgreSQL that follows them."""

import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.debezium_support import AT_MS, event, records
from tests.kafka_support import add_kafka
from tests.servers.databases import PASSWORD, DatabaseServer, add_drivers
from tests.servers.kafka import Topics
from tests.servers.kafka_client import Record
from tests.stream_driver import plan_of

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "debezium.md").read_text("utf-8")
(WORKED,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
STREAM, BATCH = "SET job.mode = 'available-now';\n", "SET job.mode = 'batch';\n"
COPY = "INSERT INTO dst SELECT * FROM src"
PLACEHOLDER = "__debezium_unavailable_value"
COPY_IDS = "INSERT INTO dst SELECT id FROM src"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    add_kafka(spark)
    add_drivers(spark)
    return spark


def run(session: SparkSession, script: str, folder: Path, **variables: str) -> list[dict[str, Any]]:
    """The result of the INSERT of a script, and what it counts of the rows of the topic."""
    bad_rows = list[dict[str, Any]]()
    plan = {**plan_of(script, folder, **variables), "quarantine": f"{folder}/bad"}
    results = execute(session, plan, lambda _: None, Writer("run"), bad_rows=bad_rows)
    return [*results, *(each for each in bad_rows if each["table"] in {"src", "changes"})]


def changes(topics: Topics, topic: str, columns: str, **options: object) -> str:
    """The table `src` of a topic with events, and the table `dst` of files."""
    given = {"topic": topic, "properties.bootstrap.servers": topics.kafka.servers, **options}
    listed = "".join(f", '{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE src ({columns}) WITH ('connector' = 'kafka', 'format' = 'debezium-json'{listed});\n"


def files(columns: str, folder: Path) -> str:
    return f"CREATE TABLE dst ({columns}) USING parquet OPTIONS (path '{folder}/out');\n"


def customer(number: int, name: str = "Ada") -> dict[str, Any]:
    return {"id": number, "name": name, "born": 365 * number, "is_member": number % 2}


class Mirror:
    """The worked script of the page on a topic and a database of its own."""

    def __init__(self, session: SparkSession, topics: Topics, postgres: DatabaseServer, folder: Path) -> None:
        self._session, self._database, self._folder = session, postgres, folder
        self.topic = topics.new("shop.inventory.customers", partitions=3)
        self._script = WORKED.replace("'shop.inventory.customers'", f"'{self.topic}'")
        self._script = self._script.replace("'loader'", f"'{postgres.user}'")
        self._script = self._script.replace("${secret:shop/password}", PASSWORD)
        self._variables = {"servers": topics.kafka.servers, "database": postgres.url}

    def run(self) -> list[dict[str, Any]]:
        return run(self._session, self._script, self._folder, **self._variables)

    def rows(self) -> dict[int, dict[str, Any]]:
        found = self._database.run(
            "SELECT id, name, born - date '1970-01-01', is_member::int,"
            " extract(epoch FROM changed_at) * 1000 FROM customers"
        )
        assert {float(at) for *_, at in found} <= {float(AT_MS)}
        return {
            int(key): {"id": int(key), "name": name, "born": int(born), "is_member": int(member)}
            for key, name, born, member, _ in found
        }


@pytest.fixture
def mirror(session: SparkSession, topics: Topics, postgres: DatabaseServer, tmp_path: Path) -> Mirror:
    return Mirror(session, topics, postgres, tmp_path)


def test_the_worked_script_has_no_warning(tmp_path: Path) -> None:
    variables = {"servers": "h:1", "database": "jdbc:postgresql://h/shop"}
    found = check_script(WORKED, file="docs.sql", base_dir=str(tmp_path), variables=variables)
    assert found.errors == found.warnings == ()


@pytest.mark.parametrize("with_schema", [False, True], ids=["plain", "with schema"])
def test_the_worked_script_copies_inserts_updates_deletes_and_returning_rows(
    mirror: Mirror, topics: Topics, with_schema: bool
) -> None:
    sent = list[Record]()

    def send(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        sent.extend(records(op, before, after, with_schema=with_schema))

    one, two, three = map(customer, (1, 2, 3))
    send("r", None, one)
    send("r", None, two)
    send("c", None, three)
    send("u", one, customer(1, "Grace"))
    send("d", two, None)
    send("d", three, None)
    send("c", None, customer(3, "Barbara"))  # the key comes back
    topics.kafka.produce(mirror.topic, [*sent, Record(b"no event", b"{}")])
    result, bad = mirror.run()
    assert mirror.rows() == {1: customer(1, "Grace"), 3: customer(3, "Barbara")}
    assert result["rows"] == 9, "the bad record is no row"
    assert (bad["table"], bad["rows"], bad["quarantined"]) == ("changes", 10, 1)
    sent.clear()
    send("d", customer(1, "Grace"), None)
    send("c", None, two)
    topics.kafka.produce(mirror.topic, sent)
    mirror.run()
    assert mirror.rows() == {2: two, 3: customer(3, "Barbara")}


def test_the_copy_has_the_last_state_of_each_key_after_any_changes(mirror: Mirror, topics: Topics) -> None:
    chance, there = random.Random(21), dict[int, dict[str, Any]]()  # noqa: S311 - so that a run can be repeated
    for _ in range(2):
        sent = list[Record]()

        def send(
            op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, into: list[Record]
        ) -> None:
            key = (before or after or {})["id"]
            into += records(op, before, after, partition=key % 3)

        for number in range(400):
            key = chance.randrange(30)
            before, after = there.pop(key, None), customer(key, f"n{number}")
            if before is None:
                send("c", None, after, sent)
                there[key] = after
            elif (dice := chance.random()) < 0.4:
                send("d", before, None, sent)
            elif dice < 0.5:  # another primary key, as Debezium writes it
                other = customer(key + 1000 + number)
                send("d", before, None, sent)
                send("c", None, other, sent)
                there[other["id"]] = other
            else:
                send("u", before, after, sent)
                there[key] = after
        topics.kafka.produce(mirror.topic, sent)
        mirror.run()
        assert mirror.rows() == there


def test_values_have_the_declared_types_and_metadata_say_what_happened(
    session: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.new()
    plain = {"id": 1, "price": "12.50", "raw": "AAH/", "body": '{"a": 1}', "born": -1, "day": "2026-02-28"}
    row = {**plain, "at": "2026-11-01T00:00:00.123456Z", "yes": 1, "no": False, "size": 1.5, "unknown": [1]}
    nothing: dict[str, Any] = dict.fromkeys(row)
    sent = [event("u", None, row, with_schema=True), event("d", {**nothing, "id": 2}, None, source=None)]
    topics.kafka.produce(topic, [json.dumps(each).encode() for each in sent])
    columns = (
        "id BIGINT, price DECIMAL(10,2), raw BINARY, body STRING, born DATE, day DATE, at TIMESTAMP,"
        " yes BOOLEAN, no BOOLEAN, size DOUBLE"
    )
    metadata = (
        ", op STRING METADATA, gone BOOLEAN METADATA FROM 'deleted',"
        " seen TIMESTAMP METADATA FROM 'value.ingestion-timestamp',"
        " made TIMESTAMP METADATA FROM 'value.source.timestamp',"
        " place STRING METADATA FROM 'source.database', name STRING METADATA FROM 'source_table',"
        " o BIGINT METADATA FROM 'offset'"
    )
    out = "id BIGINT, price STRING, raw STRING, body STRING, born STRING, day STRING, at BIGINT, yes BOOLEAN"
    out += ", no BOOLEAN, size DOUBLE, op STRING, gone BOOLEAN, seen BIGINT, made BIGINT, place STRING"
    query = """INSERT INTO dst SELECT id, CAST(price AS STRING), hex(raw), body, CAST(born AS STRING),
      CAST(day AS STRING), unix_micros(at), yes, no, size, op, gone, unix_millis(seen), unix_millis(made),
      place, name, o FROM src"""
    into = files(f"{out}, name STRING, o BIGINT", tmp_path)
    run(session, BATCH + changes(topics, topic, columns + metadata) + into + query, tmp_path)
    first, second = sorted(map(tuple, session.read.parquet(f"{tmp_path}/out").collect()))
    assert first == (
        *(
            1,
            "12.50",
            "0001FF",
            '{"a": 1}',
            "1969-12-31",
            "2026-02-28",
            AT_MS * 1000 + 123_456,
            True,
            False,
            1.5,
        ),
        *("u", False, AT_MS + 7, AT_MS, "inventory", "customers", 0),
    )
    assert second == (2, *[None] * 9, "d", True, AT_MS + 7, None, None, None, 1)


ROW = {"id": 1, "day": None, "yes": None, "at": None}
UNFIT: list[Any] = [
    "no event",
    *("", " ", "[]", "{}", "null"),
    {"payload": None},
    event("t", None, None),
    event("x", None, {"id": 1}),
    event("u", ROW, None),
    event("d", None, None),
    event("c", None, {**ROW, "id": "one"}),
    event("c", None, {**ROW, "id": "one"}, with_schema=True),
    event("c", None, {**ROW, "day": "2026-02-30"}),
    event("c", None, {**ROW, "yes": 2}),
    event("c", None, {**ROW, "at": AT_MS}),
    {**event("c", None, ROW), "after": 5},
    event("c", None, {"id": 1}),
    event("c", None, {name: ROW[name] for name in ("id", "day", "yes")}, with_schema=True),
    event("d", {"id": 1}, None),
    *(
        f"{json.dumps(event('c', None, ROW))}{more}"
        for more in (json.dumps(event("c", None, ROW)), " x", "}", ', "more": {"id": 2}', ', {}], "o": [{}')
    ),
    f"{json.dumps(event('c', None, ROW, with_schema=True))} {{}}",
]


@pytest.mark.parametrize("mode", [BATCH, STREAM], ids=["batch", "stream"])
def test_events_without_such_a_row_go_to_the_quarantine_as_they_were(
    session: SparkSession, topics: Topics, tmp_path: Path, mode: str
) -> None:
    topic, columns = topics.new(), "id BIGINT, day DATE, yes BOOLEAN, at TIMESTAMP"
    texts = [each if isinstance(each, str) else json.dumps(each) for each in UNFIT]
    good = [event("c", None, {**ROW, "id": number}, with_schema=number == 2) for number in (1, 2)]
    topics.kafka.produce(topic, [json.dumps(good[0]).encode(), *(each.encode() for each in texts)])
    topics.kafka.produce(topic, [json.dumps(good[1]).encode()])
    table = changes(topics, topic, f"{columns}, deleted BOOLEAN METADATA") + files("id BIGINT", tmp_path)
    result, counted = run(session, f"SET job.error.limit.rows = 100;\n{mode}{table}{COPY_IDS}", tmp_path)
    assert result["rows"] == 2
    assert (counted["rows"], counted["quarantined"]) == (len(UNFIT) + 2, len(UNFIT))
    kept = [row["record"] for row in session.read.parquet(counted["place"]).collect()]
    assert sorted(kept) == sorted(texts)


def test_an_event_without_such_a_row_fails_the_job_or_is_left_out(
    session: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.new()
    sent = [event("c", None, {"id": 1}), event("t", None, None)]
    topics.kafka.produce(topic, [json.dumps(each).encode() for each in sent])
    rest = files("id BIGINT", tmp_path) + COPY
    with pytest.raises(
        SqlError, match=r"does not fit the declared columns: topic .*, offset 1: \{\"before\""
    ):
        run(session, BATCH + changes(topics, topic, "id BIGINT") + rest, tmp_path)
    ignoring = changes(topics, topic, "id BIGINT", **{"debezium-json.ignore-parse-errors": "true"})
    result, counted = run(session, BATCH + ignoring + rest, tmp_path)
    assert (result["rows"], counted["dropped"]) == (1, 1)


def test_a_topic_that_is_compacted_follows_the_changes(
    session: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, target, row = topics.new(), topics.new("copy"), {"id": 1, "n": 5}
    topics.kafka.produce(topic, [*records("c", None, row), *records("d", row, None)])
    columns = "id BIGINT, n INT"
    table = changes(topics, topic, f"{columns}, deleted BOOLEAN METADATA")
    into = f"""CREATE TABLE dst ({columns}, deleted BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
      USING kafka OPTIONS
      (topic '{target}', bootstrap_servers '{topics.kafka.servers}', delete_column 'deleted');
"""
    run(session, STREAM + table + into + COPY, tmp_path)
    found = [(each.key, each.value) for each in topics.kafka.records(target)]
    assert found == [(b"1", b'{"id":1,"n":5}'), *[(b"1", None)] * 2], "the delete has its tombstone"


@pytest.mark.parametrize("with_schema", [False, True], ids=["plain", "with schema"])
def test_the_copy_loses_a_row_of_whose_delete_a_compacted_topic_has_the_tombstone_alone(
    mirror: Mirror, topics: Topics, with_schema: bool
) -> None:
    one, two = customer(1), customer(2)
    sent = [each for row in (one, two) for each in records("c", None, row, with_schema=with_schema)]
    topics.kafka.produce(mirror.topic, sent)
    mirror.run()
    assert mirror.rows() == {1: one, 2: two}
    _, tombstone = records("d", two, None, with_schema=with_schema)
    topics.kafka.produce(mirror.topic, [tombstone])
    mirror.run()
    assert mirror.rows() == {1: one}


TOMBSTONES: dict[bytes, tuple[Any, ...] | str] = {
    b'{"id": 1}': (1, None, None),
    b'{"schema": {"type": "struct"}, "payload": {"id": 2}}': (2, None, None),
    b'{"id": 3, "day": 1, "at": "2026-11-01T00:00:00Z", "other": 4}': (3, "1970-01-02", AT_MS),
    **dict.fromkeys((b"{}", b'{"number": 1}'), "no row"),
    **dict.fromkeys((b"", b"Struct{id=4}", b"[]", b"5", b"null"), "unread"),
    **dict.fromkeys((b'{"id": "x"}', b'{"id": 6, "day": "x"}', b'{"id": 7'), "unread"),
    **dict.fromkeys((b'{"id": 8}{"id": 9}', b'{"id": 8}, "more": {}'), "unread"),
    b'{"schema": {}, "payload": {"id": 8}} {"id": 9}': "unread",
}


def test_a_tombstone_is_a_delete_with_the_columns_of_its_key(
    session: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, metadata = topics.new(), "deleted BOOLEAN METADATA, op STRING METADATA, made TIMESTAMP METADATA"
    topics.kafka.produce(topic, [Record(None, key) for key in TOMBSTONES])
    table = changes(topics, topic, f"id BIGINT, day DATE, at TIMESTAMP, {metadata} FROM 'source.timestamp'")
    out = "id BIGINT, day STRING, at BIGINT, deleted BOOLEAN, op STRING, made TIMESTAMP"
    query = "INSERT INTO dst SELECT id, CAST(day AS STRING), unix_millis(at), deleted, op, made FROM src"
    script = f"SET job.error.limit.rows = 100;\n{BATCH}{table}{files(out, tmp_path)}{query}"
    _, counted = run(session, script, tmp_path)
    found = sorted(map(tuple, session.read.parquet(f"{tmp_path}/out").collect()))
    rows = [row for row in TOMBSTONES.values() if isinstance(row, tuple)]
    assert found == [(*row, True, "d", None) for row in rows]
    kept = [row["record"] for row in session.read.parquet(counted["place"]).collect()]
    unread = [key for key, what in TOMBSTONES.items() if what == "unread"]
    assert sorted(kept) == sorted(f"key {key.decode()}" for key in unread)


@pytest.mark.parametrize(
    ("metadata", "options"),
    [("o BIGINT METADATA FROM 'offset'", {}), ("op STRING METADATA", {"tombstones": "false"})],
    ids=["no column of deletes", "tombstones is false"],
)
def test_a_table_leaves_tombstones_out_where_it_cannot_show_them_or_says_so(
    session: SparkSession, topics: Topics, tmp_path: Path, metadata: str, options: dict[str, object]
) -> None:
    topic, row = topics.new(), {"id": 1}
    topics.kafka.produce(topic, [*records("d", row, None), Record(None, b"no key of JSON")])
    table = changes(topics, topic, f"id BIGINT, {metadata}", **options) + files("id BIGINT", tmp_path)
    (result,) = run(session, BATCH + table + COPY_IDS, tmp_path)
    assert result["rows"] == 1


@pytest.mark.parametrize("with_schema", [False, True], ids=["plain", "with schema"])
def test_a_column_that_the_events_lack_fails_the_job_unless_it_may_be_missing(
    session: SparkSession, topics: Topics, tmp_path: Path, with_schema: bool
) -> None:
    topic, columns = topics.new(), "id BIGINT, name STRING, town STRING"
    sent = event("u", None, {"id": 1, "name": None, "city": "Paris"}, with_schema=with_schema)
    topics.kafka.produce(topic, [json.dumps(sent).encode()])
    rest = files(columns, tmp_path) + COPY
    with pytest.raises(SqlError, match=r"offset 0: it lacks town: \{"):
        run(session, BATCH + changes(topics, topic, columns) + rest, tmp_path)
    lax = changes(topics, topic, columns, **{"debezium-json.fail-on-missing-field": "false"})
    run(session, BATCH + lax + rest, tmp_path)
    assert list(map(tuple, session.read.parquet(f"{tmp_path}/out").collect())) == [(1, None, None)]


def test_a_value_that_postgresql_did_not_write_is_none_of_the_row(
    session: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic, encoded = topics.new(), base64.b64encode(PLACEHOLDER.encode()).decode()
    row = {"id": 1, "a": "a", "b": "AAH/", "c": "AAH/", "d": ["d"], "e": {"e": "e"}, "unused": PLACEHOLDER}
    unavailable: dict[str, Any] = {"a": PLACEHOLDER, "b": encoded, "c": encoded}
    unavailable |= {"d": [PLACEHOLDER], "e": {PLACEHOLDER: PLACEHOLDER}}
    sent = [row, *({**row, name: value} for name, value in unavailable.items())]
    topics.kafka.produce(topic, [json.dumps(event("u", None, each)).encode() for each in sent])
    columns = "id BIGINT, a STRING, b BINARY, c STRING, d ARRAY<STRING>, e MAP<STRING, STRING>"
    table = changes(topics, topic, columns) + files("id BIGINT", tmp_path)
    result, counted = run(session, f"SET job.error.limit.rows = 9;\n{BATCH}{table}{COPY_IDS}", tmp_path)
    assert (result["rows"], counted["quarantined"]) == (1, len(unavailable))
    with pytest.raises(SqlError, match=r"offset 1: it lacks values .* REPLICA IDENTITY FULL: \{"):
        run(session, BATCH + table + COPY_IDS, tmp_path)


@pytest.mark.parametrize("with_schema", [False, True], ids=["plain", "with schema"])
def test_a_number_beyond_tinyint_is_no_value_of_the_row(
    session: SparkSession, topics: Topics, tmp_path: Path, with_schema: bool
) -> None:
    topic, columns = topics.new(), "id TINYINT, tags ARRAY<TINYINT>"
    rows: list[dict[str, Any]] = [
        {"id": 127, "tags": [-128]},
        {"id": 200, "tags": []},
        {"id": 1, "tags": [200]},
    ]
    sent = [json.dumps(event("c", None, row, with_schema=with_schema)).encode() for row in rows]
    keys = [b'{"id": -128}', b'{"id": 200}']
    topics.kafka.produce(topic, [*sent, *(Record(None, key) for key in keys)])
    table = changes(topics, topic, f"{columns}, deleted BOOLEAN METADATA")
    out = files("id TINYINT, tags STRING, deleted BOOLEAN", tmp_path)
    query = "INSERT INTO dst SELECT id, CAST(tags AS STRING), deleted FROM src"
    _, counted = run(session, f"SET job.error.limit.rows = 9;\n{BATCH}{table}{out}{query}", tmp_path)
    found = sorted(map(tuple, session.read.parquet(f"{tmp_path}/out").collect()))
    assert found == [(-128, None, True), (127, "[-128]", False)]
    assert counted["quarantined"] == 3
