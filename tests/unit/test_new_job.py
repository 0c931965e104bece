"""`orchestrator new` without a terminal, Spark and ZooKeeper: what it writes and refuses."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.cli.app import run_app
from orchestrator.cli.new.columns import CsvColumns, read_csv_columns
from orchestrator.cli.new.places import parse_source, parse_target
from orchestrator.cli.new.questions import parse_schedule
from orchestrator.cli.submission import load_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import compile_program

PAGE = Path(__file__).parents[2] / "docs" / "first-steps.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(*arguments: str) -> int:
    return run_app(["new", *arguments])


def tables(definition: str) -> dict[str, dict[str, Any]]:
    """The tables of the plan of a definition that may be submitted."""
    plan = compile_program(load_definition(definition, {}))
    assert plan is not None
    return {step["name"]: step for step in plan["steps"] if step["kind"] == "table"}


def test_without_a_terminal_the_defaults_make_a_job_with_sample_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert made("totals") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["totals-sample.csv", "totals.sql", "totals.yaml"]
    assert err.count("totals.yaml") == 4
    assert list(tables("totals.yaml")) == ["orders", "totals"]
    assert load_definition("totals.yaml", {}).name == "totals"


@pytest.mark.parametrize("mode", ["available-now", "streaming"])
def test_a_job_that_reads_new_files_adds_their_rows(folder: Path, mode: str) -> None:
    assert made("sample", "--mode", mode) == 0
    assert (folder / "sample-sample" / "orders.csv").is_file()
    assert tables("sample.yaml")["orders"]["stream"]
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("id,amount\n1,2.5\n")
    (folder / "json").mkdir()
    (folder / "json" / "a.json").write_text('{"a": 1}\n')
    assert made("j", "--source", "in", "--mode", mode) == 0
    assert "INSERT INTO" in (folder / "j.sql").read_text()
    assert ("timeout" in yaml.safe_load((folder / "j.yaml").read_text())) == (mode != "streaming")
    assert made("k", "--source", "in/a.csv", "--mode", mode) == 2
    assert made("k", "--source", "json", "--mode", mode) == 2
    assert not (folder / "k.sql").exists()


def test_the_page_about_first_steps_shows_the_script_as_it_is_written(folder: Path) -> None:
    assert made("totals") == 0
    assert f"```sql\n{(folder / 'totals.sql').read_text()}```" in PAGE.read_text("utf-8")


def test_the_options_answer_all_questions(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "part-0.json").write_text('{"a": 1}\n')
    assert (
        made("j", "--source", "in", "--target", "parquet:out", "--mode", "batch", "--schedule", "0 6 * * *")
        == 0
    )
    known = tables("j.yaml")
    assert known["t_in"]["connector"] == "json"  # IN is a word of SQL
    assert known["j"]["connector"] == "parquet"
    assert known["j"]["location"] == str(folder / "out")
    assert yaml.safe_load((folder / "j.yaml").read_text())["schedule"] == {
        "cron": "0 6 * * *",
        "timezone": "UTC",
    }


def test_no_file_is_replaced_and_then_none_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "totals.yaml").write_text("mine")
    assert made("totals") == 5
    assert capsys.readouterr().err.startswith("error: totals.yaml: already there; ")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"totals.yaml": "mine"}
    (folder / "totals.yaml").unlink()
    (folder / "totals.sql").symlink_to(folder / "nowhere")
    assert made("totals") == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b"], "a b: field 'name': it is 1 to 128 characters out of A-Z, a-z, 0-9, '.', '_' and '-'"),
        (["../up"], "field 'name'"),
        (["j", "--source", "missing.csv"], "there is no file or folder missing.csv"),
        (["j", "--source", "odd.txt"], "the format of 'odd.txt' is not known"),
        (["j", "--source", "csv:"], "names no path"),
        (["j", "--target", "odd.txt"], "it is a file, and a target is a folder"),
        (["j", "--mode", "bach"], "did you mean 'batch'?"),
        (["j", "--mode", "now"], "is not supported"),
        (["j", "--source", "csv:odd.txt", "--mode", "streaming"], "is a file; give its folder"),
        (["j", "--schedule", "every"], "not a cron expression"),
        (["j", "--schedule", "every 1x"], "schedule 'every 1x': "),
        (["j", "--schedule", "every 0s"], "schedule 'every 0s': 0 s is not a period"),
        (["j", "--target", "text:out"], "lines of text are written from 'text' alone"),
        (["j", "--target", "avro:out"], "the format 'avro' is not known; write FORMAT:PATH"),
        (["j", "--source", "parqet:in"], "the format 'parqet' is not known; did you mean 'parquet'?"),
        (["j", "--source", "csv:odd.txt", "--target", "."], "overlaps with its target"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "odd.txt").write_text("a,b\n1,2\n")
    assert made(*arguments) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["odd.txt"]


def test_in_another_folder_the_script_still_finds_its_source(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "data.csv").write_text("a,b\n1,2\n")
    assert made("j", "--source", "data.csv", "--directory", "jobs", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == [
        str(folder / "jobs" / name) for name in ("j.sql", "j.yaml")
    ]
    known = tables("jobs/j.yaml")
    assert known["data"]["location"] == str(folder / "data.csv")
    assert known["j"]["location"] == str(folder / "jobs" / "output" / "j")


@pytest.mark.parametrize(
    "name", ["it's.csv", "back\\slash.csv", "2020.csv", "select.csv", "--.csv", "ä ö.csv"]
)
def test_any_name_of_a_file_makes_a_script_that_can_be_submitted(name: str, folder: Path) -> None:
    (folder / name).write_text("a b,from,order,é,`q`\n1,2,3,4,5\n")
    assert made("j", "--source", f"csv:{name}") == 0
    (source,) = [step for step in tables("j.yaml").values() if step["location"] == str(folder / name)]
    assert source["columns"] is not None


def test_a_path_that_a_script_cannot_name_is_refused(folder: Path) -> None:
    for name in ("${x}.csv", "a\nb.csv"):
        (folder / name).write_text("a\n1\n")
        with pytest.raises(DefinitionError, match="cannot name"):
            parse_source(name, folder)


def test_remote_places_are_taken_as_they_are(folder: Path) -> None:
    source = parse_source("s3a://bucket/orders.json.gz", folder)
    assert source.file_format == "json"
    assert parse_target("csv:s3a://bucket/out", folder, source).path == "s3a://bucket/out"


@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_files_of_orc_and_lines_of_text_are_sources_and_targets(folder: Path, mode: str) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "a.log").write_text("one\ntwo\n")
    (folder / "b.orc").touch()
    assert made("lines", "--source", "text:in", "--mode", mode) == 0
    known = tables("lines.yaml")
    assert (known["t_in"]["connector"], known["lines"]["connector"]) == ("text", "text")
    assert "CREATE TABLE t_in (\n  value STRING\n) USING text" in (folder / "lines.sql").read_text()
    assert made("columns", "--source", "b.orc") == 0
    known = tables("columns.yaml")
    assert (known["b"]["connector"], known["columns"]["connector"]) == ("orc", "orc")
    assert made("to_orc", "--source", "text:in", "--target", "out.orc") == 0
    assert tables("to_orc.yaml")["to_orc"]["connector"] == "orc"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\n1,x\n22,\n", [("a", "BIGINT"), ("b", "STRING")]),
        ("a;b\n1.5;-2\n3;007\n", [("a", "DOUBLE"), ("b", "STRING")]),
        ("a\n20.5\n1.5\n", [("a", "DOUBLE")]),  # later rows may have two decimals, which it would round
        ("a,b\n120.00,1.5\n-7.25,2.25\n,\n", [("a", "DECIMAL(10, 2)"), ("b", "DOUBLE")]),
        ("a,b\n123456789.00,0.12345\n0.10,1.00000\n", [("a", "DECIMAL(13, 2)"), ("b", "DOUBLE")]),
        ("a,b\n1.00,1.0\n2,1e3\n", [("a", "DOUBLE"), ("b", "STRING")]),
        ("d\tt\n2026-01-31\t2026-01-31 10:00:00\n", [("d", "DATE"), ("t", "TIMESTAMP")]),
        (
            "d,b,n\n2026-02-30,true,\n2026-01-01,false,\n",
            [("d", "STRING"), ("b", "BOOLEAN"), ("n", "STRING")],
        ),
        ('a,b\n"1,5","x\ny"\n', [("a", "STRING"), ("b", "STRING")]),
        ("a\n99999999999999999999\n", [("a", "STRING")]),
        ("\ufeffa;b\r\n1;x\r\n", [("a", "BIGINT"), ("b", "STRING")]),  # as spreadsheets write it
    ],
)
def test_the_types_of_columns_are_those_of_all_first_rows(
    text: str, columns: list[tuple[str, str]], folder: Path
) -> None:
    (folder / "x.csv").write_text(text)
    found = read_csv_columns(folder / "x.csv")
    assert isinstance(found, CsvColumns)
    assert list(found.columns) == columns


@pytest.mark.parametrize(
    "text", ["", "a,b\n", "a,a\n1,2\n", "a,\n1,2\n", "a,b\n1\n", "\ufeffa\x00,b\n1,2\n", 'a\n"x']
)
def test_no_columns_are_guessed_from_a_file_that_is_no_plain_table(text: str, folder: Path) -> None:
    (folder / "x.csv").write_text(text)
    assert read_csv_columns(folder / "x.csv") is None


def test_a_schedule_is_a_period_or_five_fields() -> None:
    assert parse_schedule("every 10m").when == "every 10m"
    assert parse_schedule("0  6 * * 1-5").cron == "0 6 * * 1-5"
    assert not parse_schedule("").is_set


def test_a_source_that_is_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        with pytest.raises(DefinitionError, match="is neither a file nor a folder"):
            parse_source(f"csv:{path}", tmp_path)
