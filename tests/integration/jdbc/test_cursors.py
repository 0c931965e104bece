"""What a stream reads of columns of any type, over connections that break, are slow, or use TLS."""

import gc
import json
import re
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]  # it publishes no types
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from queues.embedded.ports import free_ports
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.jdbc.cursor import CursorReader, Range
from spark_runner.connectors.jdbc.source import JdbcSource
from spark_runner.connectors.options import to_plan, validate
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run, reader
from tests.servers.databases import PASSWORD, DatabaseServer, mariadb_at
from tests.servers.secured import Certificates
from tests.waiting import wait_until

TYPES = {  # of a column of MariaDB: the types of Spark that a script may declare, and a value
    "tinyint": ("TINYINT", "-128"),
    "tinyint(1)": ("BOOLEAN", "1"),
    "tinyint(1) ": ("INT", "5"),
    "smallint unsigned": ("INT", "65535"),
    "mediumint": ("STRING", "-8388608"),
    "bigint": ("BIGINT", "-9223372036854775808"),
    "bigint unsigned": ("DECIMAL(20)", "18446744073709551615"),
    "decimal(38,10)": ("DECIMAL(38,10)", "-1234567890123456789012345678.0123456789"),
    "decimal(5,2)": ("INT", "123.45"),
    "float": ("FLOAT", "0.12345678"),
    "double": ("DOUBLE", "0.1234567890123456"),
    "bit(1)": ("BOOLEAN", "b'1'"),
    "year": ("DATE", "2026"),
    "date": ("DATE", "'2026-11-27'"),
    "datetime(6)": ("TIMESTAMP_NTZ", "'2026-03-29 02:30:00.123456'"),
    "datetime": ("TIMESTAMP", "'2026-11-27 01:02:03'"),
    "timestamp(6) NULL": ("TIMESTAMP", "'2026-11-27 01:02:03.000001'"),
    "timestamp(3) NULL": ("TIMESTAMP_NTZ", "'2026-11-27 01:02:03.004'"),
    "varchar(40)": ("STRING", "'tab\\t quote\\' back\\\\ é 漢 😀'"),
    "enum('a','b')": ("STRING", "'b'"),
    "json": ("STRUCT<a: INT, b: ARRAY<STRING>>", """'{"a": 1, "b": ["x", null]}'"""),
    "varbinary(40)": ("BINARY", "x'00ff1abc'"),
    "longblob": ("BINARY", "x'0a0d5c27'"),
    "point": ("BINARY", "ST_GeomFromText('POINT(1 2)')"),
    "char(5)": ("STRING", "'ab'"),
    "enum('a','bcd')": ("STRING", "'a'"),
    "binary(3)": ("STRING", "'abc'"),
}
LONG = {"postgresql": "text", "mariadb": "longtext"}
COLUMNS = {f"c{number}": pair for number, pair in enumerate(TYPES.items())}


def copied(run: Run, database: DatabaseServer, columns: str, folder: Path, **options: object) -> list[Any]:
    """How many rows a script reads of the table `src` into files."""
    mode = "SET job.mode = 'available-now';" if options else ""
    return [
        each["rows"]
        for each in run(
            f"""{mode} CREATE TABLE src ({columns}) {database.options("src", **options)};
            CREATE TABLE out ({columns}) USING parquet OPTIONS (path '{folder}');
            INSERT INTO out SELECT * FROM src;"""
        )
    ]


def test_a_stream_of_mariadb_has_the_values_of_a_read(
    mariadb: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    values = ", ".join(value for _, (_, value) in COLUMNS.values())
    nulls = ", ".join("NULL" for _ in COLUMNS)
    statements = f"CREATE TABLE src (id bigint PRIMARY KEY, zero date, {kinds}) CHARACTER SET utf8mb4;"
    statements += f"SET sql_mode = ''; INSERT INTO src VALUES (1, '0000-00-00', {values}),"
    mariadb.run(f"{statements} (2, NULL, {nulls})")
    columns = "id BIGINT, zero DATE, " + ", ".join(
        f"{name} {kind}" for name, (_, (kind, _)) in COLUMNS.items()
    )
    assert copied(run_script, mariadb, columns, tmp_path / "read") == [2]
    assert copied(run_script, mariadb, columns, tmp_path / "stream", cursor_column="id") == [2]
    read, streamed = (
        jdbc_spark.read.parquet(f"{tmp_path}/{name}").orderBy("id").collect() for name in ("read", "stream")
    )
    for name, (kind, _) in COLUMNS.items():
        assert streamed[0][name] == read[0][name], kind
        assert streamed[0][name] is not None, kind
    assert streamed == read


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint unsigned", ["9007199254740992", "9007199254740993", "18446744073709551615"]),
        ("decimal(30,3)", ["9007199254740992.001", "9007199254740992.002", "9007199254740993"]),
        ("timestamp(6)", ["'2026-11-27 01:02:03.000001'", "'2026-11-27 01:02:03.000002'", "'2027-01-01'"]),
        ("datetime(1)", ["'2026-03-29 02:30:00.1'", "'2026-03-29 02:30:00.2'", "'2026-03-29 02:30:00.3'"]),
        ("date", ["'2026-11-27'", "'2026-11-28'", "'2026-11-29'"]),
        ("varchar(20)", ["'a\\'b\\\\'", "'a\\'b\\\\c'", "'é'"]),
    ],
)
def test_each_type_of_mariadb_orders_its_own_values(
    mariadb: DatabaseServer, kind: str, values: list[str]
) -> None:
    mariadb.run(f"SET time_zone = '+00:00'; CREATE TABLE src (id {kind} NOT NULL, text longtext)")
    start: dict[str, Any] = {"cursor": None}
    for value in values:
        mariadb.run(f"SET time_zone = '+00:00'; INSERT INTO src VALUES ({value}, 'x')")
        later = reader(mariadb, kind, reached=[json.dumps(start)])
        end = later.latestOffset()
        (part,) = later.partitions(start, end)
        assert rows(later, part) == 1, value
        assert later.latestOffset() == end
        start = end


def test_texts_of_digits_are_no_numbers(database: DatabaseServer) -> None:
    database.run(
        "CREATE TABLE src (id varchar(20), text varchar(9)); INSERT INTO src VALUES ('3', ''), ('5', '')"
    )
    first = reader(database, "character varying(20)" if database.kind == "postgresql" else "varchar(20)")
    start = first.latestOffset()
    database.run("INSERT INTO src VALUES ('90000', '')")
    assert sum(rows(first, part) for part in first.partitions(start, first.latestOffset())) == 1


def test_large_rows_are_alone_in_their_batch(database: DatabaseServer) -> None:
    database.run(f"CREATE TABLE src (id int, text {LONG[database.kind]})")
    database.run(
        "INSERT INTO src VALUES " + ", ".join(f"({number}, repeat('x', 3000000))" for number in range(6))
    )
    assert [batch.num_rows for batch in reader(database).read(Range(None, "6"))] == [2, 2, 2, 0]


def many(database: DatabaseServer) -> None:
    """Rows of 100 MB, which no buffer between a server and its client holds."""
    database.run(f"CREATE TABLE src (id bigint PRIMARY KEY, text {LONG[database.kind]})")
    numbers = "generate_series(1, 100000) i" if database.kind == "postgresql" else "seq_1_to_100000"
    column = "i" if database.kind == "postgresql" else "seq"
    database.run(f"INSERT INTO src SELECT {column}, repeat('x', 1000) FROM {numbers}")


def connections(mariadb: DatabaseServer) -> list[str]:
    """The ids of the connections that read the table."""
    words = "SELECT id FROM information_schema.processlist WHERE info LIKE '%`src`%'"
    return [line[0] for line in mariadb.run(f"{words} AND id <> connection_id()")]


def test_a_connection_that_breaks_while_rows_come_is_no_fault_of_the_script(mariadb: DatabaseServer) -> None:
    many(mariadb)
    found = reader(mariadb).read(Range(None, "100000"))
    next(found)
    (number,) = connections(mariadb)
    mariadb.run(f"KILL CONNECTION {number}")
    with pytest.raises(Unreachable, match=r"does not answer: .*onnection.*; check the option 'url'"):
        list(found)


def test_a_read_that_is_given_up_reads_no_further_row(mariadb: DatabaseServer) -> None:
    many(mariadb)
    found = reader(mariadb).read(Range(None, "100000"))
    assert isinstance(found, Generator)
    assert next(found).num_rows == 2_000
    assert connections(mariadb)
    found.close()  # pytest makes a failure of an error that is ignored in it
    gc.collect()
    wait_until(lambda: not connections(mariadb), 10, "the connection is closed")


def test_a_slow_answer_is_awaited_and_a_server_without_words_is_not(mariadb: DatabaseServer) -> None:
    mariadb.run("CREATE VIEW src AS SELECT 7 AS id, SLEEP(3) AS text")
    url = f"{mariadb.url}?connectTimeout=1000"
    slow = reader(mariadb, url=url)
    assert rows(slow, Range(None, "7")) == 1
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        deaf = reader(mariadb, url=url.replace(str(mariadb.port), port))
        with pytest.raises(Unreachable, match=f"127.0.0.1:{port} does not answer: .*timed out"):
            deaf.latestOffset()


def test_errors_of_a_login_and_of_an_address_are_named(mariadb: DatabaseServer) -> None:
    mariadb.run("CREATE TABLE src (id bigint, text longtext)")
    with pytest.raises(ConnectorError, match=r"Access denied .*check the options 'username' and 'password'"):
        reader(mariadb, password="wrong").latestOffset()  # noqa: S106 - of no server
    (port,) = free_ports("127.0.0.1", 1)
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port} does not answer: .*refused"):
        reader(mariadb, url=mariadb.url.replace(str(mariadb.port), str(port))).latestOffset()


def test_a_password_may_have_any_character(mariadb: DatabaseServer) -> None:
    mariadb.run("CREATE TABLE src (id bigint, text longtext); INSERT INTO src VALUES (7, 'x')")
    user, password = f"u{mariadb.database[-20:]}", "pä€漢😀"
    mariadb.run(f"CREATE USER {user} IDENTIFIED BY '{password}'; GRANT SELECT ON src TO {user}")
    assert reader(mariadb, username=user, password=password).latestOffset()["cursor"] == "7"
    mariadb.run(f"DROP USER {user}")


@pytest.mark.parametrize("mode", ["trust", "verify-ca", "verify-full"])
def test_new_rows_of_mariadb_are_read_over_tls(
    certificates: Certificates, mariadb_tls_port: int, mode: str
) -> None:
    secured = mariadb_at(mariadb_tls_port)
    secured.run("CREATE TABLE src (id bigint, text longtext); INSERT INTO src VALUES (7, 'x')")
    user = f"u{secured.database[-20:]}"
    secured.run(f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}' REQUIRE SSL; GRANT SELECT ON src TO {user}")

    def highest(ca: str, host: str) -> object:
        url = f"{replace(secured, host=host).url}?sslMode={mode}&serverSslCert={ca}"
        return reader(secured, url=url, username=user).latestOffset()["cursor"]

    assert highest(certificates.ca, "localhost") == "7"
    if mode == "trust":
        assert highest(certificates.ca, "127.0.0.1") == "7"
        with pytest.raises(ConnectorError, match="Access denied"):
            reader(secured, username=user).latestOffset()
        return
    with pytest.raises(Unreachable, match="certificate verify failed"):
        highest(certificates.other_ca, "localhost")
    if mode == "verify-ca":
        assert highest(certificates.ca, "127.0.0.1") == "7"
        return
    with pytest.raises(Unreachable, match=r"certificate is not valid for '127\.0\.0\.1'"):
        highest(certificates.ca, "127.0.0.1")
    secured.run(f"DROP USER {user}")


@pytest.mark.parametrize("kind", ["float", "double", "varbinary(9)", "bit(8)", "enum('a')"])
def test_a_column_whose_order_its_texts_do_not_have_is_refused(
    mariadb: DatabaseServer, run_script: Run, tmp_path: Path, kind: str
) -> None:
    mariadb.run(f"CREATE TABLE src (id {kind})")
    with pytest.raises(SqlError, match=f"'cursor_column' cannot be 'id' of type '{re.escape(kind)}'"):
        copied(run_script, mariadb, "id STRING", tmp_path / "out", cursor_column="id")


@pytest.mark.parametrize(
    ("kind", "position", "message"),
    [
        ("bigint", "soon", "the position 'soon' is no value of column 'id' of type 'bigint(20)': it is no"),
        ("bigint", "1.5", "it is no whole number"),
        ("bigint", "٣", "it is no number"),
        ("decimal(9,2)", "1e999999999", "it is no number"),
        ("timestamp", "soon", "it is no time; write it as '2026-01-31 12:00:00'"),
        ("timestamp", "0001-01-01T00:00+02:00", "it is no time"),
        ("date", "2026-02-30", "it is no time"),
    ],
)
def test_a_position_that_is_no_value_of_the_column_is_refused(
    mariadb: DatabaseServer, jdbc_spark: SparkSession, kind: str, position: str, message: str
) -> None:
    mariadb.run(f"CREATE TABLE src (id {kind})")
    with pytest.raises(ConnectorError, match=re.escape(message)):
        streamed(jdbc_spark, mariadb, position=position)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("useCompression=true", "no other parameters than connectTimeout, serverSslCert, sslMode"),
        ("sslMode=sometimes", "'sslMode' in option 'url' is 'sometimes', not one of disable, trust, "),
        (
            "sslMode=trust&serverSslCert=/no/ca.pem",
            "certificates of authorities in '/no/ca.pem', which option",
        ),
        ("connectTimeout=soon", "'connectTimeout' in option 'url' is 'soon', no number of milliseconds"),
    ],
)
def test_parameters_that_a_stream_cannot_use_are_named(
    mariadb: DatabaseServer, jdbc_spark: SparkSession, parameters: str, message: str
) -> None:
    mariadb.run("CREATE TABLE src (id bigint, text longtext)")
    url = f"{mariadb.url}?{parameters}"
    is_found_by_the_driver = parameters.startswith("use")
    with pytest.raises(ConnectorError, match=re.escape(message)):
        _ = (
            streamed(jdbc_spark, mariadb, url=url)
            if is_found_by_the_driver
            else reader(mariadb, url=url).latestOffset()
        )


def streamed(
    spark: SparkSession, database: DatabaseServer, position: str | None = None, **more: str
) -> object:
    """The stream of the column `id` of the table `src`."""
    given = {"url": database.url, "username": database.user, "password": PASSWORD, "table": "src"}
    options = to_plan(validate("jdbc", given | {"cursor_column": "id"} | more))
    return JdbcSource().stream_after(spark, options, StructType().add("id", StringType()), position, ())


def test_a_date_with_zeros_does_not_end_a_stream(mariadb: DatabaseServer) -> None:
    mariadb.run("CREATE TABLE src (id timestamp NOT NULL DEFAULT 0, text longtext)")
    mariadb.run("SET sql_mode = ''; INSERT INTO src VALUES ('0000-00-00', 'x')")
    start = reader(mariadb, "timestamp").latestOffset()
    assert start["cursor"] == "0000-00-00 00:00:00"
    mariadb.run("INSERT INTO src VALUES ('2026-11-27 01:02:03', 'y')")
    later = reader(mariadb, "timestamp", reached=[json.dumps(start)])
    (part,) = later.partitions(start, later.latestOffset())
    assert rows(later, part) == 1


@pytest.mark.parametrize(
    "setting",
    [
        "autocommit = 0",
        "sql_select_limit = 1",
        "tx_isolation = 'READ-UNCOMMITTED'",
        "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    ],
)
def test_settings_of_a_server_lose_no_row(mariadb: DatabaseServer, setting: str) -> None:
    name = setting.partition(" ")[0]
    ((before,),) = mariadb.run(f"SELECT @@GLOBAL.{name}")
    mariadb.run("CREATE TABLE src (id varchar(9) PRIMARY KEY, text longtext)")
    mariadb.run("INSERT INTO src VALUES ('1', ''), ('2', ''), ('3', '')")
    mariadb.run(f"SET GLOBAL {setting}")
    try:
        found = reader(mariadb, "varchar(9)")
        assert found.latestOffset()["cursor"] == "3"
        assert rows(found, Range("1", "3")) == 2
        with uncommitted(mariadb, "INSERT INTO src VALUES ('4', '')"):
            assert found.latestOffset()["cursor"] == "3"
    finally:
        mariadb.run(
            f"SET GLOBAL {name} = '{before}'" if not before.isdecimal() else f"SET GLOBAL {name} = {before}"
        )


@contextmanager
def uncommitted(mariadb: DatabaseServer, statement: str) -> Iterator[None]:
    """A transaction that has run a statement, and is rolled back."""
    other = pymysql.connect(
        host=mariadb.host, port=mariadb.port, user=mariadb.user, password=PASSWORD, database=mariadb.database
    )
    with closing(other):
        other.query(statement)
        yield


def test_a_user_without_a_free_connection_is_told_so_and_the_attempt_may_be_repeated(
    mariadb: DatabaseServer,
) -> None:
    many(mariadb)
    user = f"u{mariadb.database[-20:]}"
    mariadb.run(f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}' WITH MAX_USER_CONNECTIONS 1")
    mariadb.run(f"GRANT SELECT ON src TO {user}")
    found = reader(mariadb, username=user).read(Range(None, "100000"))
    next(found)
    with pytest.raises(Unreachable, match=r"refused: .*max_user_connections.*; its connections are used up"):
        reader(mariadb, username=user).latestOffset()
    assert isinstance(found, Generator)
    found.close()
    mariadb.run(f"DROP USER {user}")


@pytest.mark.parametrize("login", [b"mysql_clear_password", b"dialog", b"mysql_old_password"])
def test_a_server_does_not_get_the_password_as_it_is(mariadb: DatabaseServer, login: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, got = listener.getsockname()[1], list[bytes]()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(packet(0, GREETING))
                got.append(connection.recv(65_536))
                connection.sendall(packet(2, b"\xfe" + login + b"\0" + b"12345678901234567890\0"))
                got.append(connection.recv(65_536))

        server = threading.Thread(target=serve)
        server.start()
        with pytest.raises(ConnectorError, match="without TLS; set 'sslMode'"):
            reader(mariadb, url=mariadb.url.replace(str(mariadb.port), str(port))).latestOffset()
        server.join()
    assert len(got[0]) > 40
    assert got[1] == b""


GREETING = (
    b"\x0a10.11.0\0\1\0\0\x0012345678\0\xff\xf7\x2d\2\0\xff\xc1\x15"
    + bytes(10)
    + b"123456789012\0mysql_native_password\0"
)


def packet(number: int, body: bytes) -> bytes:
    """A packet of the protocol of MySQL."""
    return len(body).to_bytes(3, "little") + bytes([number]) + body


def test_a_stream_begins_above_a_position(database: DatabaseServer) -> None:
    database.run("CREATE TABLE src (id bigint, text varchar(9)); INSERT INTO src VALUES (1, 'a'), (2, 'b')")
    later = reader(database, start="1")
    (part,) = later.partitions(later.initialOffset(), later.latestOffset())
    assert rows(later, part) == 1


def rows(source: CursorReader, part: Any) -> int:
    """The number of rows of a part."""
    return sum(batch.num_rows for batch in source.read(part))
