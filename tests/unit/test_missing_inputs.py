"""Input files that do not exist on this host: what is found without Spark, and what is left to Spark."""

import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.inputs import refuse_missing_inputs
from spark_runner.sql.missing_inputs import missing_inputs
from spark_runner.sql.text.built_ins import values_of
from spark_runner.sql.text.errors import SqlError

ORDERS = "CREATE TABLE orders (id INT) USING csv OPTIONS ({path});\nSELECT id FROM orders"


def plan(text: str, folder: Path) -> dict[str, Any]:
    return compile_script(text, file="s.sql", base_dir=str(folder), variables={})


def reading(path: str, folder: Path, more: str = "") -> dict[str, Any]:
    return plan(ORDERS.format(path=f"path '{path}'{more}"), folder)


def messages(document: Mapping[str, Any], *, default_is_local: bool = True) -> list[str]:
    return [error.message for error in missing_inputs(document, default_is_local=default_is_local)]


def test_a_missing_file_is_found_at_the_path_with_the_name_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id\n1\n")
    (error,) = missing_inputs(reading("ordres.csv", tmp_path), default_is_local=False)
    assert (error.file, error.line, error.column) == ("s.sql", 1, 54)
    assert error.message == f"there is no file or folder '{tmp_path}/ordres.csv'; did you mean 'orders.csv'?"
    assert messages(reading("orders.csv", tmp_path)) == []
    assert messages(reading("orders.csv/x", tmp_path)) == [
        f"there is no file or folder '{tmp_path}/orders.csv/x'"
    ]


def test_the_place_is_that_of_the_path_behind_other_options_and_in_the_other_dialect(tmp_path: Path) -> None:
    text = (
        "CREATE TABLE a WITH (\n  'connector' = 'filesystem', 'format' = 'json',\n  'path' = 'none');\n"
        "SELECT * FROM a"
    )
    (error,) = missing_inputs(plan(text, tmp_path), default_is_local=False)
    assert (error.line, error.column) == (3, 12)


def test_a_folder_without_files_is_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert messages(reading("in", tmp_path)) == []


def test_a_table_that_no_statement_reads_is_listed_by_spark_and_here(tmp_path: Path) -> None:
    text = "CREATE TABLE a USING csv OPTIONS (path 'none'); SELECT 1"
    assert len(messages(plan(text, tmp_path))) == 1


@pytest.mark.parametrize(
    "pattern",
    ["*.csv", "2026-*/x?.csv", "20[0-9][0-9]-01/x1.csv", "{2025,2026}-01/*.csv", "*/x[^2].csv", "**/x1.csv"],
)
def test_a_pattern_needs_one_match(pattern: str, tmp_path: Path) -> None:
    (error,) = messages(reading(pattern, tmp_path))
    assert error == f"no file or folder matches '{tmp_path}/{pattern}'"
    (tmp_path / "2026-01").mkdir()
    (tmp_path / "2026-01" / "x1.csv").touch()
    (tmp_path / "x.csv").touch()
    assert messages(reading(pattern, tmp_path)) == []


@pytest.mark.parametrize("pattern", ["a\\\\*", "{a,{b,c", "{a,b}}", "{" + "a," * 100 + "b}/x"])
def test_a_pattern_that_cannot_be_judged_here_is_left_to_spark(pattern: str, tmp_path: Path) -> None:
    assert messages(reading(pattern, tmp_path)) == []


def test_a_pattern_over_very_many_files_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.sql.missing_inputs._MAX_ENTRIES", 3)
    for number in range(4):
        (tmp_path / f"{number}").touch()
    assert messages(reading("*.csv", tmp_path)) == []


@pytest.mark.parametrize("path", ["/no/such/file", "file:/no/such/file", "file:///no/such/file"])
def test_a_path_without_a_scheme_may_be_in_another_file_system(path: str, tmp_path: Path) -> None:
    assert len(messages(reading(path, tmp_path))) == 1
    is_certain = path.startswith("file:")
    assert len(messages(reading(path, tmp_path), default_is_local=False)) == is_certain


@pytest.mark.parametrize(
    "path", ["s3a://bucket/orders", "hdfs://n/orders", "hdfs:/orders", "orders-${ds}.csv", "orders-${run_id}"]
)
def test_what_is_elsewhere_or_not_known_yet_is_left_to_spark(path: str, tmp_path: Path) -> None:
    assert messages(reading(path, tmp_path)) == []


def test_a_setting_of_hadoop_may_move_paths_without_a_scheme(tmp_path: Path) -> None:
    text = "SET fs.defaultFS = 'hdfs://n';\n" + ORDERS.format(path="path '/none'")
    assert messages(plan(text, tmp_path)) == []


@pytest.mark.parametrize(("target", "read"), [("out", "out"), ("out", "out/day=1"), ("link", "out")])
def test_what_the_script_writes_itself_is_no_missing_input(target: str, read: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("out")
    writes = f"CREATE TABLE a USING json OPTIONS (path '{target}');\nINSERT INTO a SELECT 1 AS id;\n"
    text = writes + ORDERS.format(path=f"path '{read}'")
    assert messages(plan(text, tmp_path)) == []


def test_what_a_catalog_wrote_before_is_left_to_spark(tmp_path: Path) -> None:
    text = "INSERT INTO c.d.t SELECT 1 AS id;\n" + ORDERS.format(path="path 'none'")
    assert messages(plan(text, tmp_path)) == []


def test_a_stream_needs_its_folder_and_waits_for_files_that_match(tmp_path: Path) -> None:
    text = (
        "SET job.mode = 'available-now';\nCREATE TABLE a (id INT) USING json OPTIONS (path '{path}');\n"
        "CREATE TABLE o USING print;\nINSERT INTO o SELECT id FROM a"
    )
    assert len(messages(plan(text.format(path="in"), tmp_path))) == 1
    assert messages(plan(text.format(path="in/*.json"), tmp_path)) == []


def test_a_target_that_another_job_is_replacing_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / ".orchestrator-run-1-0a.old").mkdir()
    assert messages(reading("orders", tmp_path)) == []


def test_a_path_that_no_file_system_accepts_is_left_to_spark(tmp_path: Path) -> None:
    assert messages(reading("x" * 300, tmp_path)) == []


# In the driver


def in_driver(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**document, "built_ins": values_of("job-1", 1, datetime.now(UTC))}


def test_the_driver_names_its_host_and_knows_the_values_of_built_in_variables(tmp_path: Path) -> None:
    document = in_driver(reading("orders-${run_id}.csv", tmp_path))
    with pytest.raises(SqlError) as raised:
        refuse_missing_inputs(document)
    path = f"{tmp_path}/orders-job-1.csv"
    assert raised.value.message == f"there is no file or folder '{path}' on {socket.gethostname()}"
    Path(path).touch()
    refuse_missing_inputs(document)


def test_the_driver_leaves_what_it_cannot_decide_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    refuse_missing_inputs(in_driver(reading("/no/such/file", tmp_path)))  # without a JVM it cannot ask
    refuse_missing_inputs(in_driver(reading("none", tmp_path / "no such folder")))  # it has another error
    refuse_missing_inputs({**in_driver(reading("none", tmp_path)), "replay": {"of": "rows"}})
