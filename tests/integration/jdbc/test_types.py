"""Values of each type go into a database and come back equal."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.jdbc_support import Run
from tests.servers.databases import DatabaseServer

AT = datetime(2026, 10, 25, 0, 30, 0, 123456, UTC)  # summer time ends half an hour later in Europe
COLUMNS = (
    "id INT, small SMALLINT, large BIGINT, price DECIMAL(38,10), half FLOAT, whole DOUBLE,"
    " ok BOOLEAN, name STRING, raw BINARY, day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ,"
    " doc STRUCT<a: INT, b: ARRAY<STRING>>, docs ARRAY<STRUCT<a: INT, b: STRING>>,"
    " maps ARRAY<ARRAY<MAP<STRING, INT>>>"
)
TEXT = 'tab\t line\n return\r quote" back\\ \\N é 漢 😀'
ROW: tuple[Any, ...] = (
    *(1, -32768, 2**63 - 1, Decimal("1234567890123456789012345678.0123456789"), 0.5, 1e-300, True, TEXT),
    *(bytes(range(256)), date(1970, 1, 1), AT, datetime(2026, 3, 29, 2, 30), (1, ["x,y", None, '"'])),  # noqa: DTZ001 - a clock
    *([(1, TEXT), None, (None, "{}")], [[{"a": 1}, {}], [], [None]]),
)


def round_trip(  # noqa: PLR0917 - its parts are fixtures
    database: DatabaseServer, spark: SparkSession, run: Run, folder: Path, columns: str, row: tuple[Any, ...]
) -> Any:
    """The row that is read after it was written to table `t`."""
    # Parquet keeps the values as they are, on both sides.
    spark.createDataFrame([row], columns).write.parquet(f"{folder}/in")
    run(
        f"""CREATE TABLE given ({columns}) USING parquet OPTIONS (path '{folder}/in');
        CREATE TABLE t ({columns}) {database.options("t", create=True)};
        INSERT INTO t SELECT * FROM given;
        CREATE TABLE out ({columns}) USING parquet OPTIONS (path '{folder}/out');
        INSERT INTO out SELECT * FROM t;"""
    )
    (found,) = spark.read.parquet(f"{folder}/out").collect()
    return found


def test_values_of_each_type_come_back_equal(
    database: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    found = round_trip(database, jdbc_spark, run_script, tmp_path, COLUMNS, ROW)
    for name, value in zip(found.__fields__, ROW, strict=True):
        given = found[name]
        if name == "at":
            given = given.astimezone(UTC)
        if name == "doc":
            given = (given.a, given.b)
        assert (bytes(given) if name == "raw" else given) == value, name


def test_nulls_come_back(
    database: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    nulls = (None,) * len(ROW)
    found = round_trip(database, jdbc_spark, run_script, tmp_path, COLUMNS, nulls)
    assert tuple(found) == nulls


def test_arrays_and_special_numbers_of_postgresql_come_back(
    postgres: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    columns = "names ARRAY<STRING>, numbers ARRAY<BIGINT>, at ARRAY<TIMESTAMP>, low DOUBLE, odd DOUBLE"
    row = (['a,b"c\\', None, "", "NULL"], [1, None], [AT], float("-inf"), float("nan"))
    found = round_trip(postgres, jdbc_spark, run_script, tmp_path, columns, row)
    assert (found.names, found.numbers, found.low) == (row[0], row[1], row[3])
    assert found.odd != found.odd  # NaN
    assert [each.astimezone(UTC) for each in found.at] == [AT]
    kinds = postgres.run("SELECT pg_typeof(names), pg_typeof(at) FROM t")
    assert kinds == [["text[]", "timestamp with time zone[]"]]


def test_a_time_is_a_clock_of_the_session_in_a_column_without_a_zone(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run("CREATE TABLE t (wall timestamp, uid uuid, net inet, doc json)")
    run_script(
        f"""CREATE TABLE t (wall TIMESTAMP, uid STRING, net STRING, doc STRING) {postgres.options("t")};
        INSERT INTO t VALUES (TIMESTAMP '2026-03-01 12:00:00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
        '10.0.0.1', '{{"a":  1}}');"""
    )
    assert postgres.run("SELECT * FROM t") == [
        ["2026-03-01 12:00:00", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "10.0.0.1", '{"a":  1}']
    ]


def test_a_time_in_the_repeated_hour_of_autumn_is_the_same_point_in_time(
    database: DatabaseServer, run_script: Run, tmp_path: Path, jdbc_spark: SparkSession
) -> None:
    kind = "timestamptz" if database.kind == "postgresql" else "timestamp(6) NULL"
    database.run(f"CREATE TABLE t (id int, at {kind})")
    first = 1_792_888_200_123_456  # 02:30 in Berlin for the first time, an hour before the second
    run_script(
        f"""SET spark.sql.session.timeZone = 'Europe/Berlin';
        CREATE TABLE t (id INT, at TIMESTAMP) {database.options("t")};
        INSERT INTO t SELECT CAST(id AS INT), timestamp_micros({first} + id * 3600000000) FROM range(3);
        CREATE TABLE out (id INT, at BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
        INSERT INTO out SELECT id, unix_micros(at) FROM t;"""
    )
    micros = "extract(epoch FROM at) * 1000000" if database.kind == "postgresql" else "at"
    zone = "SET time_zone = '+00:00'; " if database.kind == "mariadb" else ""
    found = [cell for (cell,) in database.run(f"{zone}SELECT {micros} FROM t ORDER BY id")]
    if database.kind == "mariadb":
        assert [each[11:] for each in found] == [f"{hour:02}:30:00.123456" for hour in (0, 1, 2)]
    else:
        assert [round(float(each)) for each in found] == [first + hour * 3_600_000_000 for hour in range(3)]
    read = sorted(map(tuple, jdbc_spark.read.parquet(f"{tmp_path}/out").collect()))
    assert read == [(number, first + number * 3_600_000_000) for number in range(3)]
