# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""INSERT INTO adds and INSERT OVERWRITE replaces as a whole: a failed one leaves the old data."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.files.targets import TargetDirectory
from spark_runner.driver.outcome import of_error
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
T = "CREATE TABLE t USING {} OPTIONS (path 'out');\n"
FAILS = "SELECT IF(id > 5, raise_error('out of luck'), CAST(id AS INT)) AS a FROM range(0, 10, 1, 4)"


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(text: str, writer: Writer | None = None) -> list[dict[str, Any]]:
        plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables={})
        return execute(spark, json.loads(json.dumps(plan)), lambda _: None, writer)

    return run_script


def names(folder: Path) -> set[str]:
    """All names in a folder except checksums and marks."""
    return {
        path.name for path in folder.iterdir() if not path.name.endswith(".crc") and path.name != "_SUCCESS"
    }


@pytest.fixture
def rows(spark: SparkSession, tmp_path: Path) -> Callable[[], list[int]]:
    def read() -> list[int]:
        assert names(tmp_path) <= {"out"}, "nothing is left beside it"
        return sorted(row[0] for row in spark.read.parquet(str(tmp_path / "out")).select("a").collect())

    return read


Rows = Callable[[], list[int]]


def test_insert_into_adds_to_what_earlier_runs_and_inserts_have_written(run: Run, rows: Rows) -> None:
    script = f"""{T.format("parquet")}
    CREATE TABLE same USING parquet OPTIONS (path 'out');
    CREATE TABLE p USING print;
    INSERT INTO t SELECT 1 AS a;
    INSERT INTO t SELECT 2 AS a;
    INSERT INTO same SELECT 3 AS a;
    INSERT INTO p SELECT count(*) FROM t;
    """
    assert run(script)[-1]["preview"] == [["3"]]
    results = run(script)
    assert results[-1]["preview"] == [["6"]]
    assert (results[0]["rows"], results[0]["preview"]) == (1, [["1"]])  # the added files of each
    assert rows() == [1, 1, 2, 2, 3, 3]


def test_insert_overwrite_replaces_and_what_follows_in_the_run_is_added(
    run: Run, rows: Rows, tmp_path: Path
) -> None:
    run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a, 'old columns' AS b")
    (tmp_path / "out").chmod(0o750)
    run(T.format("parquet") + "INSERT OVERWRITE t SELECT 2 AS a; INSERT INTO t SELECT 3 AS a")
    assert rows() == [2, 3]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750


def test_a_link_stays_and_what_it_names_is_replaced(run: Run, tmp_path: Path) -> None:
    disk = tmp_path / "out" / "disk"
    disk.mkdir(parents=True)
    (tmp_path / "out" / "link").symlink_to(disk)
    head = "CREATE TABLE t USING parquet OPTIONS (path 'out/link');\n"
    run(f"{head}INSERT INTO t SELECT 1 AS a")
    run(f"{head}INSERT OVERWRITE t SELECT 2 AS a")
    assert (tmp_path / "out" / "link").is_symlink()
    assert names(tmp_path / "out") == {"disk", "link"}
    assert len(list(disk.glob("part-*"))) == 1


def test_relative_paths_are_of_this_host_whatever_file_system_is_the_default(run: Run, rows: Rows) -> None:
    elsewhere = "SET 'fs.defaultFS' = 'hdfs://localhost:9';\n"  # no server is asked there
    seen = run(
        f"{elsewhere}{T.format('parquet')} INSERT INTO t SELECT 1 AS a; CREATE TABLE p USING print;"
        "INSERT INTO p SELECT * FROM t; INSERT OVERWRITE t SELECT 2 AS a"
    )
    assert seen[1]["preview"] == [["1"]]
    assert rows() == [2]


@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE"])
def test_a_query_that_fails_in_the_middle_leaves_what_was_there(run: Run, rows: Rows, verb: str) -> None:
    run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a")
    with pytest.raises(SqlError, match="out of luck"):
        run(f"{T.format('parquet')} INSERT {verb} t {FAILS}")
    assert rows() == [1]


def test_a_further_attempt_replaces_what_the_one_before_it_has_added_and_nothing_else(
    run: Run, rows: Rows, tmp_path: Path
) -> None:
    insert = "INSERT INTO t SELECT 1 AS a;"
    run(T.format("parquet") + insert)
    head = f"{T.format('parquet')} CREATE TABLE new USING parquet OPTIONS (path 'out/new'); {insert}"
    with pytest.raises(SqlError, match="out of luck"):
        run(f"{head} INSERT INTO new SELECT 1 AS a; INSERT INTO t {FAILS}", Writer("run", 1))
    assert rows() == [1, 1]
    run(f"{T.format('parquet')} INSERT INTO t SELECT 5 AS a", Writer("other", 1))
    # As left by a driver that was killed while it wrote.
    (tmp_path / "out").joinpath("part-run-1-00007-late.zstd.parquet").write_bytes(b"")
    seen = run(
        f"CREATE TABLE p USING print; {head} INSERT INTO p SELECT count(*) FROM t; {insert}"
        "INSERT INTO new SELECT 2 AS a",
        Writer("run", 2),
    )
    assert seen[1]["preview"] == [["3"]], "of the first run, of the other one, and of this attempt"
    assert rows() == [1, 1, 1, 5]
    assert len(list((tmp_path / "out" / "new").glob("part-*"))) == 1


def test_a_swap_that_a_dead_driver_has_left_half_done_is_taken_back(
    run: Run, rows: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a")
    staged = left_by_a_dead_driver(spark, tmp_path, "staged", ".old")
    with pytest.raises(SqlError, match="is being replaced") as caught:
        run(
            "CREATE TABLE r USING parquet OPTIONS (path 'out'); CREATE TABLE p USING print;"
            "INSERT INTO p TABLE r"
        )
    assert of_error(caught.value)["error"]["class"] == "user", (
        "a further attempt of a reader may have more luck"
    )
    run(T.format("parquet") + "INSERT INTO t SELECT 2 AS a", Writer("other"))
    assert staged.is_dir()
    run(T.format("parquet") + "INSERT INTO t SELECT 3 AS a", Writer("dead", 2))
    assert rows() == [1, 2, 3]


def left_by_a_dead_driver(spark: SparkSession, tmp_path: Path, *left: str) -> Path:
    """As after a death between the renames of a swap, or after them."""
    staged = Path(TargetDirectory(spark, str(tmp_path / "out"), Writer("dead")).staging.removeprefix("file:"))
    (tmp_path / "out").rename(f"{staged}.old")
    (staged if "staged" in left else tmp_path / "out").mkdir()
    return staged


def test_data_that_a_dead_driver_has_replaced_does_not_return_when_the_target_is_removed(
    run: Run, rows: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    insert = T.format("parquet") + "INSERT INTO t SELECT {} AS a"
    for is_removed_first in (True, False):
        run(insert.format(1))
        left_by_a_dead_driver(spark, tmp_path)
        if not is_removed_first:
            run(insert.format(4))
            assert rows() == [4]
        shutil.rmtree(tmp_path / "out")
        run(insert.format(2))
        assert rows() == [2]
        shutil.rmtree(tmp_path / "out")


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen when all is written and nothing is swapped yet."""
    alone, left = TargetDirectory.locked, [happens]

    def late(self: TargetDirectory) -> AbstractContextManager[None]:
        if left and Path(self.staging.removeprefix("file:")).exists():
            left.pop()()
        return alone(self)

    monkeypatch.setattr(TargetDirectory, "locked", late)


def test_columns_are_compared_with_those_that_another_job_has_written_meanwhile(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a"))
    with pytest.raises(SqlError, match=r"gives the columns \(b\), in .* are \(a\)"):
        run(T.format("parquet") + "INSERT INTO t SELECT 2 AS b")
    assert rows() == [1]


def test_two_jobs_that_begin_a_target_at_once_both_add_to_it(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a"))
    run(T.format("parquet") + "INSERT INTO t SELECT 2 AS a")
    assert rows() == [1, 2]


def test_the_driver_of_an_earlier_attempt_that_still_lives_adds_nothing_and_says_so(
    run: Run, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = T.format("parquet") + "INSERT INTO t SELECT {} AS a"
    run(insert.format(0))
    meanwhile(monkeypatch, lambda: run(insert.format(2), Writer("run", 2)))
    with pytest.raises(SqlError, match="this run has a further attempt"):
        run(insert.format(1), Writer("run", 1))
    assert rows() == [0, 2]


def test_one_job_of_a_host_changes_a_target_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with (
            TargetDirectory(spark, str(tmp_path / "out"), Writer("run")).locked(),
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(folder)


def test_a_file_that_is_replaced_while_columns_are_compared_is_no_error_of_the_script(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = T.format("parquet") + "INSERT INTO t SELECT 1 AS a"
    run(insert)
    find = TargetDirectory.first_file

    def goes(self: TargetDirectory) -> str | None:
        found = find(self)
        for path in (tmp_path / "out").glob("part-*"):
            path.unlink()
        return found

    monkeypatch.setattr(TargetDirectory, "first_file", goes)
    with pytest.raises(SqlError, match="being replaced by another job") as caught:
        run(insert)
    assert of_error(caught.value)["error"]["class"] == "user"


def test_files_are_taken_back_where_the_mark_of_success_cannot_be_made(
    run: Run, rows: Rows, tmp_path: Path
) -> None:
    insert = T.format("parquet") + "INSERT INTO t SELECT 1 AS a"
    run(insert)
    (tmp_path / "out" / "_SUCCESS").unlink()
    (tmp_path / "out" / "._SUCCESS.crc").unlink()
    (tmp_path / "out" / "._SUCCESS.crc").mkdir()  # as on a full disk
    with pytest.raises(SqlError, match="_SUCCESS"):
        run(insert)
    assert rows() == [1]


def fail_at_the_second_move(target: TargetDirectory) -> None:
    moves: list[object] = []

    def move(source: Any, to: Any) -> None:
        moves.append(source)
        if len(moves) == 2:
            raise TargetChanged("in the middle")
        rename(source, to)

    rename, target._rename = target._rename, move  # type: ignore[assignment,method-assign]  # noqa: SLF001


def test_a_swap_that_fails_is_taken_back(
    run: Run, rows: Rows, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.connectors.files.targets.exchange", lambda _one, _other: False)
    run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a")
    target = TargetDirectory(spark, str(tmp_path / "out"), Writer("run"))
    staged = Path(target.staging.removeprefix("file:"))
    staged.mkdir()
    fail_at_the_second_move(target)
    with pytest.raises(TargetChanged):
        target.replace()
    target.discard()
    assert rows() == [1]


def test_files_that_cannot_all_be_added_are_not_added_at_all(
    run: Run, rows: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a")
    target = TargetDirectory(spark, str(tmp_path / "out"), Writer("run"))
    staged = Path(target.staging.removeprefix("file:"))
    staged.mkdir()
    for name in ("part-1.parquet", "part-2.parquet"):
        (staged / name).write_bytes(b"x")
    fail_at_the_second_move(target)
    with pytest.raises(TargetChanged):
        target.add()
    target.discard()
    assert rows() == [1]


@pytest.mark.parametrize("target", ["parquet", "json", "csv", "csv', header 'false", "csv', partition_by 'b"])
def test_rows_that_executors_wrote_on_their_own_disks_are_missed_before_anything_is_changed(
    run: Run, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(spark.sparkContext, "master", "spark://elsewhere")
    name, _, option = target.partition("', ")
    more = f", {option}'" if option else ""
    insert = (
        f"CREATE TABLE t USING {name} OPTIONS (path 'out'{more});"
        "INSERT {} t SELECT '' AS a, id % 2 AS b FROM range(0, 6, 1, 3)"
    )
    run(insert.format("INTO"))
    before = sorted((tmp_path / "out").rglob("*"))
    count = TargetDirectory.staged_files

    def loses_a_file(self: TargetDirectory) -> int:
        staged = sorted(Path(self.staging.removeprefix("file:")).rglob("part-*"))
        staged[-1].unlink()
        return count(self)

    monkeypatch.setattr(TargetDirectory, "staged_files", loses_a_file)
    for verb in ("INTO", "OVERWRITE"):
        with pytest.raises(
            SqlError, match=r"wrote 6 rows, of which this host sees [2-5]; .* all nodes share"
        ):
            run(insert.format(verb))
    assert sorted((tmp_path / "out").rglob("*")) == before


@pytest.mark.parametrize("more", ["", ", header 'false'", ", partition_by 'b'"])
def test_rows_that_spark_leaves_out_of_a_csv_file_are_refused_unless_they_can_be_written(
    run: Run, tmp_path: Path, more: str
) -> None:
    table = f"CREATE TABLE t USING csv OPTIONS (path 'out'{{}}{more});\n"
    columns = "IF(id = 1, NULL, 'x') AS a" + (", 1 AS b" if "b'" in more else "")
    insert = f"INSERT INTO t SELECT {columns} FROM range(3)"
    with pytest.raises(SqlError, match=r"of 3 rows 1 have no value, .* give option 'null_value'"):
        run(table.format("") + insert)
    assert list(tmp_path.iterdir()) == []
    assert run(table.format(", null_value '-'") + insert)[0]["rows"] == 3
    assert sum(path.read_text().split().count("-") for path in tmp_path.rglob("part-*.csv")) == 1


def test_a_mount_point_is_not_swapped(run: Run) -> None:
    mounted = next(path for path in ("/dev/shm", "/proc", "/") if os.path.ismount(path))
    with pytest.raises(SqlError, match=r"a file system is mounted, or .*; name one below it"):
        run(f"CREATE TABLE t USING csv OPTIONS (path '{mounted}'); INSERT OVERWRITE t SELECT 1 AS a")


def test_files_are_added_to_a_mounted_file_system_from_within(
    run: Run, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(
        os.path, "ismount", lambda path: Path(path) == out
    )  # others would see no folder beside it
    staged: list[str] = []
    meanwhile(monkeypatch, lambda: staged.extend(names(out)))
    run(T.format("parquet") + "INSERT INTO t SELECT 1 AS a")
    assert len(staged) == 1
    assert staged[0].startswith(".orchestrator-")
    run(T.format("parquet") + "INSERT INTO t SELECT 2 AS a")
    assert rows() == [1, 2]
    assert all(name.startswith("part-") for name in names(out))


def test_mode_error_refuses_data_that_are_there_but_not_those_of_its_own_run(run: Run, rows: Rows) -> None:
    script = (
        "CREATE TABLE t USING parquet OPTIONS (path 'out', mode 'error');\n"
        "INSERT INTO t SELECT 1 AS a;\nINSERT INTO t SELECT 2 AS a"
    )
    run(script, Writer("run", 1))
    run(script, Writer("run", 2))
    assert rows() == [1, 2]
    with pytest.raises(SqlError, match=r"data in .*/out' already, and the table has mode 'error'") as caught:
        run(script)
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert rows() == [1, 2]


# Different columns

UNLIKE = [
    ("csv", "1 AS a, 2 AS b", "2 AS b, 1 AS a", r"are \(a, b\)"),
    ("csv", "1 AS a, 2 AS b", "1 AS a, 2 AS c", r"columns \(a, c\)"),
    ("csv", "1 AS a, 2 AS b", "1 AS a", r"columns \(a\)"),
    ("csv', header 'false", "1 AS a, 2 AS b", "1 AS a", "are 2 columns"),
    ("json", "1 AS a, 2 AS b", "1 AS a, 2 AS c", "records with b"),
    ("parquet", "1 AS a", "1L AS a", "a as int, not bigint"),
    ("parquet", "1 AS a", "1 AS b", r"columns \(b\)"),
    ("csv', partition_by 'b", "1 AS a, 2 AS b", "1 AS c, 2 AS b", r"columns \(c\)"),
]


@pytest.mark.parametrize("unlike", UNLIKE)
def test_unlike_columns_are_refused_before_anything_is_written(
    run: Run, tmp_path: Path, unlike: tuple[str, str, str, str]
) -> None:
    file_format, first, second, words = unlike
    name, _, more = file_format.partition("', ")
    options = f"path 'out', {more}'" if more else "path 'out'"
    head = f"CREATE TABLE t USING {name} OPTIONS ({options});\n"
    with pytest.raises(
        SqlError, match=r"table 't': the query gives the columns .*an earlier INSERT"
    ) as caught:
        run(f"{head}INSERT INTO t SELECT {first};\nINSERT INTO t SELECT {second}")
    assert caught.value.line == 3
    assert list(tmp_path.iterdir()) == []

    run(f"{head}INSERT INTO t SELECT {first}")
    before = names(tmp_path / "out")
    with pytest.raises(SqlError, match=words):
        run(f"{head}INSERT INTO t SELECT {second}")
    assert names(tmp_path / "out") == before


@pytest.mark.parametrize("tables", [("csv", "json"), ("json", "parquet"), ("csv", "csv', delimiter ';")])
def test_tables_that_write_one_location_in_different_ways_are_refused(
    run: Run, tmp_path: Path, tables: tuple[str, str]
) -> None:
    one, other = (
        f"CREATE TABLE {{}} USING {name} OPTIONS (path 'out'{f', {more}' + chr(39) if more else ''});\n"
        for name, _, more in (table.partition("', ") for table in tables)
    )
    insert = "INSERT INTO {} SELECT 1 AS a, 2 AS b;\n"
    with pytest.raises(SqlError, match="table 'one' of the same place has") as caught:
        run(one.format("one") + other.format("two") + insert.format("one") + insert.format("two"))
    assert caught.value.line == 4
    assert list(tmp_path.iterdir()) == []
    run(one.format("one") + insert.format("one"))
    before = names(tmp_path / "out")
    with pytest.raises(SqlError, match="INSERT INTO adds rows of the same columns"):
        run(other.format("two") + insert.format("two"))
    assert names(tmp_path / "out") == before


def test_a_table_that_is_only_read_has_the_columns_that_its_files_have_by_then(run: Run) -> None:
    head = "CREATE TABLE t USING {} OPTIONS (path 'out');\n"
    for file_format in ("json", "parquet"):
        run(f"{head.format(file_format)} INSERT OVERWRITE t SELECT 1 AS a")
        seen = run(
            f"{head.format(file_format)} CREATE TABLE r USING {file_format} OPTIONS (path 'out');"
            "CREATE TABLE p USING print; INSERT OVERWRITE t SELECT 2 AS b; INSERT INTO p TABLE r"
        )
        assert (seen[1]["columns"], seen[1]["preview"]) == (["b"], [["2"]])


def test_partitions_of_any_name_and_location_are_those_that_are_there(run: Run) -> None:
    script = (
        "CREATE TABLE t (b INT, a INT, `x:y` INT) USING parquet OPTIONS (path 'out', partition_by 'b,x:y');"
        "CREATE TABLE u USING csv OPTIONS (path 'u'); INSERT INTO t SELECT 1, 2, 3;"
        "INSERT INTO u SELECT * FROM t; INSERT INTO u SELECT 6 AS b, 5 AS a, 7 AS `x:y`"
    )
    for _ in range(2):
        run(script)


def test_declared_columns_and_partitions_are_compared_with_what_is_there(run: Run, tmp_path: Path) -> None:
    run(T.format("csv") + "INSERT INTO t SELECT 1 AS a, 2 AS b")
    declared = "CREATE TABLE t (a INT, {} INT) USING csv OPTIONS (path 'out'{});\nINSERT INTO t SELECT 3, 4"
    run(declared.format("B", ""))
    with pytest.raises(SqlError, match=r"columns \(a, c\), in .* are \(a, [bB]\)"):
        run(declared.format("c", ""))
    with pytest.raises(SqlError, match=r"partitions by b, the data in .* has no partitions"):
        run(declared.format("b", ", partition_by 'b'"))
    assert len(list((tmp_path / "out").glob("part-*"))) == 2


CHAINS = [
    # Read by a later statement, and by one in between.
    """
    INSERT INTO t SELECT 1 AS a; INSERT INTO p SELECT * FROM t; INSERT INTO t SELECT 1 AS b""",
    # A table that the script itself writes first, through a view and under another name of the location.
    """
    CREATE TABLE u USING csv OPTIONS (path 'u'); CREATE VIEW v AS SELECT a FROM u;
    CREATE TABLE same USING csv OPTIONS (path 'file:{folder}/out');
    INSERT INTO u SELECT 1 AS a; INSERT INTO t SELECT * FROM v; INSERT INTO same SELECT a AS c FROM v""",
    # After one whose columns are not known yet.
    """
    CREATE TABLE j USING json OPTIONS (path 'j'); INSERT INTO j SELECT 1 AS a;
    INSERT INTO t SELECT * FROM j; INSERT INTO t SELECT 1 AS b; INSERT INTO t SELECT 1 AS c""",
    # The first one is replaced.
    """
    INSERT INTO t SELECT 1 AS a; INSERT OVERWRITE t SELECT 1 AS b; INSERT INTO t SELECT 1 AS a""",
]


@pytest.mark.parametrize("chain", CHAINS)
def test_unlike_columns_are_found_in_scripts_that_read_what_they_write(
    run: Run, tmp_path: Path, chain: str
) -> None:
    head = "CREATE TABLE t USING csv OPTIONS (path 'out'); CREATE TABLE p USING print;"
    with pytest.raises(SqlError, match="an earlier INSERT gives"):
        run(head + chain.replace("{folder}", str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_scripts_that_read_what_they_write_are_not_refused_for_types_that_show_then(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    script = """
    CREATE TABLE j USING json OPTIONS (path 'j'); CREATE TABLE c USING csv OPTIONS (path 'c');
    CREATE TABLE t USING parquet OPTIONS (path 'out'); CREATE TABLE u USING parquet OPTIONS (path 'u');
    INSERT OVERWRITE j SELECT 1 AS b; CREATE VIEW v AS SELECT b AS a FROM j;
    INSERT INTO t SELECT * FROM v; INSERT INTO t SELECT 1L AS a;
    INSERT OVERWRITE c SELECT 1 AS b; INSERT INTO u SELECT b FROM c; INSERT INTO u SELECT 'x' AS b;
    INSERT OVERWRITE j SELECT 'x' AS b; INSERT INTO u TABLE j
    """
    for _ in range(2):
        run(script)
    assert spark.read.parquet(f"{tmp_path}/out").count() == 4
    assert spark.read.parquet(f"{tmp_path}/u").count() == 6


def test_unlike_queries_whose_columns_show_when_they_are_written_are_found_then(
    run: Run, tmp_path: Path
) -> None:
    script = """
    CREATE TABLE u USING json OPTIONS (path 'u');
    CREATE TABLE t USING csv OPTIONS (path 'out');
    INSERT INTO u SELECT 1 AS a;
    INSERT INTO t SELECT * FROM u;
    INSERT INTO t SELECT a AS c FROM u;
    """
    with pytest.raises(SqlError, match=r"columns \(c\), in .* are \(a\)") as caught:
        run(script)
    assert caught.value.line == 6
    assert len(list((tmp_path / "out").glob("part-*"))) == 1
