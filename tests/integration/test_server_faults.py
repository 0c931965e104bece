"""What a write does when its server is slow, goes away, breaks TLS, is full or rejects rows.

docs/connectors.md lists which test shows what for which connector.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest
from pyspark.sql import DataFrame, SparkSession
from redis import Redis

from spark_runner.connectors.errors import ConnectorError, Unreachable
from tests.byte_proxy import Fault
from tests.elasticsearch_support import Indices
from tests.faulty_tables import EXPECTED, ROWS, Tables, rows_of
from tests.servers.databases import DatabaseServer
from tests.servers.secured import Certificates
from tests.servers.web import Reply

pytestmark = pytest.mark.timeout(
    120, func_only=True
)  # no fault may make a write hang; servers may start long

KAFKA = pytest.param("kafka", marks=pytest.mark.kafka)
ELASTICSEARCH = pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)
REJECTED = ROWS // 100


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return rows_of(spark)


@pytest.fixture
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    with ExitStack() as stack:
        yield Tables(request, stack)


@pytest.fixture
def tls_tables(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Tables]:
    with ExitStack() as stack:
        yield Tables(request, stack, certificates)


@pytest.mark.parametrize("server", [KAFKA, "postgres", "mariadb", ELASTICSEARCH, "redis", "http"])
def test_answers_that_come_late_are_waited_for(tables: Tables, rows: DataFrame, server: str) -> None:
    table = tables.table(server)
    table.proxy.arm(Fault.DELAY)
    assert table.write(rows).rows == ROWS
    assert table.proxy.faults
    assert table.found() == EXPECTED


@pytest.mark.parametrize("server", ["redis", "http"])
def test_rows_whose_answer_comes_after_the_timeout_are_sent_again(
    tables: Tables, rows: DataFrame, server: str
) -> None:
    table = tables.table(server, timeout="1")
    table.proxy.arm(Fault.DELAY)
    assert table.write(rows).rows == ROWS
    assert table.proxy.faults == 1
    assert table.found() == EXPECTED


@pytest.mark.parametrize("server", [KAFKA, "postgres", "mariadb", ELASTICSEARCH, "redis", "http"])
def test_a_server_that_restarts_within_a_request_has_each_row_once(
    tables: Tables, rows: DataFrame, server: str
) -> None:
    table = tables.table(server)
    table.proxy.arm(Fault.CUT, refusals=2)
    attempts = table.write_at_last(rows)
    assert (table.proxy.faults, table.proxy.refused) == (1, 2)
    assert attempts == 1 or table.connector == "jdbc", "a task tries again itself"
    assert table.found() == EXPECTED


@pytest.mark.parametrize("fault", [Fault.DAMAGED_ANSWER, Fault.DAMAGED_REQUEST])
@pytest.mark.parametrize("server", [KAFKA, "postgres", "mariadb", ELASTICSEARCH, "redis", "http"])
def test_tls_that_breaks_within_a_request_damages_no_row(
    tls_tables: Tables, rows: DataFrame, server: str, fault: Fault
) -> None:
    table = tls_tables.table(server)
    table.proxy.arm(fault)
    attempts = table.write_at_last(rows)
    assert table.proxy.faults == 1
    assert attempts == 1 or table.connector == "jdbc", "a task tries again itself"
    assert table.found() == EXPECTED


def test_a_full_redis_is_named_and_written_to_when_it_has_room(tables: Tables, rows: DataFrame) -> None:
    table = tables.table("redis", retry_timeout="0.5")
    with Redis(port=table.proxy.port) as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(
            Unreachable, match=rf"127.0.0.1:{table.proxy.port} does not take rows: .*maxmemory"
        ):
            table.write(rows)
        client.config_set("maxmemory", "0")
    table.write(rows, attempt=2)
    assert table.found() == EXPECTED


def test_an_elasticsearch_without_disk_is_named_and_written_to_when_it_has_some(
    tables: Tables, rows: DataFrame, indices: Indices
) -> None:
    table = tables.table("elasticsearch", retry_timeout="0.5")
    block = partial(indices.ask, "PUT", f"/{table.options['index']}/_settings")
    block({"index.blocks.read_only_allow_delete": True})  # as the server does itself
    with pytest.raises(
        Unreachable, match=rf":{table.proxy.port} does not take rows: cluster_block_exception"
    ):
        table.write(rows)
    block({"index.blocks.read_only_allow_delete": None})
    table.write(rows, attempt=2)
    assert table.found() == EXPECTED


def test_a_postgresql_without_room_is_named_and_keeps_its_rows(
    tables: Tables, rows: DataFrame, postgres: DatabaseServer
) -> None:
    table = replace(tables.table("postgres"), key=("id",))
    postgres.run("ALTER TABLE kept ADD PRIMARY KEY (id); INSERT INTO kept VALUES (-1, 'old')")
    for setting in ("work_mem", "temp_file_limit"):
        postgres.run(f"ALTER DATABASE {postgres.database} SET {setting} = '64kB'")
    twice = rows.union(rows)  # it has to sort them, in files
    with pytest.raises(Unreachable, match=rf"'{postgres.database}'.* refused: .*temp_file_limit.* used up"):
        table.write(twice)
    assert table.found() == [(-1, "old")]
    postgres.run(f"ALTER DATABASE {postgres.database} RESET ALL")
    table.write(twice, attempt=2)
    assert table.found() == [(-1, "old"), *EXPECTED]


def test_a_mariadb_without_room_is_named_and_keeps_its_rows(
    tables: Tables, rows: DataFrame, mariadb: DatabaseServer
) -> None:
    table = tables.table("mariadb")
    # A table that a trigger fills: `kept` itself has no limit, as its engine has transactions.
    mariadb.run(
        "INSERT INTO kept VALUES (-1, 'old'); SET max_heap_table_size = 16384;"
        " CREATE TABLE small (text varchar(300)) ENGINE = MEMORY;"
        " CREATE TRIGGER fill BEFORE INSERT ON kept FOR EACH ROW INSERT INTO small VALUES (NEW.text)"
    )
    with pytest.raises(Unreachable, match=rf"'{mariadb.database}'.* refused: .*The table 'small' is full"):
        table.write(rows)
    assert table.found() == [(-1, "old")]
    mariadb.run("DROP TRIGGER fill")
    table.write(rows, attempt=2)
    assert table.found() == [(-1, "old"), *EXPECTED]


@pytest.mark.parametrize("server", [ELASTICSEARCH, "redis", "http"])
def test_rows_of_which_a_server_rejects_one_in_a_hundred_are_set_aside(
    tables: Tables, rows: DataFrame, server: str
) -> None:
    times = 7000 if server == "elasticsearch" else 1  # more than a term of an index may have
    large = f"CASE WHEN id % 100 = 0 THEN repeat('large', {times}) ELSE text END AS text"
    table = tables.table(server, **({"command": "RPUSH"} if server == "redis" else {}))
    with ExitStack() as stack:
        if server == "redis":
            client = stack.enter_context(Redis(port=table.proxy.port))
            client.mset({str(number): "no list" for number in range(0, ROWS, 100)})
        if tables.web is not None:
            tables.web.reply = lambda received: Reply(422 if b"large" in received.body else 200)
        written = table.write(rows.selectExpr("id", large))
        assert written.rows == ROWS - REJECTED
        assert written.rejected is not None
        assert written.rejected.count() == REJECTED
        if server == "redis":
            assert len(list(client.scan_iter(count=ROWS, _type="LIST"))) == ROWS - REJECTED
        elif tables.web is not None:
            taken = [each for each in tables.web.received if b"large" not in each.body]
            assert sum(each.body.count(b"\n") for each in taken) == ROWS - REJECTED
        else:
            assert table.found() == [row for row in EXPECTED if row[0] % 100]


@pytest.mark.parametrize(
    ("server", "size", "words"),
    [
        pytest.param("kafka", 2_000_000, "a record is larger than topic 'test-", marks=pytest.mark.kafka),
        ("postgres", 301, "value too long"),
        ("mariadb", 301, "Data too long"),
    ],
)
def test_a_row_that_a_server_rejects_fails_a_write_that_sets_none_aside(
    tables: Tables, rows: DataFrame, server: str, size: int, words: str
) -> None:
    large = f"CASE WHEN id % 100 = 0 THEN repeat('x', {size}) ELSE text END AS text"
    table = tables.table(server)
    with pytest.raises(ConnectorError, match=words) as caught:
        table.write(rows.selectExpr("id", large))
    assert not isinstance(caught.value, Unreachable), "a further attempt fails as well"
    if table.connector == "jdbc":
        assert table.found() == []
