"""What lint says of types, intervals, windows and settings is what the installed Spark does."""

# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.compiler.spark_settings import FIXED_FAMILIES, SESSION_KEYS, STATIC
from spark_runner.sql.grammar.types import PLAIN, WITH_LENGTH
from tests.unit.test_sql_types import TYPES, WRONG

pytestmark = pytest.mark.spark

DELAYS = [
    *(
        "'5' MINUTE",
        "'5' MINUTS",
        "'0' SECOND",
        "'-5' MINUTE",
        "- '5' MINUTE",
        "5 MINUTES",
        "'5'",
        "'5 minuts'",
    ),
    *("'5 minutes'", "'1:30' HOUR TO MINUTE", "'1 day 2 hour'", "'1-2' YEAR TO MONTH", "1 DAY 2 HOURS"),
    *(
        "'1.5' SECOND",
        "'1.5' MINUTE",
        "'5' WEEK",
        "'5' QUARTER",
        "'5' NANOSECOND",
        "'5 ' MINUTE",
        "'+5' MINUTE",
    ),
    *(
        "1 DAY -2 HOURS",
        "1 HOUR -2 HOURS",
        "'1' YEAR 2 DAY",
        "'1' MONTH",
        "'1' SECOND TO DAY",
        "5 MINUTE * 2",
    ),
    *("'5' MINUTE '30' SECOND", "'.5' SECOND", "'5.' SECOND", ".5 SECOND", "1 DAY .5 SECOND", "- .5 SECOND"),
    *("'5' DAY TO SECOND", "'1 02:03:04' DAY TO SECOND", "'1 02:03' DAY TO SECOND", "'1 2' DAY TO HOUR"),
    *("'1 2:3' DAY TO MINUTE", "'2:3:4.5' HOUR TO SECOND", "'3:4' MINUTE TO SECOND", "'1-12' YEAR TO MONTH"),
    *(
        "'+1-2' YEAR TO MONTH",
        "' 1-2' YEAR TO MONTH",
        "'1-2 ' YEAR TO MONTH",
        "' 1 2 ' DAY TO HOUR",
        "'2:3:4 ' HOUR TO SECOND",
        "' 1 2:3:4' DAY TO SECOND",
        "'1 2' DAYS TO HOURS",
        "'1 2:3:4.1234567890' DAY TO SECOND",
    ),
    *(
        "106751991 DAY",
        "106751992 DAY",
        "178956970 YEAR",
        "178956971 YEAR",
        "9223372036854775807 MICROSECOND",
    ),
    *("'9223372036854775808' MICROSECOND", "'178956971 years'", "'106751992 days'", "'1 year 2 days'"),
]
WINDOWS = [
    *("'5 minutes'", "'0 minutes'", "'5 minuts'", "'1 month'", "'-1 minutes'", "'1 hour - 5 minutes'", "'5'"),
    *("'10 minutes', '5 minutes'", "'5 minutes', '10 minutes'", "'5 minutes', '0 minutes'"),
    *("'10 minutes', '5 minutes', '7 minutes'", "'10 minutes', '5 minutes', '-4 minutes'", "'5minutes'"),
    *("'.5 seconds'", "'5. seconds'", "'. seconds'", "'5. minutes'", "INTERVAL 5 MINUTES"),
    *("'5 minutes', INTERVAL '5' MINUTE", "'5 minutes', '5 minutes', INTERVAL 1 MINUTE"),
]


BEHIND_TYPES = [
    *(
        "",
        "()",
        "(1)",
        "(0)",
        "(-1)",
        "(10,2)",
        "(10, -2)",
        "(10 2)",
        "(,2)",
        "(10,)",
        "(38,38)",
        "(39)",
        "(5,7)",
    ),
    *("(ANY)", "('x')", "(6)", "(10,2,3)", "(1.5)", "(99999999999)", " PRECISION", " VARYING(3)", " COLLATE"),
    *(
        " COLLATE UTF8_LCASE",
        " WITHOUT TIME ZONE",
        " WITH TIME ZONE",
        " WITH LOCAL TIME ZONE",
        " YEAR",
        " DAY",
    ),
    *(
        "(6) WITHOUT TIME ZONE",
        " YEAR TO MONTH",
        " DAY TO SECOND",
        " DAY TO YEAR",
        " SECOND TO SECOND",
        " FOO",
    ),
    *(" NOT NULL", " NULL", " COMMENT 'x'", " COMMENT x", " DEFAULT 1", " NOT NULL NOT NULL", "<INT>", "[]"),
    *(" ARRAY", " UNSIGNED", " NOT NULL COMMENT 'x'", " COMMENT 'x' NOT NULL", " COMMENT 'x' 'y'"),
]
ELEMENTS = [
    *(
        "INT",
        "DECIMAL(5, 2)",
        "INT NOT NULL",
        "INT COMMENT 'x'",
        "a INT",
        "a:INT",
        "a: INT NOT NULL",
        "INT DEFAULT 1",
    ),
    *(
        "STRING COLLATE UTF8_LCASE",
        "VARCHAR(3)",
        "DOUBLE PRECISION",
        "TIMESTAMP WITHOUT TIME ZONE",
        "",
        "`a b`:INT",
    ),
    *(
        "a INT COMMENT 'x' NOT NULL",
        "a INT NULL",
        "1a:INT",
        "1:INT",
        "1L:INT",
        "a",
        "a:",
        "a.b INT",
        "a INT b INT",
    ),
    *(
        "a::INT",
        "select INT",
        "a-b:INT",
        "a INT COMMENT",
        "interval INT",
        "a INTERVAL DAY TO SECOND NOT NULL",
    ),
]
COMBINED = [
    *(name + behind for name in (*PLAIN, *WITH_LENGTH, "ARRAY", "STRUCT", "TEXT") for behind in BEHIND_TYPES),
    *(f"{name}<{one}>" for name in ("ARRAY", "STRUCT") for one in ELEMENTS),
    *(f"{name}<{one}, {other}>" for name in ("MAP", "STRUCT") for one in ELEMENTS for other in ELEMENTS),
    *(f"ARRAY<{one}" for one in ELEMENTS),
    *(f"ARRAY<STRUCT<{one}>>" for one in ELEMENTS),
]
COMBINED_PARTS = 4


def accepted(script: str) -> bool:
    return not check_script(script, file="s.sql", base_dir="/base", variables={}).errors


@pytest.mark.parametrize("delay", DELAYS)
def test_spark_accepts_the_watermarks_that_lint_accepts(delay: str, spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    try:
        stream.withWatermark("timestamp", f"INTERVAL {delay}")
        by_spark = True
    except Exception:  # noqa: BLE001 - Spark raises errors of Java for some of them
        by_spark = False
    column = f"at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL {delay}"
    assert accepted(f"CREATE TABLE t ({column}) USING json OPTIONS (path 't'); SELECT 1 FROM t") == by_spark


@pytest.mark.parametrize("durations", WINDOWS)
def test_spark_accepts_the_windows_that_lint_accepts(durations: str, spark: SparkSession) -> None:
    query = f"SELECT count(*) FROM (SELECT TIMESTAMP'2026-01-01' AS at) GROUP BY window(at, {durations})"
    try:
        spark.sql(query)
        by_spark = True
    except Exception:  # noqa: BLE001 - as above
        by_spark = False
    assert accepted(query) == by_spark


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kind", [*TYPES, *WRONG])
def test_spark_accepts_the_types_that_lint_accepts(kind: str) -> None:
    try:
        StructType.fromDDL(f"a {kind}")
        by_spark = True
    except (PySparkException, Py4JJavaError):  # the latter for digits of a TIMESTAMP
        by_spark = False
    assert accepted(f"CREATE TABLE t (a {kind}) USING json OPTIONS (path 't'); SELECT 1 FROM t") == by_spark


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("part", range(COMBINED_PARTS))
def test_lint_and_spark_agree_about_combinations_of_types_and_what_stands_behind_them(part: int) -> None:
    differences = []
    for kind in list(dict.fromkeys(COMBINED))[part::COMBINED_PARTS]:
        try:
            StructType.fromDDL(f"a {kind}")
            by_spark = True
        except (PySparkException, Py4JJavaError):
            by_spark = False
        script = f"CREATE TABLE t (a {kind}) USING json OPTIONS (path 't'); SELECT 1 FROM t"
        if accepted(script) != by_spark:
            differences.append(kind)
    assert differences == []


def test_the_settings_of_sessions_are_those_of_spark(spark: SparkSession) -> None:
    listed = {row[0] for row in spark.sql("SET -v").collect()}
    changeable = {key for key in listed if spark.conf.isModifiable(key)}
    # The settings of Hive and its server are there where their classes are loaded.
    others = ("spark.sql.catalog.", "spark.sql.hive.", "spark.sql.legacy.hive.")
    of_sessions = {key for key in changeable if key.startswith("spark.sql.") and not key.startswith(others)}
    assert of_sessions - SESSION_KEYS == set()
    assert {key for key in SESSION_KEYS | of_sessions if key in STATIC} == set()
    fixed = {
        key for key in listed - changeable if key.startswith("spark.sql.") and not key.startswith(others)
    }
    assert fixed - STATIC == set()


def test_a_session_passes_settings_of_hadoop_on_without_removing_a_prefix(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("fs.own.plain", "1")
    session.conf.set("spark.hadoop.fs.own.prefixed", "1")
    state: Any = session._jsparkSession.sessionState()  # noqa: SLF001 - PySpark has no public way to it
    conf = state.newHadoopConf()
    assert (conf.get("fs.own.plain"), conf.get("fs.own.prefixed")) == ("1", None)
    assert accepted("SET fs.own.plain = 1; SELECT 1")
    assert not accepted("SET spark.hadoop.fs.own.prefixed = 1; SELECT 1")


@pytest.mark.parametrize(
    "key", ["spark.executor.memory", "spark.shuffle.compress", "spark.io.compression.codec"]
)
def test_spark_refuses_to_change_settings_of_the_program(key: str, spark: SparkSession) -> None:
    assert key.startswith(FIXED_FAMILIES)
    with pytest.raises(PySparkException, match="CANNOT_MODIFY_CONFIG"):
        spark.conf.set(key, "1")
