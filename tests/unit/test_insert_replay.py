# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Which INSERT of a script writes rows of a quarantine again, and when a replay would give a wrong result."""

import pytest

from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import Plan
from orchestrator.model.row_replay import chosen, replay_plan
from orchestrator.model.set_aside import SetAside, set_aside_in
from spark_runner.sql.compiler.compile import compile_script

TABLES = (
    "CREATE TABLE src (n INT) USING csv OPTIONS (path '/in');"
    " CREATE TABLE dst (n INT) USING parquet OPTIONS (path '/out');"
    " CREATE TABLE more (n INT) USING parquet OPTIONS (path '/more');"
)
A, B = "INSERT INTO dst SELECT n FROM src;", "INSERT OVERWRITE dst SELECT n + 1 FROM src;"


def compiled(text: str) -> Plan:
    return compile_script(text, file="s.sql", base_dir="/", variables={})


def replay(text: str, *, line: int = 1, before: str = "", rows: int = 2) -> Plan:
    """The plan for rows of an INSERT into `dst`."""
    aside = SetAside(f"dst (line {line})", rows, "/bad")
    first = before or text
    return replay_plan(
        compiled(text), aside, text=text, run_key="r", attempt=None, before=lambda: compiled(first)
    )


def insert_of(plan: Plan) -> tuple[int, bool]:
    """Line and OVERWRITE of the only INSERT."""
    (step,) = (step for step in plan["steps"] if step["kind"] == "insert")
    return step["line"], step["overwrite"]


def test_only_the_insert_and_what_decides_its_casts_are_left() -> None:
    text = (
        f"{TABLES} SET spark.sql.ansi.enabled = true; CREATE VIEW v AS SELECT n FROM src; CACHE TABLE v;"
        " EXECUTE STATEMENT SET BEGIN INSERT INTO more SELECT n FROM v; INSERT INTO dst SELECT n FROM v; END;"
        " SET spark.sql.ansi.enabled = false; SELECT n FROM dst; ASSERT (SELECT count(*) FROM dst) > 0;"
    )
    plan = replay(text)
    assert [step["kind"] for step in plan["steps"]] == ["table", "set", "insert"]
    table, _, insert = plan["steps"]
    assert (table["name"], table["read"], table["written"]) == ("dst", False, True)
    assert insert["replayed"] == {
        "place": "/bad",
        "rows": 2,
        "source": "dst (line 1)",
        "run": "r",
        "pinned": False,
    }
    assert plan["needs_own_jvm"]


@pytest.mark.parametrize("mode", ["available-now", "streaming"])
def test_rows_of_a_stream_are_written_in_mode_batch(mode: str) -> None:
    text = f"SET job.mode = '{mode}'; {TABLES} {A}"
    plan = replay(text)
    assert "mode" not in plan
    assert "trigger_ms" not in plan
    assert insert_of(plan) == (1, False)


def test_the_mode_of_a_table_or_insert_does_not_keep_rows_from_being_added() -> None:
    text = TABLES.replace("'/out'", "'/out', mode 'error'") + A.replace("dst", "dst WITH (mode 'error')")
    plan = replay(text)
    assert [step["options"]["mode"] for step in plan["steps"]] == ["append", "append"]
    assert "reads" not in plan["steps"][-1]


def test_an_insert_is_found_where_a_correction_has_moved_it() -> None:
    before = f"{TABLES}\n{A}\nSELECT n FROM src;\n{A.replace('n FROM', 'n * 2 FROM')}"
    after = f"\n\n{before}"
    assert insert_of(replay(before, line=4)) == (4, False)
    assert insert_of(replay(after, line=4, before=before)) == (6, False)
    assert insert_of(replay(f"{TABLES}\n\n\n{B}", line=2, before=f"{TABLES}\n{A}")) == (4, False)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (f"{TABLES} INSERT INTO more SELECT n FROM src;", "the script has no INSERT into 'dst' any more"),
        (f"{TABLES}\n{A}\n{A}\n{A}", "in the lines 2, 3, and this script in 2, 3, 4"),
        (f"{TABLES}\n{A}\n{A} {A.replace('dst', 'dst WITH (mode {0}append{0})'.format(chr(39)))}", "options"),
        (f"{TABLES}\n{A}\n{A} INSERT INTO more SELECT n FROM dst;", "line 3 reads; run the whole job again"),
        (f"{TABLES}\n{A}\n{A} CREATE VIEW v AS SELECT n FROM dst; INSERT INTO more TABLE v;", "line 3 reads"),
        (f"{TABLES}\n{A}\n{A} INSERT INTO more SELECT n FROM parquet.`/out`;", "line 3 reads"),
        (f"{TABLES}\n{A}\n{A} MERGE INTO c.d.t USING dst ON t.n = dst.n WHEN MATCHED THEN DELETE;", "line 3"),
    ],
)
def test_a_replay_whose_result_would_be_wrong_is_refused(after: str, words: str) -> None:
    before = f"{TABLES}\n{A}\n{A}"
    with pytest.raises(DefinitionError, match=words):
        replay(after, line=3, before=before)


def test_a_later_insert_that_replaces_the_rows_is_named() -> None:
    with pytest.raises(DefinitionError, match="rows the statement of line 3 replaces; run the whole job"):
        replay(f"{TABLES}\n{A}\n{B}", line=2)


def test_two_inserts_of_one_line_share_their_rows() -> None:
    recorded = [{"table": "dst (line 1)", "quarantined": number, "place": "/bad"} for number in (2, 3)]
    (rows,) = set_aside_in({"bad_rows": recorded})
    assert rows.quarantined == 5
    assert insert_of(replay(f"{TABLES} {A} {A}")) == (1, False)


def test_a_target_names_its_only_insert() -> None:
    places = [SetAside(name, 1, "/bad") for name in ("src", "dst (line 1)", "more (line 2)", "more (line 3)")]
    assert chosen(places, "DST", "job") == places[1]
    assert chosen(places, "more (line 3)", "job") == places[3]
    with pytest.raises(DefinitionError, match="no rows of table 'more'"):
        chosen(places, "more", "job")
