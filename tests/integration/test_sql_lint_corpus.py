"""Spark refuses each script in which lint finds a wrong column, and runs each one in which it finds none."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestrator.sql.columns.check import column_errors
from spark_runner.sql.compiler import compile as compiler
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.built_ins import values_of
from spark_runner.sql.text.errors import SqlError
from tests.corpus.reading import right_scripts, wrong_scripts

pytestmark = pytest.mark.spark

RIGHT = right_scripts()


def run(spark: SparkSession, folder: Path, text: str) -> None:
    for name in ("orders", "customers", "pairs", "pairs_too", "files"):
        (folder / name).mkdir()
        (folder / name / "part-0.json").touch()
    check = compiler.check_script(text, file="s.sql", base_dir=str(folder), variables={})
    assert check.plan is not None, check.errors
    built_ins = values_of("corpus", 1, datetime.now(UTC))
    here = {"built_ins": built_ins, "checkpoints": f"file:{folder}/checkpoints"}
    execute(spark, {**json.loads(json.dumps(check.plan)), **here}, lambda _phase: None)


def has_wrong_columns(text: str) -> bool:
    check = compiler.check_script(text, file="s.sql", base_dir="/base", variables={})
    return check.plan is not None and bool(column_errors(check))


WRONG = [text for each in wrong_scripts() if has_wrong_columns(text := each.tables + each.text)]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_spark_refuses_what_lint_refuses(number: int, spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SqlError):
        run(spark, tmp_path, WRONG[number])


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_spark_runs_what_lint_accepts(number: int, spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, RIGHT[number].replace("FOLDER", str(tmp_path)))
