"""`orchestrator job quarantine`: what it shows, what it cannot show, and its exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet, table

from orchestrator.cli.app import run_app
from orchestrator.model.states import Queue, Status
from queues.store.commit import commit
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path
from tests.operators_support import JOB, Stage

Show = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """Run the command; returns its exit code and output."""
    settings = stage.deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run_app(["job", "quarantine", JOB, *arguments])
        return code, *capsys.readouterr()

    return run


def ended(stage: Stage, *bad_rows: Any) -> None:
    """Put a job whose driver has recorded this."""
    run_key = stage.put(Queue.FINISH, Status.SUCCESS, AttemptState.STARTED)
    attempt = Attempt.read(stage.session, attempt_path(stage.queues.layout.record(JOB), run_key, 1))
    assert attempt is not None
    commit(stage.session, [attempt.advance(AttemptState.SUCCEEDED, bad_rows=list(bad_rows))])


def recorded(name: str, number: int, place: object) -> dict[str, Any]:
    return {"table": name, "rows": 9, "quarantined": number, "dropped": 0, "place": str(place)}


def write(folder: Path, name: str, *records: str) -> Path:
    """A file as a driver writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    count = len(records)
    columns = {
        "record": list(records),
        "reason": ["the record does not fit the declared columns"] * count,
        "rule": ["decoding"] * count,
        "file": ["file:/in/people.csv"] * count,
        "source": ["people"] * count,
    }
    parquet.write_table(table(columns), folder / name)
    return folder / name


def test_rows_are_shown_as_a_table_as_json_and_as_lines(stage: Stage, show: Show, tmp_path: Path) -> None:
    write(tmp_path / "people", "part-1.parquet", "2,bob,x", "3,\x1b[31mred")
    write(tmp_path / "people", "_temporary.parquet", "not a row of the table")
    ended(stage, recorded("people", 2, f"file:{tmp_path}/people"), recorded("clean", 0, ""))
    code, stdout, stderr = show()
    assert (code, stderr) == (0, "")
    assert stdout.splitlines()[-2].split()[:2] == ["people", "decoding"]
    assert "2,bob,x" in stdout
    assert "\x1b[31m" not in stdout
    code, stdout, _ = show("-o", "json")
    rows = json.loads(stdout)
    assert code == 0
    assert [(row["source"], row["rule"], row["record"], row["file"]) for row in rows] == [
        ("people", "decoding", "2,bob,x", "file:/in/people.csv"),
        ("people", "decoding", "3,\x1b[31mred", "file:/in/people.csv"),
    ]
    code, stdout, stderr = show("-o", "jsonl", "-n", "1")
    assert (code, [json.loads(line)["record"] for line in stdout.splitlines()]) == (0, ["2,bob,x"])
    assert "1 of 2 rows are shown" in stderr


def test_a_job_without_such_rows_is_no_failure(stage: Stage, show: Show) -> None:
    ended(stage)
    code, stdout, stderr = show("-o", "json")
    assert (code, json.loads(stdout)) == (0, [])
    assert f"job {JOB} has no rows in quarantine" in stderr
    assert show("-q", "-o", "json")[2] == ""


def test_a_job_that_has_not_begun_has_none(stage: Stage, show: Show) -> None:
    stage.put()
    code, stdout, stderr = show("-o", "json")
    assert (code, json.loads(stdout)) == (0, [])
    assert "no rows in quarantine" in stderr


@pytest.mark.usefixtures("stage")
def test_a_job_that_is_not_there_is_not_found(show: Show) -> None:
    code, stdout, stderr = show()
    assert (code, stdout) == (4, "")
    assert f"no item has the id '{JOB}'" in stderr


@pytest.mark.parametrize("place", ["s3a://bucket/bad/job/run-1/people", "file:/nowhere/people", ""])
def test_rows_that_this_host_cannot_read_are_named_beside_those_that_it_shows(
    stage: Stage, show: Show, tmp_path: Path, place: str
) -> None:
    write(tmp_path / "orders", "part-1.parquet", "7,seven")
    ended(stage, recorded("people", 2, place), recorded("orders", 1, f"file:{tmp_path}/orders"))
    code, stdout, stderr = show("-o", "json")
    assert code == 1
    assert [row["record"] for row in json.loads(stdout)] == ["7,seven"]
    where = place or "another place"
    assert f"2 rows of table 'people' are in {where}, which this host cannot show" in stderr
    assert "1 of 3 rows are shown" in stderr


@pytest.mark.parametrize("damage", ["no parquet", "cut", "empty"])
def test_a_damaged_file_does_not_hide_the_others(
    stage: Stage, show: Show, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "people"
    write(folder, "part-1.parquet", "first")
    damaged = write(folder, "part-2.parquet", "second")
    write(folder, "part-3.parquet", "third")
    whole = damaged.read_bytes()
    damaged.write_bytes({"no parquet": b"PAR?", "cut": whole[: len(whole) // 2], "empty": b""}[damage])
    ended(stage, recorded("people", 3, f"file:{folder}"))
    code, stdout, stderr = show("-o", "json")
    assert code == 1
    assert [row["record"] for row in json.loads(stdout)] == ["first", "third"]
    assert f"the file {damaged} cannot be read" in stderr
    assert "2 of 3 rows are shown" in stderr
    assert show("-q")[0] == 1


@pytest.mark.parametrize(
    "recorded", ["text", 7, {"quarantined": "many"}, {"quarantined": True}, {"quarantined": 2}]
)
def test_a_damaged_record_of_an_attempt_is_no_crash(stage: Stage, show: Show, recorded: Any) -> None:
    ended(stage, recorded)
    code, stdout, _ = show("-o", "json")
    assert json.loads(stdout) == []
    assert code == (1 if recorded == {"quarantined": 2} else 0)
