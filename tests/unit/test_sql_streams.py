# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""What a script in mode available-now may do, and what a change of it means for its checkpoint."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.handlers.checkpoints import Checkpoints
from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.execution.fingerprints import fingerprint
from spark_runner.sql.text.full_name import FullName, KnownNames, full_name_of

MODE = "SET job.mode = 'available-now';\n"
TABLES = """CREATE TABLE s (a INT) USING json OPTIONS (path '/in');
CREATE TABLE t USING json OPTIONS (path '/out');
"""


def plan(text: str) -> dict[str, Any]:
    return compile_script(text, file="s.sql", base_dir="/base", variables={})


def errors(text: str) -> list[tuple[int, int, str]]:
    found = check_script(text, file="s.sql", base_dir="/base", variables={})
    return [(each.line, each.column, each.message) for each in found.errors]


def test_tables_of_files_stream_in_a_jvm_of_their_own() -> None:
    found = plan(MODE + TABLES + "INSERT INTO t SELECT * FROM s")
    assert (found["mode"], found["needs_own_jvm"], found["version"]) == ("available-now", True, 3)
    assert found["steps"][0]["stream"]


def test_a_batch_plan_is_as_before() -> None:
    found = plan(TABLES + "INSERT INTO t SELECT * FROM s")
    assert "mode" not in found
    assert found["version"] == 2
    assert not {"stream", "watermark"} & found["steps"][0].keys()
    assert not {"streaming", "max_files_per_trigger"} & found["steps"][0]["options"].keys()


def test_the_old_key_of_the_mode_means_the_same() -> None:
    assert plan("SET execution.runtime-mode = available-now;" + TABLES + "INSERT INTO t SELECT * FROM s")[
        "mode"
    ] == ("available-now")


@pytest.mark.parametrize(
    ("statement", "line", "message"),
    [
        ("INSERT OVERWRITE t SELECT * FROM s", 4, "INSERT OVERWRITE replaces all rows"),
        ("INSERT INTO t SELECT 1", 4, "this INSERT reads no table that streams"),
        ("SELECT * FROM s", 4, "a script in mode 'available-now' has SET, CREATE and INSERT alone"),
        ("ASSERT (SELECT count(*) FROM s) > 0", 4, "a script in mode 'available-now' has SET, CREATE"),
        ("CACHE TABLE s; INSERT INTO t SELECT * FROM s", 4, "a script in mode 'available-now' has SET"),
        ("INSERT INTO s SELECT * FROM s", 4, "refused"),
        ("INSERT INTO t SELECT * FROM s; INSERT INTO s SELECT * FROM s AS o", 4, "refused"),
        (
            "CREATE TABLE u USING json OPTIONS (path '/in2'); INSERT INTO t SELECT * FROM u",
            4,
            "'u' needs",
        ),
        (
            (
                "CREATE TABLE u (a INT) USING json OPTIONS (path '/out'); INSERT INTO t SELECT * FROM s;"
                " INSERT INTO u SELECT * FROM s; CREATE TABLE v USING json OPTIONS (path '/v');"
                " INSERT INTO v SELECT * FROM u"
            ),
            4,
            "is read as a stream and written by the same script",
        ),
        ("SET job.mode = batch; INSERT INTO t SELECT * FROM s", 4, "a script has one mode"),
        (
            (
                "SET job.quarantine = u; CREATE TABLE u (reason STRING) USING json OPTIONS (path '/u');"
                " INSERT INTO t SELECT a FROM s JOIN u ON true"
            ),
            4,
            "takes the rows that do not fit, and in mode 'available-now' no INSERT",
        ),
        (
            (
                "CREATE TABLE u (a TIMESTAMP, WATERMARK FOR a AS now()) USING json OPTIONS (path '/u');"
                " INSERT INTO t SELECT * FROM u"
            ),
            4,
            "a watermark is a - INTERVAL '5' SECOND",
        ),
        (
            "INSERT INTO t SELECT * FROM s WITH ('streaming' = 'false')",
            4,
            "option 'streaming' decides what table 's' is",
        ),
    ],
)
def test_what_cannot_stream_is_an_error_at_its_place(statement: str, line: int, message: str) -> None:
    found = errors(MODE + TABLES + statement)
    assert found
    assert found[0][0] == line
    assert message in found[0][2]


def test_names_that_may_mean_one_table_are_found() -> None:
    known = KnownNames()
    for text in ("a.b.t", "b.u", "x.v"):
        known.add(name(text))
    same = {
        text: str(known.same(name(text)) or "") for text in ("b.t", "c.t", "z.b.u", "x.v", "a.b.t", "b.v")
    }
    assert same == {"b.t": "a.b.t", "c.t": "", "z.b.u": "b.u", "x.v": "x.v", "a.b.t": "a.b.t", "b.v": ""}


def name(text: str) -> FullName:
    found = full_name_of(text)
    assert found is not None
    return found


def test_static_tables_are_not_streams() -> None:
    found = plan(
        MODE
        + TABLES
        + "CREATE TABLE u (a INT) USING json OPTIONS (path '/u', streaming 'false');"
        + "CREATE TABLE v (a INT) USING inline OPTIONS (rows '[[1]]');"
        + "INSERT INTO t SELECT s.a FROM s JOIN u USING (a) JOIN v USING (a)"
    )
    assert [step["name"] for step in found["steps"] if step.get("stream")] == ["s", "t"]


def test_a_watermark_becomes_a_column_and_a_delay() -> None:
    found = plan(
        MODE + "CREATE TABLE s (ts TIMESTAMP, WATERMARK FOR ts AS `ts` - INTERVAL '1'  MINUTE) USING json"
        " OPTIONS (path '/in'); CREATE TABLE t USING json OPTIONS (path '/out');"
        " INSERT INTO t SELECT * FROM s"
    )
    assert found["steps"][0]["watermark"] == {"column": "ts", "delay": "INTERVAL '1' MINUTE"}


def marks(text: str) -> str:
    found = json.loads(json.dumps(plan(MODE + text)))
    return fingerprint(found, found["steps"])


def test_a_fingerprint_changes_with_what_a_query_computes_alone() -> None:
    insert = "INSERT INTO t SELECT a FROM s"
    own = marks(TABLES + insert)
    assert own == marks("-- words\n" + TABLES + "INSERT INTO t\n  SELECT a /* all */ FROM   s;")
    assert own == marks(TABLES.replace("'/in'", "'/in', max_files_per_trigger 5") + insert)
    assert own != marks(TABLES + "INSERT INTO t SELECT a + 1 FROM s")
    assert own != marks(TABLES.replace("'/in'", "'/other'") + insert)
    assert own != marks(TABLES.replace("INT", "BIGINT") + insert)


def test_a_fingerprint_depends_on_no_other_insert_and_its_options() -> None:
    def last(text: str) -> str:
        found = json.loads(json.dumps(plan(MODE + text)))
        inserts = [step for step in found["steps"] if step["kind"] == "insert"]
        return fingerprint(
            found, [step for step in found["steps"] if step["kind"] != "insert" or step is inserts[-1]]
        )

    with_options = "INSERT INTO t SELECT a FROM s /*+ OPTIONS('max_files_per_trigger' = '5') */"
    plain = "INSERT INTO t SELECT a FROM s"
    assert last(f"{TABLES}{plain}") == last(f"{TABLES}{with_options};{plain}")
    assert last(f"{TABLES}{with_options}") == last(f"{TABLES}{with_options};{with_options}")
    assert last(f"{TABLES}{plain}") != last(f"{TABLES}{with_options}")


@pytest.mark.parametrize(
    ("query", "column", "message"),
    [
        ("SELECT a FROM s ORDER BY a", 31, "rows have no order: remove ORDER BY"),
        ("SELECT a FROM s SORT BY a", 31, "rows have no order: remove SORT BY"),
        ("SELECT a FROM s GROUP BY a", 31, "GROUP BY in mode 'available-now' needs WATERMARK FOR in 's'"),
        ("SELECT DISTINCT a FROM s", 22, "DISTINCT in mode 'available-now' needs WATERMARK FOR in 's'"),
    ],
)
def test_clauses_that_no_stream_has_are_found_without_spark(query: str, column: int, message: str) -> None:
    ((_, found, words),) = errors(f"{MODE}{TABLES}INSERT INTO t {query}")
    assert (found, message in words) == (column, True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM s JOIN (SELECT DISTINCT a FROM u ORDER BY a) USING (a)",
        "SELECT a FROM s UNION ALL SELECT a FROM u GROUP BY a",
        "SELECT count(*) OVER (ORDER BY a) FROM s",
        "SELECT count(DISTINCT a) FROM w GROUP BY window(ts, '1 hour')",
    ],
)
def test_clauses_of_other_tables_and_with_a_watermark_are_accepted(query: str) -> None:
    more = (
        "CREATE TABLE u (a INT) USING json OPTIONS (path '/u', streaming 'false');"
        "CREATE TABLE w (a INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) USING json OPTIONS (path '/w');"
    )
    assert errors(f"{MODE}{TABLES}{more}INSERT INTO t {query}") == []


@pytest.mark.parametrize("place", ["'/in'", "'/out'"])
def test_a_place_that_each_run_has_anew_is_refused(place: str) -> None:
    text = TABLES.replace(place, f"{place[:-1]}/${{ds}}'")
    ((line, _, message),) = errors(MODE + text + "INSERT INTO t SELECT a FROM s")
    assert (line, "has a built-in variable" in message) == (4, True)


def test_a_job_has_a_folder_of_its_own_only_where_it_outlives_the_driver() -> None:
    own = f"file:{Path('/state/checkpoints')}"
    assert Checkpoints({}, own).of_job("a/b", "p", "local") == f"{own}/a%2Fb"
    assert Checkpoints({}, own).of_job("a", "p", "yarn") == ""


def test_a_pool_has_its_own_folder_or_that_of_all_pools() -> None:
    places = Checkpoints({"*": "hdfs://n/c/", "etl": "s3a://b/c"}, "file:/own")
    assert places.of_job("a", "p", "yarn") == "hdfs://n/c/a"
    assert places.of_job("a", "etl.low", "local") == "s3a://b/c/a", "a low lane is that of its pool"
    assert places.places() == {"hdfs://n/c": "*", "s3a://b/c": "etl", "file:/own": "*"}
