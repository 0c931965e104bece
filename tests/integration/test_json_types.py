"""Values of JSON have the declared types, or do not fit them."""

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, ByteType, IntegerType, MapType, StringType, StructType

from spark_runner.connectors.json_types import columns_read_as, fits, typed

pytestmark = pytest.mark.spark

INNER = StructType().add("f", ByteType()).add("g", IntegerType())
KIND = (
    StructType()
    .add("a", ByteType())
    .add("b", ArrayType(ByteType()))
    .add("c", MapType(StringType(), ByteType()))
    .add("d", StructType().add("e", ArrayType(INNER)))
)
GOOD = [
    *("{}", '{"a": -128}', '{"a": 127}', '{"b": []}', '{"b": [null, 127]}', '{"c": {"x": -128, "y": null}}'),
    *('{"d": {}}', '{"d": {"e": [null, {}, {"f": 127, "g": 200}]}}'),
]
BAD = [
    *('{"a": 128}', '{"a": 200}', '{"a": 255}', '{"a": -129}', '{"b": [1, null, 200]}'),
    *('{"c": {"x": 1, "y": 200}}', '{"d": {"e": [{"f": 1}, {"f": 200}]}}'),
]


def values(text: Column) -> Column:
    return sql.from_json(text, columns_read_as(KIND))


def test_a_number_beyond_tinyint_does_not_fit_at_any_depth(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(each,) for each in GOOD + BAD], "text STRING")
    found = dict(map(tuple, frame.select("text", fits(values(sql.col("text")), KIND)).collect()))
    assert found == dict.fromkeys(GOOD, True) | dict.fromkeys(BAD, False)


def test_what_fits_keeps_its_value_and_has_the_declared_type(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(each,) for each in GOOD], "text STRING")
    read = frame.select(typed(values(sql.col("text")), KIND).alias("row"))
    assert read.schema["row"].dataType == KIND
    assert read.collect() == frame.select(sql.from_json("text", KIND)).collect()
