"""The packages and extensions of the lakes whose catalogs a script sets."""

from pathlib import Path
from typing import Any

import pytest

from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.installation import SparkInstallation
from tests.unit.test_submit_request import request_with_jars

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
DELTA = "io.delta:delta-spark_2.13:4.1.0"
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
SET_ICEBERG = "SET spark.sql.catalog.lake = org.apache.iceberg.spark.SparkCatalog;"
SET_DELTA = "SET spark.sql.catalog.spark_catalog = org.apache.spark.sql.delta.catalog.DeltaCatalog;"


def submitted(
    folder: Path, script: str, spark: dict[str, Any], version: str = "4.1.4", **jars: tuple[str, ...]
) -> SubmitRequest:
    installation = SparkInstallation("/opt/spark", version)
    return request_with_jars(jars, folder, spark, script=f"{script} SELECT 1", installation=installation)


def test_a_script_that_sets_a_catalog_gets_its_package_and_its_extension(tmp_path: Path) -> None:
    made = submitted(tmp_path, SET_ICEBERG + SET_DELTA, {"packages": ["org.own:own:1"]})
    assert made.conf["spark.jars.packages"] == f"org.own:own:1,{ICEBERG},{DELTA}"
    assert made.conf["spark.sql.extensions"] == EXTENSION
    assert not made.is_warm, "its jars are of one job"
    assert not submitted(tmp_path, "", {}).conf.keys() & {"spark.jars.packages", "spark.sql.extensions"}
    assert "spark.sql.extensions" not in submitted(tmp_path, SET_ICEBERG, {}).conf


def test_extensions_of_the_definition_stay(tmp_path: Path) -> None:
    for given, expected in (("org.own.Own", f"org.own.Own,{EXTENSION}"), (EXTENSION, EXTENSION)):
        made = submitted(tmp_path, SET_DELTA, {"conf": {"spark.sql.extensions": given}})
        assert made.conf["spark.sql.extensions"] == expected


@pytest.mark.parametrize(
    "spark",
    [
        {"packages": ["io.delta:delta-spark_2.13:4.3.1"]},
        {"conf": {"spark.jars.packages": "io.delta:delta-spark_2.13:4.3.1"}},
        {"jars": ["https://example.org/delta-spark_2.13-4.3.1.jar"]},
    ],
)
def test_a_version_that_the_definition_names_stays(tmp_path: Path, spark: dict[str, Any]) -> None:
    made = submitted(tmp_path, SET_DELTA, spark)
    assert DELTA not in made.conf.get("spark.jars.packages", "")
    assert made.conf["spark.sql.extensions"] == EXTENSION


def test_jars_of_the_operator_replace_the_package(tmp_path: Path) -> None:
    (tmp_path / "delta.jar").touch()
    made = submitted(tmp_path, SET_DELTA, {}, delta=(str(tmp_path / "delta.jar"),))
    assert "spark.jars.packages" not in made.conf
    assert made.conf["spark.jars"] == str(tmp_path / "delta.jar")


def test_a_line_of_spark_without_a_package_gets_none(tmp_path: Path) -> None:
    made = submitted(tmp_path, SET_ICEBERG, {}, "4.3.0")
    assert "spark.jars.packages" not in made.conf


def test_a_package_is_named_where_spark_takes_jars_alone(tmp_path: Path) -> None:
    made = submitted(tmp_path, SET_DELTA, {"conf": {"spark.app.name": "nightly-delta-spark-load"}})
    assert made.conf["spark.jars.packages"] == DELTA


def test_a_version_that_the_definition_names_also_replaces_the_jars_of_the_operator(tmp_path: Path) -> None:
    (tmp_path / "delta.jar").touch()
    own = "io.delta:delta-spark_2.13:4.3.1"
    made = submitted(tmp_path, SET_DELTA, {"packages": [own]}, delta=(str(tmp_path / "delta.jar"),))
    assert made.conf["spark.jars.packages"] == own
    assert "spark.jars" not in made.conf
