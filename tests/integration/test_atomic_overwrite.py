"""INSERT OVERWRITE of a folder dies before each of its changes: all old rows or all new rows are there."""

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.files.commit import Commit
from spark_runner.connectors.files.source import CsvSource
from spark_runner.connectors.files.targets import TargetDirectory, complete_commit
from tests.dying_files import KINDS, Died, arm, as_objects

pytestmark = pytest.mark.spark

OLD = {"part-1-old.csv", "a=1/part-2-old.csv", "a=2/part-3-old.csv"}
NEW = {"part-1-new.csv", "a=1/part-2-new.csv", "a=3/part-4-new.csv"}
NEWER = {"a=1/part-1-newer.csv"}


def fill(folder: Path, names: set[str]) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (folder / "_SUCCESS").touch()


def visible(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith((".", "_"))
    }


def overwrite(spark: SparkSession, out: Path, names: set[str], attempt: int) -> None:
    """What the sink does behind the write of Spark."""
    target = TargetDirectory(spark, str(out), Writer("run", attempt))
    target.recover()
    fill(Path(target.staging.removeprefix("file:")), names)
    try:
        with target.locked():
            target.replace()
    finally:
        target.discard()


@pytest.mark.parametrize("kind", KINDS)
def test_a_death_at_each_step_leaves_the_old_or_the_new_rows(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    for changes in itertools.count():
        out = tmp_path / f"{changes}" / "out"
        fill(out, OLD)
        is_dead = False
        with pytest.MonkeyPatch.context() as patch:
            done = arm(patch, kind, changes)
            try:
                overwrite(spark, out, NEW, 1)
            except Died:
                is_dead = True
        found = visible(out)
        if kind == "renames" and not out.exists():
            assert TargetDirectory(spark, str(out), Writer("")).is_in_swap()
        else:
            assert found >= OLD or found >= NEW, (changes, done)
            assert kind == "objects" or found in (OLD, NEW), (changes, done)
        with pytest.MonkeyPatch.context() as patch:
            as_objects(patch, kind)
            TargetDirectory(spark, str(out), Writer("another")).recover()
            assert visible(out) in (OLD, NEW), (changes, done)
            overwrite(spark, out, NEWER, 2)
        assert visible(out) == NEWER, (changes, done)
        assert [path.name for path in out.parent.iterdir() if not path.name.endswith(".crc")] == ["out"]
        if not is_dead:
            assert found == NEW
            break
    assert changes > 1


@pytest.mark.parametrize("changes", [6, 8, 10])
def test_a_store_that_fails_within_a_commit_loses_neither_old_nor_new_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: int
) -> None:
    out, failures = tmp_path / "out", [ConnectionError("reset by peer")]
    fill(out, OLD)

    def fail() -> None:
        if failures:
            raise failures.pop()

    arm(monkeypatch, "objects", changes, fail)
    with pytest.raises(ConnectionError):
        overwrite(spark, out, NEW, 1)
    assert visible(out) >= OLD or visible(out) >= NEW
    TargetDirectory(spark, str(out), Writer("another")).recover()
    assert visible(out) == NEW


def replacement(
    spark: SparkSession, out: Path, writer: str, names: set[str]
) -> tuple[TargetDirectory, Commit]:
    """A target with staged files, and its commit."""
    target = TargetDirectory(spark, str(out), Writer(writer))
    if names:
        fill(Path(target.staging.removeprefix("file:")), names)
    commit = target._commit  # noqa: SLF001 - the tests act between its steps
    assert commit is not None
    return target, commit


def act_behind_begin(patch: pytest.MonkeyPatch, commit: Commit, act: Callable[[], None]) -> None:
    """Let another job act between the begin of a commit and its completion."""
    begin = commit.begin

    def begin_and_act(*arguments: Any) -> None:
        begin(*arguments)
        act()

    patch.setattr(commit, "begin", begin_and_act)


def test_a_commit_whose_staged_files_are_gone_leaves_the_old_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_objects(monkeypatch, "objects")
    out = tmp_path / "out"
    fill(out, OLD)
    target, commit = replacement(spark, out, "run", NEW)
    staged = Path(target.staging.removeprefix("file:"))
    act_behind_begin(monkeypatch, commit, (staged / "a=1" / "part-2-new.csv").unlink)
    with target.locked(), pytest.raises(TargetChanged, match="has a further attempt"):
        target.replace()
    assert visible(out) == OLD


def test_a_second_commit_at_once_is_refused_and_its_files_are_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_objects(monkeypatch, "objects")
    out = tmp_path / "out"
    fill(out, OLD)
    first, commit = replacement(spark, out, "one", NEW)
    second, _ = replacement(spark, out, "two", NEWER)
    commit.begin(first._new_path(first.staging), sorted(NEW), sorted(OLD))  # noqa: SLF001 - a step of `replace`
    with pytest.raises(TargetChanged, match="another job is replacing"):
        second.replace()
    with second.locked():
        second.replace()
    assert visible(out) == NEWER


@pytest.mark.parametrize("scheme", ["viewfs://data", ""])
def test_a_reader_completes_the_commit_of_an_object_store(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    session = spark.newSession()
    session.conf.set("fs.viewfs.mounttable.data.link./t", f"file://{tmp_path}")
    monkeypatch.setattr("spark_runner.connectors.files.targets.FOLDERS_RENAME", set[str]())
    location = f"{scheme}/t/out" if scheme else f"file://{tmp_path}/out"
    fill(tmp_path / "out", OLD)
    with pytest.MonkeyPatch.context() as patch:
        arm(patch, "objects", 6)
        target = TargetDirectory(session, location, Writer("run"))
        fill(tmp_path / target.staging.rpartition("/")[2], NEW)
        with pytest.raises(Died):
            target.replace()
    assert visible(tmp_path / "out") not in (OLD, NEW)
    complete_commit(session, location)
    assert visible(tmp_path / "out") == NEW


def test_a_job_that_stalls_at_the_end_of_a_commit_leaves_the_next_one_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_objects(monkeypatch, "objects")
    out = tmp_path / "out"
    fill(out, OLD)
    first, commit = replacement(spark, out, "one", NEW)
    second, next_commit = replacement(spark, out, "two", NEWER)
    reader, late_commit = replacement(spark, out, "reader", set())
    commit.begin(first._new_path(first.staging), sorted(NEW), sorted(OLD))  # noqa: SLF001 - a step of `replace`
    read, reads = late_commit._read, itertools.count()  # noqa: SLF001 - where the reader stalls

    def stalls() -> object:
        if next(reads):
            commit.complete()
            next_commit.begin(second._new_path(second.staging), sorted(NEWER), sorted(NEW))  # noqa: SLF001 - as above
        return read()

    monkeypatch.setattr(late_commit, "_read", stalls)
    reader.finish()
    assert second.has_open_commit()
    assert next_commit.complete(sorted(NEWER))
    assert visible(out) == NEWER


def test_a_commit_whose_record_is_gone_is_no_success_without_its_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_objects(monkeypatch, "objects")
    out = tmp_path / "out"
    fill(out, OLD)
    target, commit = replacement(spark, out, "run", NEW)
    act_behind_begin(monkeypatch, commit, lambda: next(tmp_path.glob(".orchestrator-*.commit")).unlink())
    with pytest.raises(TargetChanged):
        target.replace()
    assert visible(out) == OLD


def test_a_read_that_meets_a_commit_fails_instead_of_old_and_new_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.connectors.files.targets.FOLDERS_RENAME", set[str]())
    out, location = tmp_path / "out", f"file://{tmp_path}/out"
    fill(out, OLD)
    target = TargetDirectory(spark, location, Writer("run"))
    fill(Path(target.staging.removeprefix("file:")), NEW)
    assert target._commit is not None  # noqa: SLF001 - a writer begins while Spark lists the files
    begin = target._commit.begin  # noqa: SLF001 - likewise
    monkeypatch.setattr(
        "spark_runner.connectors.files.source.complete_commit",
        lambda *_: begin(target._new_path(target.staging), sorted(NEW), sorted(OLD)),  # noqa: SLF001 - likewise
    )
    options = {"path": location, "header": False, "delimiter": ",", "null_value": ""}
    with pytest.raises(TargetChanged, match="has old and new rows"):
        CsvSource().read(spark, options, None)


def test_a_further_attempt_removes_its_own_files_and_nothing_else_below_the_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    fill(out, {"part-run-1-a.csv", "a=1/part-run-1-b.csv", "orders/part-0.csv", ".profile"})
    TargetDirectory(spark, str(out), Writer("run", 2)).recover()
    assert visible(out) == {"orders/part-0.csv"}
    assert (out / ".profile").is_file()


# Staged files of drivers whose run has no further attempt


def aged(folder: Path, days: float, names: set[str]) -> Path:
    """A folder with files that were written so many days ago."""
    fill(folder, names)
    at = time.time() - days * 86_400
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (at, at))
    return folder


def staging(spark: SparkSession, out: Path, writer: str) -> Path:
    return Path(TargetDirectory(spark, str(out), Writer(writer)).staging.removeprefix("file:"))


@pytest.mark.parametrize("kind", KINDS)
def test_staged_files_that_nobody_has_written_for_a_week_are_removed_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    as_objects(monkeypatch, kind)
    out = tmp_path / "out"
    aged(out, 30, OLD)
    dead = aged(staging(spark, out, "dead"), 8, {"_temporary/0/part-1.csv"})
    (empty := staging(spark, out, "empty")).mkdir()
    os.utime(empty, (0, 0))
    alive = aged(staging(spark, out, "alive"), 8, {"part-1.csv", "_temporary/0/part-2.csv"})
    (alive / "_temporary/0/part-2.csv").touch()
    other = aged(staging(spark, tmp_path / "other", "dead"), 8, NEW)
    overwrite(spark, out, NEW, 1)
    assert visible(out) == NEW
    assert {path.name for path in tmp_path.iterdir()} == {"out", alive.name, other.name}
    assert not dead.exists()


def test_staged_files_of_an_incomplete_swap_stay_whatever_their_age(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dead = aged(staging(spark, out, "dead"), 30, NEW)
    aged(tmp_path / f"{dead.name}.old", 30, OLD)
    fill(out, NEWER)
    TargetDirectory(spark, str(out), Writer("run")).recover()
    assert visible(out) == NEWER
    assert visible(dead) == NEW
    assert visible(tmp_path / f"{dead.name}.old") == OLD
