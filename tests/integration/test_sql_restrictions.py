# ruff: noqa: S608 - the scripts of a test are put together here; nothing in them comes from outside
"""Queries that hide which files they read, run by Spark itself."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compile import compile_script
from spark_runner.sql.errors import SqlError
from spark_runner.sql.execution import execute
from spark_runner.sql.references import FILE_FORMATS

pytestmark = pytest.mark.spark

HIDDEN = [
    "`c\u017fv`.`{path}`",
    "`com.databricks.spark.csv`.`{path}`",
    "`org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`{path}`",
    "IDENTIFIER('csv.`{path}`')",
    '"csv"."{path}"',
    "image.`{path}`",
]


def read(spark: SparkSession, query: str, denied: list[str]) -> object:
    script = f"""
        CREATE TABLE shown WITH ('connector'='print');
        SET spark.sql.ansi.enabled = true;
        SET spark.sql.ansi.doubleQuotedIdentifiers = true;
        INSERT INTO shown {query};
    """
    plan = compile_script(script, file="s.sql", base_dir="/", variables={})
    travelled = json.loads(json.dumps({**plan, "formats": [], "denied_formats": denied}))
    return execute(spark, travelled, lambda _phase: None)[-1]["rows"]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_files_of_a_denied_format_are_read_by_no_other_name(
    spark: SparkSession, tmp_path: Path, hidden: str
) -> None:
    (tmp_path / "x.csv").write_text("secret\n", encoding="utf-8")
    (tmp_path / "x.json").write_text("{}\n", encoding="utf-8")
    relation = hidden.format(path=tmp_path / "x.csv")
    query, allowed = f"SELECT * FROM {relation}", f"json.`{tmp_path / 'x.json'}`"
    denied = [name for name in FILE_FORMATS if name != "json"]
    assert read(spark, query, [])  # without a list it is read, whatever it is called
    with pytest.raises(SqlError):
        read(spark, query, denied)
    with pytest.raises(SqlError, match="refused by the policy"):
        read(spark, f"{query}, {allowed}", denied)
    read(spark, f"SELECT count(*) FROM {allowed}", denied)
