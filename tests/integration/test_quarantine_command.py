"""`orchestrator job quarantine`: what it shows, what it cannot show, and its exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow publishes no types
import pytest
from pyarrow import parquet, table

from orchestrator.cli.app import run_app
from orchestrator.cli.grid import width
from orchestrator.model.plan import decode_plan, plan_path
from orchestrator.model.row_replay import replay_id
from orchestrator.model.set_aside import SetAside
from orchestrator.model.states import Queue, Status
from queues import Set, check_id, encode
from queues.store.commit import commit
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path
from spark_runner.sql.compiler.steps import PLAN_VERSION
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


def folder_of(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    return place


def write(folder: Path, name: str, *records: str, run: str | None = None) -> Path:
    """A file as a driver writes it."""
    folder_of(folder)
    count = len(records)
    columns = {
        "record": list(records),
        "reason": ["the record does not fit the declared columns"] * count,
        "rule": ["decoding"] * count,
        "file": ["file:/in/people.csv"] * count,
        "source": ["people"] * count,
        **({"run": [run] * count} if run else {}),
    }
    parquet.write_table(table(columns), folder / name)
    return folder / name


def test_rows_are_shown_as_a_table_as_json_and_as_lines(stage: Stage, show: Show, tmp_path: Path) -> None:
    write(tmp_path / "people", "part-1.parquet", "2,bob,x", "3,\x1b[31mred")
    write(tmp_path / "people", "_temporary.parquet", "not a row of the table")
    ended(stage, recorded("people", 2, f"file:{tmp_path}/people"), recorded("clean", 0, ""))
    code, stdout, stderr = show()
    assert (code, stderr) == (0, "")
    assert stdout.splitlines()[-2].split()[:2] == ["2,bob,x", "people"]
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


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_a_narrow_terminal_shows_the_record_before_all_else(
    stage: Stage, show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    record = "1042,2026-11-02,Zürich,not-a-number"
    write(tmp_path / "people", "part-1.parquet", record)
    ended(stage, recorded("people", 1, f"file:{tmp_path}/people"))
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    code, stdout, _ = show()
    assert code == 0
    assert record in stdout
    assert max(map(width, stdout.splitlines()[2:])) <= columns


def test_rows_of_other_runs_in_the_same_folder_are_not_shown(
    stage: Stage, show: Show, tmp_path: Path
) -> None:
    ended(stage, recorded("people", 1, f"file:{tmp_path}/people"))
    run = stage.client.detail(JOB).run_key
    write(tmp_path / "people", "part-1.parquet", "2,bob,x", run="other")
    write(tmp_path / "people", "part-2.parquet", "3,ann,y", run=run)
    code, stdout, stderr = show("-o", "json")
    assert (code, stderr) == (0, "")
    assert [row["record"] for row in json.loads(stdout)] == ["3,ann,y"]


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
    assert f"no job has the id '{JOB}'" in stderr


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


def test_records_that_are_no_text_and_values_beyond_those_of_python_hide_no_others(
    stage: Stage, show: Show, tmp_path: Path
) -> None:
    folder = tmp_path / "people"
    latin = pa.array([b'{"name":"caf\xe9"}'], pa.binary()).view(pa.string())
    parquet.write_table(table({"record": latin, "source": ["people"]}), folder_of(folder) / "part-1.parquet")
    far = pa.array([2**62], pa.timestamp("us"))
    parquet.write_table(table({"record": ["far"], "at": far}), folder / "part-2.parquet")
    write(folder, "part-3.parquet", "third")
    ended(stage, recorded("people", 3, f"file:{folder}"))
    code, stdout, stderr = show("-o", "json")
    assert [row["record"] for row in json.loads(stdout)] == ['{"name":"caf\ufffd"}', "third"]
    assert code == 1
    assert f"{folder}/part-2.parquet cannot be read" in stderr


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


# ---------------------------------------------------------------------- --replay
SCRIPT = """CREATE TABLE people (id INT) USING csv OPTIONS (path 'people.csv');
CREATE TABLE out USING parquet OPTIONS (path 'out');
INSERT INTO out SELECT * FROM people;
"""


def with_script(stage: Stage, text: str = SCRIPT, **labels: str) -> None:
    """Give the job a definition with a script."""
    fields = {"directory": "/data", "variables": {"a": "b"}, "schedule": {"every": "1h"}}
    document = {"name": "people", "script": text, "pool": "default", "labels": labels, **fields}
    stage.commit(Set(f"{stage.queues.layout.record(JOB)}/definition", encode(document), -1))


def replays(stage: Stage) -> list[str]:
    return sorted(job.id for job in stage.client.jobs() if job.id != JOB)


def test_a_replay_is_a_job_of_its_own_and_happens_once(stage: Stage, show: Show) -> None:
    ended(stage, recorded("people", 2, "file:/bad/people"))
    with_script(stage, team="a")
    code, stdout, stderr = show("--replay")
    assert (code, stdout) == (0, f"{JOB}.replay-people\n")
    assert f"2 rows of table 'people' are replayed by job {JOB}.replay-people" in stderr
    definition = stage.client.detail(f"{JOB}.replay-people").definition
    first = stage.client.detail(JOB)
    assert definition["labels"] == {"team": "a", "fire_time": first.job.created, "replay-of": JOB}
    assert (definition["directory"], definition["variables"]) == ("/data", {"a": "b"})
    assert "schedule" not in definition
    plan = decode_plan(stage.session.get(plan_path(stage.queues.layout.record(f"{JOB}.replay-people")))[0])  # type: ignore[index]  # it is there
    assert plan["replay"] == {
        "table": "people",
        "source": "people",
        "place": "file:/bad/people",
        "rows": 2,
        "run": first.run_key,
        "attempt": "1",
    }
    assert (plan["version"], plan["needs_own_jvm"]) == (PLAN_VERSION, True)
    code, stdout, stderr = show("--replay")
    assert (code, stdout) == (5, "")
    assert f"job '{JOB}.replay-people' has replayed the rows of table 'people'; with --again" in stderr
    assert show("--replay", "--again", "-q")[:2] == (0, f"{JOB}.replay-people.2\n")
    code, stdout, _ = show("--replay", "--again", "-o", "json")
    assert json.loads(stdout)["id"] == f"{JOB}.replay-people.3"
    assert len(replays(stage)) == 3


def test_the_corrected_script_runs_in_the_folder_of_the_job(stage: Stage, show: Show, tmp_path: Path) -> None:
    ended(stage, recorded("people", 2, "file:/bad/people"), recorded("orders", 1, "file:/bad/orders"))
    with_script(stage)
    mended = tmp_path / "mended.sql"
    mended.write_text(SCRIPT.replace("people (id INT)", "Orders (id STRING)").replace("people;", "orders;"))
    code, _, stderr = show("--replay")
    assert (code, replays(stage)) == (2, [])
    assert "name one of the tables with rows in quarantine by --table: 'people', 'orders'" in stderr
    assert show("--replay", "--table", "orders", "--script", str(mended), "-q")[0] == 0
    definition = stage.client.detail(f"{JOB}.replay-orders").definition
    assert "Orders (id STRING)" in definition["script"]
    assert definition["directory"] == "/data"


def test_rows_of_an_insert_are_replayed_once_by_a_job_that_reads_no_table(stage: Stage, show: Show) -> None:
    ended(stage, recorded("people", 1, "file:/bad/people"), recorded("out (line 3)", 2, "file:/bad/out"))
    with_script(stage)
    own = f"{JOB}.replay.out-line-3"
    code, stdout, stderr = show("--replay", "--table", "OUT")
    assert (code, stdout) == (0, f"{own}\n")
    assert f"2 rows of the INSERT into 'out' of line 3 are replayed by job {own}" in stderr
    plan = decode_plan(stage.session.get(plan_path(stage.queues.layout.record(own)))[0])  # type: ignore[index]  # it is there
    assert [step["kind"] for step in plan["steps"]] == ["table", "insert"]
    run_key = stage.client.detail(JOB).run_key
    facts = {"run": run_key, "attempt": "1", "source": "out (line 3)", "place": "file:/bad/out", "rows": 2}
    assert plan["steps"][1]["replayed"] == {**facts, "pinned": False}
    assert (plan["version"], plan["needs_own_jvm"]) == (PLAN_VERSION, True)
    code, _, stderr = show("--replay", "--table", "out (line 3)")
    assert code == 5
    assert f"job '{own}' has replayed the rows of the INSERT into 'out' of line 3; with --again" in stderr


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"script": "INSERT INTO x VALUES (1);"}, "unknown table 'x'"),
        ({"script": SCRIPT.replace("people", "folk")}, "must declare the table 'people' of the rows once"),
        (
            {"script": SCRIPT.replace("out SELECT * FROM people", "people VALUES (1)")},
            "writes to the table 'people'",
        ),
        ({"table": "peopel"}, "no rows of table 'peopel' are in quarantine; did you mean 'people'?"),
        (
            {"name": "people (line 3)"},
            "by the INSERT into 'people' of line 3, and the script has no INSERT into 'people' any more",
        ),
        ({"place": ""}, "the place of the rows of table 'people' is unknown"),
    ],
)
def test_rows_that_cannot_be_replayed_are_refused_and_nothing_is_enqueued(
    stage: Stage, show: Show, changed: dict[str, str], words: str
) -> None:
    place = changed.get("place", "file:/bad/people")
    ended(stage, recorded(changed.get("name", "people"), 2, place))
    with_script(stage, changed.get("script", SCRIPT))
    table = ("--table", changed["table"]) if "table" in changed else ()
    code, stdout, stderr = show("--replay", *table)
    assert (code, stdout) == (2, "")
    assert words in stderr
    assert replays(stage) == []


def test_only_a_job_that_has_succeeded_and_has_rows_is_replayed(stage: Stage, show: Show) -> None:
    stage.put(Queue.FINISH, Status.ERROR_FAIL, AttemptState.FAILED)
    code, _, stderr = show("--replay")
    assert code == 5
    assert "has not succeeded" in stderr
    stage.client.remove(JOB)
    ended(stage)
    code, _, stderr = show("--replay")
    assert code == 5
    assert "has no rows in quarantine" in stderr


def test_options_of_a_replay_need_it(show: Show) -> None:
    code, _, stderr = show("--again")
    assert code == 2
    assert "need --replay" in stderr


@pytest.mark.parametrize(
    ("job_id", "table"), [("a" * 128, "people"), ("job", "a table/…"), ("job", "b" * 200)]
)
def test_the_id_of_a_replay_is_one_that_a_job_can_have(job_id: str, table: str) -> None:
    rows = [SetAside(name, 1, "") for name in (table, f"{table}2", f"{table} (line 2)")]
    ids = {replay_id(job_id, each, number) for each in rows for number in (1, 2, 999)}
    assert len({check_id(each) for each in ids}) == 9
