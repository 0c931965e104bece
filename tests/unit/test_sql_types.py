"""Types in scripts, and intervals: what Spark would refuse in the run is refused at submission."""

# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
import time
from importlib.metadata import PackageNotFoundError, version

import pytest

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.grammar import spark_line
from spark_runner.sql.text.errors import SqlError

THE_LINE_OF_SPARK = spark_line.spark_line

TYPES = [
    *(
        "TINYINT",
        "byte",
        "SMALLINT",
        "INT",
        "integer",
        "BIGINT",
        "LONG",
        "FLOAT",
        "REAL",
        "DOUBLE",
        "BOOLEAN",
    ),
    *(
        "DATE",
        "TIME",
        "TIME(3)",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "TIMESTAMP_LTZ",
        "TIMESTAMP WITHOUT TIME ZONE",
    ),
    *("TIMESTAMP(6)", "TIMESTAMP_NTZ(6)", "TIMESTAMP_LTZ(6)", "TIMESTAMP(6) WITHOUT TIME ZONE", "TIME(0)"),
    *("STRING", "STRING COLLATE UTF8_LCASE", "BINARY", "CHAR(3)", "CHARACTER(4)", "VARCHAR(5)", "VOID"),
    *("DECIMAL", "DEC(5)", "NUMERIC(5, 2)", "DECIMAL(38, 38)", "INTERVAL DAY TO SECOND", "INTERVAL YEAR"),
    *("VARIANT", "ARRAY<INT>", "MAP<STRING, ARRAY<DECIMAL(5, 2)>>", "STRUCT<>", "STRUCT<a INT, b: STRING>"),
    *(
        "GEOMETRY(ANY)",
        "GEOGRAPHY(4326)",
        "INTERVAL HOUR TO SECOND",
        "STRUCT<1a: INT>",
        "TIME WITHOUT TIME ZONE",
    ),
    "STRUCT<`a, b`: INT NOT NULL COMMENT 'a > b', c: ARRAY<STRUCT<d: VARCHAR(5) COLLATE UTF8_LCASE>>>",
]
WRONG = {
    "STRNG": (0, "unknown type 'STRNG'; did you mean 'STRING'?"),
    "text": (0, "unknown type 'text'; write STRING"),
    "`int`": (0, "unknown type '`int`'"),
    "INT(5)": (3, "type INT has no parameter"),
    "VARCHAR": (0, "type VARCHAR needs a length"),
    "DECIMAL(39)": (8, "a DECIMAL has up to 38 digits"),
    "DECIMAL(2, 3)": (11, "more digits behind the point"),
    "TIMESTAMP(3)": (10, "TIMESTAMP(3) is no type of Spark: TIMESTAMP has microseconds; write TIMESTAMP"),
    "ARRAY<TIMESTAMP_LTZ(3)>": (20, "TIMESTAMP_LTZ has microseconds; write TIMESTAMP_LTZ"),
    "TIME(10)": (5, "TIME has up to 9 digits of a second"),
    "MAP": (0, "MAP needs the types of its elements, as in MAP<STRING, INT>"),
    "MAP<INT>": (7, "MAP has the types of its keys and values"),
    "DECIMAL()": (8, "expected a number without sign and point"),
    "DECIMAL(10, -2)": (12, "expected a number without sign and point, found '-'"),
    "DECIMAL(10, 2, 3)": (13, "expected ')', found ','"),
    "CHAR(5, 2)": (6, "expected ')', found ','"),
    "VARCHAR(99999999999)": (8, "99999999999 is too large for VARCHAR; the limit is 2147483647"),
    "DOUBLE PRECISION": (7, "'DOUBLE PRECISION' is no type of Spark; write DOUBLE"),
    "TIMESTAMP WITH TIME ZONE": (10, "a TIMESTAMP has the time zone of the session; write TIMESTAMP"),
    "INT COLLATE UTF8_LCASE": (4, "expected ',' before 'COLLATE'"),
    "STRING COLLATE": (14, "expected the name of a collation"),
    "GEOMETRY": (0, "type GEOMETRY needs the number of a reference system, as in GEOMETRY(4326)"),
    "INTERVAL DAY TO YEAR": (9, "INTERVAL has no DAY TO YEAR; write it like INTERVAL DAY TO SECOND"),
    "INTERVAL DAYS": (9, "expected ',' before 'DAYS'"),
    "INT ARRAY": (4, "expected ',' before 'ARRAY'"),
    "ARRAY<INT": (9, "expected ',' or '>', found ')'"),
    "ARRAY<INT NOT NULL>": (10, "expected ',' or '>', found 'NOT'"),
    "MAP<STRING COMMENT 'x', INT>": (11, "expected ',' or '>', found 'COMMENT'"),
    "STRUCT<a:INT b:INT>": (13, "expected ',' or '>', found 'b'"),
    "STRUCT<a INT DEFAULT 1>": (13, "expected ',' or '>', found 'DEFAULT'"),
    "STRUCT<a INT COMMENT>": (20, "expected the text of the comment, found '>'"),
    "STRUCT<a INT COMMENT 'x' NOT NULL>": (25, "expected ',' or '>', found 'NOT'"),
    "STRUCT<1: INT>": (7, "expected the name of a field"),
    "ARRAY<>": (6, "ARRAY has one type"),
    "STRUCT<a>": (8, "expected a type, found '>'"),
    "STRUCT<a: ARRAY<MAP<STRING, STRNG>>>": (28, "unknown type 'STRNG'"),
}


# Types that older lines of Spark refuse, as (4, 1), with the place and the message of the error there.
SINCE = {
    "TIME": ((4, 1), 0, "type TIME needs Spark 4.1, and this host has Spark 4.0; write STRING"),
    "ARRAY<TIME(3)>": ((4, 1), 6, "type TIME needs Spark 4.1"),
    "GEOMETRY(ANY)": ((4, 1), 0, "type GEOMETRY needs Spark 4.1"),
    "GEOGRAPHY(4326)": ((4, 1), 0, "type GEOGRAPHY needs Spark 4.1"),
    "TIMESTAMP WITHOUT TIME ZONE": ((4, 1), 10, "TIMESTAMP WITHOUT TIME ZONE needs Spark 4.1"),
    "INT COMMENT 'x' 'y'": ((4, 1), 16, "a comment of several texts needs Spark 4.1"),
    "TIMESTAMP WITH LOCAL TIME ZONE": ((4, 2), 10, "and this host has Spark 4.1; write TIMESTAMP_LTZ"),
    "VARCHAR(5) COLLATE UTF8_LCASE": ((4, 2), 11, "VARCHAR with a collation needs Spark 4.2"),
    "STRUCT<a: CHAR(5) COLLATE UTF8_LCASE>": ((4, 2), 18, "CHAR with a collation needs Spark 4.2"),
    "TIMESTAMP(6)": (
        (4, 3),
        10,
        "TIMESTAMP(6) needs Spark 4.3, and this host has Spark 4.2; write TIMESTAMP",
    ),
    "TIMESTAMP_NTZ(6)": ((4, 3), 14, "TIMESTAMP_NTZ(6) needs Spark 4.3"),
    "TIMESTAMP(6) WITHOUT TIME ZONE": ((4, 3), 10, "TIMESTAMP(6) needs Spark 4.3"),
    "TIME(7)": ((4, 3), 5, "TIME(7) needs Spark 4.3, and this host has Spark 4.2; write TIME"),
}


@pytest.fixture(autouse=True)
def _newest_line_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    use_line(monkeypatch, (4, 3))


def use_line(monkeypatch: pytest.MonkeyPatch, line: spark_line.Line) -> None:
    monkeypatch.setattr(spark_line, "spark_line", lambda: line)


def errors(column: str) -> list[SqlError]:
    script = f"CREATE TABLE t ({column}) USING json OPTIONS (path 't'); SELECT 1 FROM t"
    return list(check_script(script, file="s.sql", base_dir="/base", variables={}).errors)


@pytest.mark.parametrize("kind", TYPES)
def test_types_of_spark_are_accepted(kind: str) -> None:
    assert errors(f"a {kind}, b {kind} NOT NULL COMMENT 'x'") == []


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_type_is_shown_at_its_place(kind: str) -> None:
    offset, message = WRONG[kind]
    (found,) = errors(f"a {kind}")
    assert (found.column - len("CREATE TABLE t (a ") - 1, message in found.message) == (offset, True), found


@pytest.mark.parametrize("kind", SINCE)
def test_a_type_of_newer_lines_of_spark_is_refused_before_the_first_of_them(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (major, minor), offset, message = SINCE[kind]
    use_line(monkeypatch, (major, minor))
    assert errors(f"a {kind}") == []
    use_line(monkeypatch, (major, minor - 1))
    (found,) = errors(f"a {kind}")
    assert (found.column - len("CREATE TABLE t (a ") - 1, message in found.message) == (offset, True), found


def test_the_line_of_spark_is_that_of_the_installed_one() -> None:
    line = THE_LINE_OF_SPARK()
    assert version("pyspark").startswith(f"{line[0]}.{line[1]}.")


def test_a_host_without_pyspark_leaves_the_types_of_newer_lines_to_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    monkeypatch.setattr(spark_line, "spark_line", THE_LINE_OF_SPARK.__wrapped__)
    assert errors("a TIMESTAMP(6), b VARCHAR(5) COLLATE UTF8_LCASE") == []


@pytest.mark.parametrize("text", [f"{' ' * 100_000}x", "1 " * 50_000, "- " * 50_000, "1" * 100_000])
def test_a_long_text_is_no_interval_at_once(text: str) -> None:
    started = time.process_time()
    script = f"SELECT count(*) FROM range(1) GROUP BY window(id, '{text}')"
    assert len(check_script(script, file="s.sql", base_dir="/base", variables={}).errors) == 1
    assert time.process_time() - started < 5


def test_types_are_nested_up_to_a_limit() -> None:
    assert errors(f"a {'ARRAY<' * 50}INT{'>' * 50}") == []
    (found,) = errors(f"a {'ARRAY<' * 20_000}INT{'>' * 20_000}")
    assert "types are nested more than 50 deep" in found.message
