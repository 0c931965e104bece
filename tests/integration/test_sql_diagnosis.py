# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Every error of Spark is shown at its position in the user's file, and nothing is destroyed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.driver.outcome import is_permanent
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.spark_support import LocalSpark

pytestmark = pytest.mark.spark

HEAD = """\
-- words before
CREATE TABLE p USING print;
CREATE TABLE src (id INT, name STRING) USING inline OPTIONS (rows '[[0, "a"], [1, "b"]]');
"""


Fail = Callable[..., SqlError]


@pytest.fixture
def fail(spark: SparkSession, tmp_path: Path) -> Fail:
    """Run a script that must fail; return its error."""

    def failing(text: str, **variables: str) -> SqlError:
        with pytest.raises(SqlError) as caught:  # noqa: PT012 - either call may find the error
            plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables=variables)
            execute(spark, json.loads(json.dumps(plan)), lambda _: None)
        error = caught.value
        assert error.source_line == text.split("\n")[error.line - 1]
        for noise in ("\tat ", "'Project", "+- ", "== SQL", "JVM stacktrace", "py4j"):
            assert noise not in error.message
        return error

    return failing


@pytest.mark.parametrize(
    ("statement", "marked", "message"),
    [
        ("INSERT INTO p\n  SELECT id,\n    nme FROM src", "nme", "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        ("INSERT INTO p SELECT *\nFROM srcc", "srcc", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("INSERT INTO p SELECT id\nFROM src\n  WHERE id = %", "%", "[PARSE_SYNTAX_ERROR]"),
        ("INSERT INTO p SELECT id FROM src WHERE id\n =", ";", "[PARSE_SYNTAX_ERROR]"),
        ("INSERT INTO p SELECT id\n + date'2020-01-01' * id FROM src", "date'", "[DATATYPE_MISMATCH"),
        ("INSERT INTO p SELECT\n\tnofunc(id) FROM src", "nofunc", "[UNRESOLVED_ROUTINE]"),
        ("INSERT INTO p SELECT id, count(*) AS n FROM src", "SELECT id, c", "[MISSING_GROUP_BY]"),
        ("INSERT INTO p SELECT id FROM src GROUP BY name", "SELECT id F", "[MISSING_AGGREGATION]"),
        ("INSERT INTO p SELECT '😀', -- 😀\n '😀' || nope FROM src", "nope", "[UNRESOLVED_COLUMN"),
        ("INSERT INTO p SELECT '😀' frm x y", "x y", "[PARSE_SYNTAX_ERROR]"),
        ("INSERT INTO p SELECT 1 /\n  id FROM src", "1 /", "[DIVIDE_BY_ZERO]"),
        ("INSERT INTO p SELECT 'x', CAST(name AS\n INT) FROM src", "CAST", "[CAST_INVALID_INPUT]"),
        ("INSERT INTO p SELECT raise_error('out of luck')", "INSERT INTO p SELECT r", "out of luck"),
        ("CREATE VIEW v AS SELECT id, nope FROM src;\nINSERT INTO p TABLE v", "nope", "[UNRESOLVED_COLUMN"),
        (
            "CREATE VIEW v AS\n SELECT id FROM src WHERE id = %;\nINSERT INTO p TABLE v",
            "%;\nIN",
            "[PARSE_SYNTAX",
        ),
        (
            "CREATE VIEW v AS -- c\n SELECT 1 / id AS q FROM src;\nINSERT INTO p SELECT q FROM v",
            "1 / id",
            "[DIVIDE",
        ),
        (
            "CREATE VIEW v AS SELECT 1 / id AS q FROM src;\nCREATE VIEW w AS TABLE v;\nINSERT INTO p TABLE w",
            "1 / id",
            "[DIVIDE_BY_ZERO]",
        ),
        ("SET spark.sql.shuffle.partitions = many;\nINSERT INTO p SELECT 1", "SET", "[INVALID_CONF_VALUE"),
        (
            "SET spark.executor.memory = 1g;\nINSERT INTO p SELECT 1",
            "spark.executor.memory",
            "cannot change while Spark runs",
        ),
        (
            "CREATE TABLE t (a INT,\n  b NUMBER) USING csv OPTIONS (path 'x');\nINSERT INTO p TABLE t",
            "NUMBER",
            "unknown type 'NUMBER'",
        ),
        (
            "CREATE TABLE t (a INT,\n  b DECIMAL(10, -2)) USING csv OPTIONS (path 'x');\nSELECT a FROM t",
            "-2",
            "expected a number without sign and point",
        ),
        (
            "CREATE TABLE t (a INT b) USING csv OPTIONS (path 'x');\nINSERT INTO t SELECT 1",
            "b) USING",
            "expected ',' before 'b'",
        ),
        (
            "  CREATE TABLE t (a INT) USING inline OPTIONS (rows '[[\"x\"]]');\nINSERT INTO p TABLE t",
            "CREATE TABLE t",
            "field name 'a' and the value x",
        ),
    ],
)
def test_an_error_of_spark_points_at_its_place(fail: Fail, statement: str, marked: str, message: str) -> None:
    text = HEAD + statement + ";\n"
    error = fail(text)
    offset = text.index(marked, len(HEAD))
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    assert (error.line, error.column) == (line, column), str(error)
    assert message in error.message
    of_the_data = ("[DIVIDE", "[CAST_INVALID_INPUT]", "out of luck", "and the value x", "[INVALID_CONF_VALUE")
    assert is_permanent(error) is not any(words in message for words in of_the_data)


def test_an_error_behind_values_points_at_the_users_line(fail: Fail) -> None:
    text = HEAD + "INSERT INTO p SELECT '${x}' || '${x}', ${y}\n  , nope FROM src WHERE ${y} = id"
    error = fail(text, x="many\nlines\nit's", y="id")
    assert (error.line, error.column) == (5, 5)


def test_an_error_inside_of_a_value_points_at_its_variable(fail: Fail) -> None:
    error = fail(HEAD + "INSERT INTO p\n  SELECT id, ${y} FROM src", y="1 +\n\n nope")
    assert (error.line, error.column) == (5, 14)


def test_two_queries_with_the_same_beginning_are_distinguished(fail: Fail) -> None:
    view = "CREATE VIEW v AS SELECT 1 / id AS q FROM src;\n"
    other = "CREATE VIEW w AS SELECT 1 / id AS q FROM src WHERE id > 0;\n"
    error = fail(HEAD + other + view + "INSERT INTO p SELECT q / q AS q FROM v")
    assert (error.line, error.column) == (5, 25)
    error = fail(HEAD + view + other + "INSERT INTO p SELECT 1 / (q - 1) AS q FROM w")
    assert (error.line, error.column) == (6, 22)


def test_a_missing_source_points_at_its_create_table(fail: Fail, tmp_path: Path) -> None:
    error = fail(
        f"{HEAD}\n CREATE TABLE t USING parquet OPTIONS (path 'no/such');\nINSERT INTO p SELECT * FROM t"
    )
    assert (error.line, error.column) == (5, 2)
    assert "table 't': [PATH_NOT_FOUND]" in error.message
    assert f"{tmp_path}/no/such" in error.message


def test_reading_a_target_before_it_was_written_points_at_the_read(fail: Fail) -> None:
    table = "CREATE TABLE t USING parquet OPTIONS (path 'x');\n"
    error = fail(f"{HEAD}{table}INSERT INTO p SELECT * FROM t;\nINSERT INTO t SELECT 1")
    assert (error.line, error.column) == (5, 29)
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in error.message


def test_every_query_of_missing_data_is_an_error_of_the_definition(
    spark: SparkSession, tmp_path: Path
) -> None:
    for ask in (
        lambda: spark.read.parquet(f"{tmp_path}/none"),
        lambda: spark.sparkContext.textFile(f"{tmp_path}/none").count(),
        lambda: spark.table("no_such_table"),
        lambda: spark.sql("SELEC 1"),
    ):
        with pytest.raises(Exception, match=r"none|no_such_table|SELEC") as caught:
            ask()
        assert is_permanent(caught.value), caught.value


def test_a_file_that_is_no_parquet_is_named(fail: Fail, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("not parquet")
    error = fail(
        f"{HEAD}CREATE TABLE t USING parquet OPTIONS (path 'x.parquet');\nINSERT INTO p SELECT * FROM t"
    )
    assert error.line == 4
    assert f"{tmp_path}/x.parquet" in error.message


@pytest.mark.parametrize("path", ["/proc/no/such", "nofs://host/x"])
def test_a_target_that_cannot_be_written_is_named_at_the_insert(fail: Fail, path: str) -> None:
    error = fail(f"{HEAD}CREATE TABLE t USING csv OPTIONS (path '{path}');\n  INSERT INTO t SELECT 1 AS a")
    assert (error.line, error.column) == (5, 3)
    assert error.message.startswith(f"writing table 't' to '{path}' failed: ")


def test_columns_of_one_name_are_refused_at_the_insert(fail: Fail) -> None:
    error = fail(f"{HEAD}CREATE TABLE t USING csv OPTIONS (path 'x');\nINSERT INTO t SELECT 1 AS a, 2 AS a")
    assert (error.line, error.column) == (5, 1)
    assert "[COLUMN_ALREADY_EXISTS]" in error.message


def test_the_cause_is_kept(fail: Fail) -> None:
    assert fail("CREATE TABLE p USING print; INSERT INTO p SELECT nope").__cause__ is not None


# Nothing is destroyed


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


@pytest.fixture(scope="module")
def written(local_spark: LocalSpark) -> Path:
    """Parquet files with data."""
    directory = local_spark.folder / "written"
    local_spark.session().range(10).write.parquet(str(directory))
    return directory


@pytest.fixture
def precious(written: Path, tmp_path: Path) -> Path:
    """A copy of them, below a directory of the same owner."""
    directory = tmp_path / "precious"
    shutil.copytree(written, directory / "data")
    return directory


@pytest.mark.parametrize(
    "insert",
    [
        "INSERT INTO t SELECT * FROM parquet.`{0}/data`",
        "INSERT OVERWRITE t SELECT max(id) FROM parquet.`file://{0}/data`",
        "INSERT OVERWRITE t WITH t AS (SELECT * FROM t) SELECT * FROM t",
        "CREATE TABLE s USING parquet OPTIONS (path '{0}/d*a');\nINSERT INTO t SELECT * FROM s",
        "CREATE TABLE s USING parquet OPTIONS (path '{0}/d*a');\nINSERT INTO t SELECT (SELECT 1 FROM s)",
        "INSERT INTO t SELECT (SELECT max(id) FROM parquet.`{0}/data` WHERE id = a) FROM VALUES (1) v(a)",
        "INSERT INTO t SELECT (SELECT max(id) FROM parquet.`{0}/data`) AS id",
        "INSERT INTO t SELECT 1 AS id WHERE 1 IN (SELECT (SELECT max(id) FROM parquet.`{0}/data`))",
        "INSERT INTO t SELECT 1 AS id WHERE EXISTS (SELECT * FROM parquet.`{0}/data` d WHERE d.id = 1)",
        "CREATE TABLE s USING parquet OPTIONS (path '{0}-link/data');\nINSERT INTO t SELECT * FROM s",
    ],
)
def test_a_query_that_reads_its_target_in_disguise_is_refused(
    fail: Fail, precious: Path, insert: str
) -> None:
    Path(f"{precious}-link").symlink_to(precious)
    before = contents(precious)
    head = f"CREATE TABLE t USING parquet OPTIONS (path '{precious}/data');\n"
    error = fail(head + insert.format(precious))
    assert "refused: " in error.message
    assert contents(precious) == before


@pytest.mark.parametrize(
    "prepare",
    [
        lambda directory: (directory / "notes.txt").write_text("mine"),
        lambda directory: (directory / "photos").mkdir(),
        lambda directory: (directory / ".git").mkdir(),
        lambda directory: (directory / "a=b").write_text("mine"),
    ],
)
def test_a_directory_with_anything_else_in_it_is_not_overwritten(
    fail: Fail, precious: Path, prepare: Callable[[Path], object]
) -> None:
    target = precious / "data"
    prepare(target)
    before = contents(precious)
    head = f"CREATE TABLE t USING parquet OPTIONS (path '{target}');\n "
    error = fail(f"{head}INSERT OVERWRITE t SELECT 1 AS a")
    assert (error.line, error.column) == (2, 2)
    assert f"refused: overwriting '{target}' would delete what Spark did not write" in error.message
    assert contents(precious) == before


def test_a_table_of_a_lake_is_not_overwritten(fail: Fail, precious: Path) -> None:
    (precious / "data" / "_delta_log").mkdir()
    before = contents(precious)
    head = f"CREATE TABLE t USING parquet OPTIONS (path '{precious / 'data'}');\n "
    error = fail(f"{head}INSERT OVERWRITE t SELECT 1 AS a")
    assert (error.line, error.column) == (2, 2)
    assert f"refused: '{precious / 'data'}' is a table of Delta Lake" in error.message
    assert contents(precious) == before


def test_a_file_is_not_overwritten(fail: Fail, tmp_path: Path) -> None:
    (tmp_path / "letter.csv").write_text("mine")
    for verb in ("INTO", "OVERWRITE"):
        error = fail(f"CREATE TABLE t USING csv OPTIONS (path 'letter.csv');\nINSERT {verb} t SELECT 1 AS a")
        assert "is a file; a target is a directory" in error.message
    assert (tmp_path / "letter.csv").read_text() == "mine"


def test_a_query_that_cannot_be_analysed_leaves_its_target_as_it_was(fail: Fail, precious: Path) -> None:
    before = contents(precious)
    fail(f"CREATE TABLE t USING parquet OPTIONS (path '{precious}/data');\nINSERT INTO t SELECT nope")
    assert contents(precious) == before
