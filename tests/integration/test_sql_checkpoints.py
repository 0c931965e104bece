# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""A changed script and its checkpoint: refused, continued, begun anew, or begun at a time."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.folders import Folders, LocalFolders
from spark_runner.sql.checkpoints.listing import checkpoints_in
from spark_runner.sql.checkpoints.removal import remove
from spark_runner.sql.execution.checkpoints import Checkpoint
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.hadoop_folders import HadoopFolders, folders_of
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
SCRIPT = """SET job.mode = 'available-now';
CREATE TABLE s (id BIGINT) USING json OPTIONS (path 'in');
CREATE TABLE u (id BIGINT) USING json OPTIONS (path 'in2');
CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
INSERT INTO out SELECT id FROM s UNION ALL SELECT id + 100 FROM u;
"""
CHANGED = SCRIPT.replace("SELECT id FROM s", "SELECT id * 10 FROM s")
_EPOCH_SECONDS = 1_767_225_600  # 2026-01-01T00:00:00Z
_DAY_SECONDS = 86_400


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    add_inputs(tmp_path)

    def run_script(text: str = SCRIPT, **use: Any) -> list[dict[str, Any]]:
        return execute(spark, {**plan_of(text, tmp_path), "checkpoint": use}, lambda _: None)

    return run_script


def add_file(base: Path, number: int, *, day: int, folder: str = "in") -> None:
    """A file with one row, last modified on this day of January 2026, in UTC."""
    (base / folder).mkdir(exist_ok=True)
    file = base / f"{number}.json"
    file.write_text(json.dumps({"id": number}))
    at = _EPOCH_SECONDS + (day - 1) * _DAY_SECONDS
    os.utime(file, (at, at))
    file.rename(base / folder / file.name)


def add_inputs(base: Path) -> None:
    """One file for each table."""
    add_file(base, 1, day=1)
    add_file(base, 2, day=1, folder="in2")


def found(folder: Path) -> list[int]:
    files = (folder / "out").glob("part-*")
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


def record(folder: Path) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(
        (folder / "checkpoints" / "job" / "out" / "orchestrator.json").read_text()
    )
    return kept


def test_a_retry_continues_also_after_another_job_has_begun_anew(run: Run, tmp_path: Path) -> None:
    for number, key in enumerate(("first", "second", "first", "second", "third")):
        run(start="fresh", run_key=key)
        assert len(found(tmp_path)) == (2, 4, 4, 4, 6)[number]
    assert (record(tmp_path)["run_key"], record(tmp_path)["earlier"]) == ("third", ["first", "second"])


def test_a_changed_script_is_refused_until_it_resumes(run: Run, tmp_path: Path) -> None:
    run()
    before = record(tmp_path)
    with pytest.raises(SqlError, match=r"with --resume to .* with --fresh to .* or with --from POSITION"):
        run(CHANGED)
    assert record(tmp_path) == before
    add_file(tmp_path, 3, day=1)
    assert run(CHANGED, start="resume")[0]["rows"] == 1, "only the new file"
    assert found(tmp_path) == [1, 30, 102]
    after = record(tmp_path)
    assert (after["stream"], after["fingerprint"] == before["fingerprint"]) == (before["stream"], False)
    assert run(CHANGED)[0]["rows"] == 0, "it is the script of this checkpoint now"
    with pytest.raises(SqlError, match="--resume"):
        run()


def test_an_error_of_spark_about_a_resumed_stream_is_that_of_the_job(run: Run, tmp_path: Path) -> None:
    run()
    add_file(tmp_path, 3, day=1)
    fewer = SCRIPT.replace(" UNION ALL SELECT id + 100 FROM u", "")
    with pytest.raises(SqlError, match=r"(?i)source") as refused:
        run(fewer, start="resume")
    assert refused.value.line == 5


def test_a_script_that_has_read_nothing_yet_may_change(run: Run, tmp_path: Path) -> None:
    wrong = SCRIPT.replace("SELECT id FROM s", "SELECT id FROM s WHERE raise_error('no') IS NULL")
    file = tmp_path / "in" / "1.json"
    file.rename(tmp_path / "1.json")
    (tmp_path / "in2" / "2.json").unlink()
    run(wrong)
    (tmp_path / "1.json").rename(file)
    assert run()[0]["rows"] == 1


def test_fresh_reads_all_once_per_job(run: Run, tmp_path: Path) -> None:
    run()
    add_file(tmp_path, 3, day=1)
    assert run(CHANGED, start="fresh", run_key="a")[0]["rows"] == 3
    assert found(tmp_path) == [1, 10, 30, 102, 102], "rows of earlier runs stay"
    assert run(CHANGED, start="fresh", run_key="a")[0]["rows"] == 0, "another attempt of the job continues"
    assert run(CHANGED, start="fresh", run_key="b")[0]["rows"] == 3, "another job begins anew"
    assert [path.name for path in (tmp_path / "checkpoints" / "job").iterdir()] == ["out"]


def test_from_a_time_leaves_out_files_that_are_older_in_later_runs_too(run: Run, tmp_path: Path) -> None:
    run()
    add_file(tmp_path, 3, day=3)
    add_file(tmp_path, 4, day=2, folder="in2")
    begin = "2026-01-03T00:00:00+00:00"
    assert run(start="fresh", run_key="a", positions={"*": begin})[0]["rows"] == 1, "the very time counts"
    assert found(tmp_path) == [1, 3, 102]
    add_file(tmp_path, 5, day=2)
    add_file(tmp_path, 6, day=4)
    assert run()[0]["rows"] == 1, "a later job keeps the positions"
    assert found(tmp_path) == [1, 3, 6, 102]
    assert run(start="fresh", run_key="b", positions={"U": begin})[0]["rows"] == 4, "one table alone"
    assert record(tmp_path)["positions"] == {"u": begin}
    assert run(start="fresh", run_key="c")[0]["rows"] == 6, "all again"
    assert "positions" not in record(tmp_path)


def test_each_insert_has_its_own_positions(run: Run, tmp_path: Path) -> None:
    second = (
        SCRIPT
        + "CREATE TABLE out2 (id BIGINT) USING json OPTIONS (path 'out2');"
        + ("INSERT INTO out2 SELECT id FROM s;")
    )
    add_file(tmp_path, 3, day=3)
    run(start="fresh", run_key="a", positions={"*": "2026-01-03T00:00:00Z"})
    rows = [each["rows"] for each in run(second)]
    assert rows == [0, 2], "the new INSERT begins with all files"


@pytest.mark.parametrize(
    ("point", "is_new"),
    [
        ("before the rename", False),
        ("after the rename", True),
        ("before the record", True),
        ("after the record", True),
    ],
)
def test_a_driver_that_is_killed_as_it_begins_anew_leaves_the_old_checkpoint_or_none(
    run: Run, tmp_path: Path, point: str, is_new: bool
) -> None:
    run()
    old = record(tmp_path)["stream"]
    command = [sys.executable, "-m", "tests.fresh_driver", str(tmp_path / "checkpoints/job/out"), point]
    killed = subprocess.run(command, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    try:
        assert record(tmp_path)["stream"] != old or not is_new
    except FileNotFoundError:
        assert is_new
    assert run(start="fresh", run_key="a")[0]["rows"] == 2, "the next attempt of the job reads all"
    assert run(start="fresh", run_key="a")[0]["rows"] == 0
    assert [path.name for path in (tmp_path / "checkpoints" / "job").iterdir()] == ["out"], "nothing is left"


@pytest.mark.parametrize("start", ["continue", "resume", "fresh"])
def test_a_folder_that_is_no_checkpoint_is_left_alone(run: Run, tmp_path: Path, start: str) -> None:
    foreign = tmp_path / "checkpoints" / "job" / "out"
    foreign.mkdir(parents=True)
    (foreign / "data").write_text("mine")
    with pytest.raises(SqlError, match=r"no orchestrator\.json"):
        run(start=start)
    assert [path.name for path in foreign.parent.rglob("*")] == ["out", "data"]


def test_a_damaged_record_is_an_error_and_fresh_replaces_it(run: Run, tmp_path: Path) -> None:
    run()
    file = tmp_path / "checkpoints" / "job" / "out" / "orchestrator.json"
    file.write_text("{")
    for start in ("continue", "resume"):
        with pytest.raises(SqlError, match=r"orchestrator\.json' is damaged: it is not JSON") as refused:
            run(start=start)
        assert refused.value.line == 5
    assert file.read_text() == "{"
    assert run(start="fresh", run_key="a")[0]["rows"] == 2


# ---------------------------------------------------------------------- file systems of a cluster
@pytest.fixture
def far(spark: SparkSession, tmp_path: Path) -> str:
    """A URL that only Hadoop can read: a mount table that points at a folder."""
    java: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark has no public access to it
    (tmp_path / "far").mkdir()
    name = f"far-{uuid.uuid4().hex}"  # Hadoop keeps what it has once mounted under a name
    java.set(f"fs.viewfs.mounttable.{name}.link./c", f"file:{tmp_path}/far")
    return f"viewfs://{name}/c/job"


def test_a_far_checkpoint_begins_continues_and_is_removed(
    spark: SparkSession, tmp_path: Path, far: str
) -> None:
    add_inputs(tmp_path)
    plan = {**plan_of(SCRIPT, tmp_path), "checkpoints": far}
    changed = {**plan_of(CHANGED, tmp_path), "checkpoints": far}

    def rows(plan: dict[str, Any], **use: Any) -> int:
        return int(execute(spark, {**plan, "checkpoint": use}, lambda _: None)[0]["rows"])

    folders = folders_of(spark, far)
    assert isinstance(folders, HadoopFolders)
    assert (rows(plan), rows(plan)) == (2, 0)
    with pytest.raises(SqlError, match="--resume"):
        rows(changed)
    assert rows(changed, start="resume") == 0
    assert rows(changed, start="fresh", run_key="a") == 2
    assert rows(changed, start="fresh", run_key="a") == 0
    place, _, name = far.rpartition("/")
    (listed,) = checkpoints_in(folders, place, name)
    assert (listed.target, listed.batches, listed.error) == ("out", 1, "")
    (local,) = checkpoints_in(LocalFolders(), f"file:{tmp_path}/far", name)
    assert (local.fingerprint, local.batches) == (listed.fingerprint, listed.batches)
    remove(folders, listed.url)
    assert list((tmp_path / "far" / "job").iterdir()) == []


def check_folders(folders: Folders, base: str) -> None:
    """What every implementation does."""
    assert folders.names(f"{base}/a") is None
    assert folders.read(f"{base}/a/f") is None
    assert folders.modified(f"{base}/a/f") is None
    folders.make(f"{base}/a/b")
    folders.make(f"{base}/a/b")
    for text in ("one", "zwei \N{LATIN SMALL LETTER SHARP S}"):
        folders.replace(f"{base}/a/b/f", text)
        assert folders.read(f"{base}/a/b/f") == text
    assert [name for name in folders.names(f"{base}/a/b") or () if not name.startswith(".")] == ["f"]
    assert folders.names(f"{base}/a/b/f") is None, "a file is no folder"
    assert (folders.modified(f"{base}/a/b/f") or 0) > _EPOCH_SECONDS
    assert not folders.is_link(f"{base}/a/b")
    folders.rename(f"{base}/a/b", f"{base}/a/c%2F,2")
    assert folders.names(f"{base}/a") == ["c%2F,2"]
    folders.delete(f"{base}/a/c%2F,2")
    folders.delete(f"{base}/a/c%2F,2")
    assert folders.names(f"{base}/a") == []


def test_all_file_systems_behave_alike(spark: SparkSession, tmp_path: Path, far: str) -> None:
    check_folders(LocalFolders(), f"file:{tmp_path}/near")
    check_folders(HadoopFolders(spark), f"{far}/x")


def test_an_unknown_file_system_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(ConnectorError, match=r"'nosuch://a/b': .*nosuch"):
        HadoopFolders(spark).names("nosuch://a/b")
    with pytest.raises(ConnectorError, match="nosuch"), Checkpoint(spark, "nosuch://a/b").opened("f"):
        raise AssertionError
