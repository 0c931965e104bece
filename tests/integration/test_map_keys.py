"""Rows as JSON and back: maps keep their keys, of each type that Spark has for them."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.rows import row_of, struct_from_json

pytestmark = pytest.mark.spark

KEYS = [
    *("'a\"b'", "1Y", "-9223372036854775808", "true", "1.1", "float(1.1)", "double('NaN')", "1.50BD"),
    *("DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '1582-10-10 01:02:03.456789'"),
    *("TIMESTAMP '2026-10-25 02:30:00.123456'", "TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"),
    *("TIMESTAMP_NTZ '0001-01-01 00:00:00.000001'", "X'00FF'", "X''"),
    *(
        "INTERVAL '-106751991 04:00:54.775807' DAY TO SECOND",
        "INTERVAL '5' HOUR",
        "INTERVAL '-1-2' YEAR TO MONTH",
    ),
    *("INTERVAL '3' YEAR", "array(1, NULL)", "array(X'00', NULL)", "named_struct('a', 1, 'b', 'x,]')"),
    *("named_struct('d', DATE '2026-01-02', 'i', array(named_struct('t', TIMESTAMP '2026-01-02')))",),
]


@pytest.mark.parametrize("key", KEYS)
def test_a_map_keeps_its_keys(spark: SparkSession, key: str) -> None:
    values = f"map({key}, 'v') AS m, array(named_struct('n', map({key}, map({key}, 2)))) AS nested"
    given = spark.sql(f"SELECT {values}, map_filter(map({key}, 1), (k, v) -> false) AS empty")
    kind = given.schema
    assert isinstance(kind, StructType)
    read = given.select(struct_from_json(row_of(given), kind).alias("row")).select("row.*")
    assert read.schema.simpleString() == kind.simpleString()
    both = [
        frame.select([sql.col(name).cast("string") for name in kind.fieldNames()]) for frame in (given, read)
    ]
    assert both[0].collect() == both[1].collect()


def test_values_without_a_map_stay_null(spark: SparkSession) -> None:
    kind = StructType.fromDDL("m MAP<INT, INT>, s STRUCT<m: MAP<BINARY, INT>>, a ARRAY<MAP<DATE, INT>>")
    assert isinstance(kind, StructType)
    given = (
        spark.sql("SELECT 1")
        .select(sql.from_json(sql.lit("{}"), "x INT").alias("x"))
        .selectExpr(*(f"CAST(NULL AS {each.dataType.simpleString()}) AS {each.name}" for each in kind))
    )
    read = given.select(struct_from_json(row_of(given), given.schema).alias("row")).select("row.*")
    assert read.collect() == [(None, None, None)]
