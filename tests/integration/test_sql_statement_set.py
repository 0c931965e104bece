# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statement sets in Spark: one read, the same rows, and nothing left in the cache."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
SOURCE = "CREATE TABLE src (id INT) USING csv OPTIONS (path 'in');\n"


def script(text: str) -> str:
    """With the tables that it writes: a table that it only reads must exist."""
    targets = "".join(
        f"CREATE TABLE {name} USING parquet OPTIONS (path '{name}'); "
        for name in ("a", "b")
        if f"INTO {name} " in text or f"OVERWRITE {name} " in text
    )
    return f"{SOURCE}{targets}CREATE TABLE p USING print;\n{text}"


def is_cache_empty(spark: SparkSession) -> bool:
    state: Any = spark._jsparkSession.sharedState()  # noqa: SLF001 - PySpark has no public way to it
    return bool(state.cacheManager().isEmpty())


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Iterator[Run]:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id\n1\n2\n", encoding="ascii")

    def run_script(text: str, report: Callable[[str], None] = lambda _phase: None) -> list[dict[str, Any]]:
        plan = compile_script(script(text), file="s.sql", base_dir=str(tmp_path), variables={})
        return execute(spark, json.loads(json.dumps(plan)), report)

    yield run_script
    assert is_cache_empty(spark)


def reads(spark: SparkSession, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plan of each query that the sinks got."""
    seen: list[str] = []
    from spark_runner.connectors.files.sink import FileSink  # noqa: PLC0415 - patched here only

    write = FileSink.write

    def watched(self: FileSink, frame: Any, *rest: Any) -> Any:
        seen.append(frame._jdf.queryExecution().optimizedPlan().toString())  # noqa: SLF001 - as above
        return write(self, frame, *rest)

    monkeypatch.setattr(FileSink, "write", watched)
    plan = compile_script(script(text), file="s.sql", base_dir=str(tmp_path), variables={})
    execute(spark, plan, lambda _phase: None)
    return seen


BOTH = "INSERT INTO a SELECT id FROM v WHERE id < 2; INSERT INTO b SELECT count(*) AS n FROM v;"
VIEW = "CREATE VIEW v AS SELECT id, id * 2 AS x FROM src;"


def test_a_set_has_the_results_and_rows_of_its_inserts(run: Run) -> None:
    reports: list[str] = []
    results = run(f"{VIEW} EXECUTE STATEMENT SET BEGIN {BOTH} END;", reports.append)
    assert [(result["target"], result["rows"], result["preview"]) for result in results] == [
        ("a", 1, [["1"]]),
        ("b", 1, [["2"]]),
    ]
    assert reports[-2:] == ["INSERT INTO a (1 of 2)", "INSERT INTO b (2 of 2)"]


def test_what_the_inserts_share_is_read_from_the_cache(
    run: Run, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("SELECT 1") == []
    within = reads(spark, tmp_path, f"{VIEW} STATEMENT SET BEGIN {BOTH} END; {BOTH}", monkeypatch)
    assert ["InMemoryRelation" in plan for plan in within] == [True, True, False, False]


def test_all_inserts_of_a_set_see_the_data_from_before_it_and_others_the_new_ones(
    run: Run, tmp_path: Path
) -> None:
    def report(phase: str) -> None:
        if phase == "INSERT INTO b (2 of 4)":  # between the INSERTs of the set
            (tmp_path / "in" / "2.csv").write_text("id\n3\n", encoding="ascii")

    results = run(
        f"""{VIEW} STATEMENT SET BEGIN INSERT INTO a SELECT count(*) AS n FROM v;
        INSERT INTO b SELECT count(*) AS n FROM v; END;
        CREATE OR REPLACE TABLE src (id INT) USING csv OPTIONS (path 'in');
        INSERT INTO p SELECT count(*) FROM src;
        INSERT INTO p SELECT sum(n) FROM (TABLE a UNION ALL TABLE b)""",
        report,
    )
    assert [result["preview"] for result in results] == [[["2"]], [["2"]], [["3"]], [["4"]]]


def test_the_targets_of_a_set_are_readable_behind_it(run: Run) -> None:
    results = run(
        f"""INSERT INTO a SELECT 10 AS id; CREATE VIEW w AS SELECT count(*) AS n FROM a; {VIEW}
        STATEMENT SET BEGIN INSERT INTO a SELECT id FROM v; INSERT INTO a SELECT id FROM v; END;
        INSERT INTO p TABLE w"""
    )
    assert results[-1]["preview"] == [["5"]]


def test_a_failed_set_leaves_nothing_in_the_cache(run: Run) -> None:
    with pytest.raises(SqlError, match="DIVIDE_BY_ZERO") as caught:
        run(
            f"{VIEW}\nSTATEMENT SET BEGIN INSERT INTO a TABLE v;\n"
            "INSERT INTO b SELECT 1 / (id - id) FROM v; END"
        )
    assert (caught.value.line, caught.value.column) == (5, 22)


def test_an_error_in_a_cached_view_points_at_the_view(run: Run) -> None:
    with pytest.raises(SqlError, match="DIVIDE_BY_ZERO") as caught:
        run(
            "CREATE VIEW v AS\n SELECT 1 / (id - id) AS x FROM src;\n"
            "STATEMENT SET BEGIN INSERT INTO a TABLE v; INSERT INTO b TABLE v; END"
        )
    assert (caught.value.line, caught.value.column) == (4, 9)


@pytest.mark.parametrize(
    "second",
    ["SELECT * FROM parquet.`{path}/a`", "SELECT * FROM IDENTIFIER('parquet.`{path}/a`')"],
)
def test_a_set_does_not_read_its_own_files_in_disguise(run: Run, tmp_path: Path, second: str) -> None:
    run("INSERT INTO a SELECT 1 AS x")
    query = second.format(path=tmp_path)
    run(f"INSERT INTO b {query}")
    with pytest.raises(SqlError, match="which an INSERT of the same set has written"):
        run(f"STATEMENT SET BEGIN INSERT INTO a SELECT 2 AS x; INSERT INTO b {query}; END")


@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE"])
def test_a_cached_view_does_not_hide_that_a_query_reads_its_target(
    run: Run, tmp_path: Path, verb: str
) -> None:
    run("INSERT INTO a SELECT 1 AS x")
    view = f"CREATE VIEW v AS SELECT x FROM parquet.`{tmp_path}/a` WHERE x IN (SELECT 1)"
    with pytest.raises(SqlError, match="refused: the query reads"):
        run(f"{view}; STATEMENT SET BEGIN INSERT INTO b TABLE v; INSERT {verb} a TABLE v; END")
    hidden = f"CREATE VIEW v AS SELECT id AS x FROM src WHERE id IN (SELECT x FROM parquet.`{tmp_path}/a`)"
    with pytest.raises(SqlError, match="refused: the query reads"):
        run(f"{hidden}; STATEMENT SET BEGIN INSERT INTO b TABLE v; INSERT {verb} a TABLE v; END")


def test_no_other_job_reads_the_cached_rows_of_a_set(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    other = spark.newSession()
    seen: list[str] = []

    def report(phase: str) -> None:
        if phase == "INSERT INTO b (2 of 2)":
            frame = other.read.schema("id INT").csv(
                str(tmp_path / "in"), header=True, nullValue="", sep=",", mode="FAILFAST", enforceSchema=False
            )
            seen.append(frame._jdf.queryExecution().optimizedPlan().toString())  # noqa: SLF001 - as above

    run("STATEMENT SET BEGIN INSERT INTO a TABLE src; INSERT INTO b TABLE src; END", report)
    (plan,) = seen
    assert "InMemoryRelation" not in plan


def test_a_shared_view_with_a_shuffle_gives_each_target_few_files(run: Run, tmp_path: Path) -> None:
    run(
        """
        CREATE TABLE raw (id INT, n INT) USING csv OPTIONS (path 'raw');
        INSERT INTO raw SELECT id, id % 7 FROM range(1000);
        CREATE VIEW last AS SELECT id % 100 AS id, max(n) AS n FROM raw GROUP BY id % 100;
        SET spark.sql.shuffle.partitions = 50;
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO a SELECT * FROM last WHERE n > 1;
          INSERT INTO b SELECT * FROM last WHERE n <= 6;
        END;
        """
    )
    assert all(len(list((tmp_path / target).glob("part-*"))) < 5 for target in ("a", "b"))
