# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statement sets: their grammar, the names that their INSERTs share, and what they may not read."""

from typing import Any

import pytest

from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError
from tests import bounded

TABLES = "CREATE TABLE p USING print; CREATE TABLE t USING csv OPTIONS (path 'in');\n"


def plan(text: str, **variables: str) -> dict[str, Any]:
    return compile_script(text, file="s.sql", base_dir="/base", variables=variables)


def places(text: str) -> list[tuple[int, int, str]]:
    """Line, column and the begin of the message of each error."""
    found = check_script(text, file="s.sql", base_dir="/base", variables={})
    return [(error.line, error.column, error.message.split("; ")[0]) for error in found.errors]


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN\n INSERT INTO p TABLE t;\n INSERT INTO p SELECT 1;\nEND;",
        "execute statement set begin;\n INSERT INTO p TABLE t;\n INSERT INTO p SELECT 1;\nend",
        "STATEMENT SET BEGIN\n INSERT INTO p TABLE t;\n INSERT INTO p SELECT 1;\nEND;",
        "BEGIN STATEMENT SET;\n INSERT INTO p TABLE t;\n INSERT INTO p SELECT 1;\nEND;",
    ],
)
def test_a_set_is_inserts_between_two_steps(text: str) -> None:
    steps = plan(f"{TABLES}{text}")["steps"][2:]
    assert [(step["kind"], step["line"], step["column"]) for step in steps] == [
        ("begin_set", 2, 1),
        ("insert", 3, 2),
        ("insert", 4, 2),
        ("end_set", 5, 1),
    ]


INSERT = "INSERT INTO p SELECT 1;"
NO_NAME = "expected the name of a table, found the end of the statement"
UNCLOSED = "this string has no closing quote"
ONLY = "a statement set holds INSERT statements only"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\nEXECUTE STATEMENT SET BEGIN {INSERT}", [(3, 1, "this statement set has no end")]),
        (f"{INSERT}\nEND;", [(3, 1, "this END has no statement set")]),
        ("\n EXECUTE STATEMENT SET BEGIN;\nEND;", [(3, 2, "this statement set has no INSERT")]),
        (f"STATEMENT SET BEGIN {INSERT}\nSELECT 1;\nEND", [(3, 1, ONLY)]),
        ("STATEMENT SET BEGIN\nSELECT 1;\nEND", [(3, 1, f"{ONLY}, found 'SELECT'")]),
        (
            f"STATEMENT SET BEGIN {INSERT}\nCREATE VIEW v AS SELECT 1;\nEND; INSERT INTO p TABLE v",
            [(3, 1, ONLY)],
        ),
        (f"STATEMENT SET BEGIN {INSERT}\nSET spark.a = 1;\nEND", [(3, 1, ONLY)]),
        (
            f"STATEMENT SET BEGIN\n BEGIN STATEMENT SET;\n{INSERT} END;\n{INSERT} END",
            [(3, 2, f"{ONLY}, found 'BEGIN'")],
        ),
        (f"BEGIN STATEMENT SET;\nSTATEMENT SET BEGIN {INSERT} END; {INSERT} END", [(3, 1, ONLY)]),
        ("EXECUTE STATEMENT SET\nINSERT INTO p SELECT 1; END", [(3, 1, "expected BEGIN, found 'INSERT'")]),
        (f"BEGIN STATEMENT SET {INSERT} END", [(2, 20, "missing ';' before INSERT")]),
        (f"STATEMENT SET BEGIN {INSERT} END SET", [(2, 49, "unexpected 'SET'")]),
        ("STATEMENT SET BEGIN INSERT INTO q SELECT 1; END", [(2, 33, "unknown table 'q'")]),
        (
            "STATEMENT SET BEGIN INSERT INTO; END",
            [(2, 32, NO_NAME)],
        ),
        ("EXECUTE IMMEDIATE 'x'", [(2, 1, "'EXECUTE' is not supported here")]),
        (
            f"STATEMENT SET BEGIN {INSERT} INSERT INTO p SELECT '",
            [(2, 66, UNCLOSED)],
        ),
    ],
)
def test_a_mistake_in_a_set_is_one_error_at_its_place(text: str, expected: list[object]) -> None:
    assert places(TABLES + text) == expected


def test_an_open_set_is_reported_in_order_of_the_script() -> None:
    text = f"{TABLES}STATEMENT SET BEGIN {INSERT}\nINSERT INTO q SELECT 1"
    assert [place[:2] for place in places(text)] == [(2, 1), (3, 13)]


def cached(declarations: str, *queries: str) -> list[str]:
    inserts = "".join(f"INSERT INTO p {query};" for query in queries)
    steps = plan(f"{TABLES}{declarations}STATEMENT SET BEGIN {inserts} END")["steps"]
    names: list[str] = next(step["cached"] for step in steps if step["kind"] == "begin_set")
    return names


X = "CREATE VIEW x AS TABLE v;"
V, W = "CREATE VIEW v AS TABLE t;", "CREATE VIEW w AS TABLE v;"


@pytest.mark.parametrize(
    ("declarations", "queries", "expected"),
    [
        ("", ["TABLE t", "TABLE t"], ["t"]),
        ("", ["TABLE t", "SELECT 1"], []),
        ("", ["SELECT * FROM t a JOIN t b USING (x)"], []),  # two reads of one INSERT
        (V, ["TABLE v", "TABLE v"], ["v"]),  # not the table below it
        (V, ["TABLE v", "TABLE t"], ["t"]),
        (V, ["TABLE v", "TABLE v", "TABLE t"], ["t", "v"]),
        (V + W, ["TABLE w", "TABLE v", "SELECT 1"], ["v"]),
        (V + W, ["TABLE w", "TABLE w", "TABLE v"], ["v", "w"]),
        (V + "CREATE VIEW x AS TABLE t;", ["TABLE v", "TABLE x"], ["t"]),
        (V + "CREATE OR REPLACE VIEW v AS TABLE v;", ["TABLE v", "TABLE v"], ["v"]),
        # No query can name the first v.
        (
            V + "CREATE VIEW x AS TABLE v; CREATE OR REPLACE VIEW v AS SELECT 1;",
            ["TABLE x", "TABLE x"],
            ["x"],
        ),
        (
            V + X + "CREATE VIEW y AS TABLE v; CREATE OR REPLACE VIEW v AS SELECT 1;",
            ["TABLE x", "TABLE y"],
            ["t"],
        ),
        ("CREATE TABLE i (a INT) USING inline OPTIONS (rows '[]');", ["TABLE i", "TABLE i"], []),
        # Cached rows have no input files.
        ("", ["SELECT input_file_name() FROM t", "TABLE t"], []),
        ("CREATE VIEW v AS SELECT `input_file_block_start`() FROM t;", ["TABLE v", "TABLE t"], []),
        ("", ["SELECT IDENTIFIER('input_file_name')() FROM t", "TABLE t"], []),
    ],
)
def test_the_topmost_names_that_two_inserts_read_are_cached(
    declarations: str, queries: list[str], expected: list[str]
) -> None:
    assert cached(declarations, *queries) == expected


F = "USING parquet OPTIONS (path"


@pytest.mark.parametrize(
    ("inserts", "column", "message"),
    [
        (
            "INSERT INTO a TABLE t;INSERT INTO b TABLE a;",
            55,
            "reads 'a', and the INSERT of line 3",
        ),
        (
            "INSERT INTO b TABLE a;INSERT OVERWRITE a TABLE t;",
            60,
            "writes to what the INSERT of line 3",
        ),
        (
            "INSERT INTO b TABLE a;INSERT INTO same TABLE t;",
            55,
            "writes to what the INSERT of line 3",
        ),
        (
            "INSERT INTO b TABLE vc;INSERT INTO below TABLE t;",
            56,
            "writes to what the INSERT of line 3",
        ),
    ],
)
def test_no_insert_of_a_set_reads_what_another_one_writes(inserts: str, column: int, message: str) -> None:
    tables = (
        f"{TABLES}CREATE TABLE a {F} 'a'); CREATE TABLE b {F} 'b'); CREATE TABLE same {F} './a');"
        f"CREATE TABLE c {F} 'c'); CREATE TABLE below {F} 'c/d'); CREATE VIEW vc AS TABLE c;\n"
    )
    (error,) = places(f"{tables}STATEMENT SET BEGIN {inserts} END")
    assert error[:2] == (3, column)
    assert f"refused: this INSERT {message}" in error[2]
    plan(f"{tables}{inserts}")  # one after the other they may
    both = inserts.replace(";I", "; END; STATEMENT SET BEGIN I")
    plan(f"{tables}STATEMENT SET BEGIN {both} END")


def test_a_shared_jvm_runs_no_set_that_reaches_java() -> None:
    text = f"{TABLES}STATEMENT SET BEGIN INSERT INTO p SELECT reflect('a', 'b'); END"
    made = plan(text)
    assert made["needs_own_jvm"] is True
    with pytest.raises(SqlError, match="may not run in a JVM that other jobs use"):
        check_plan({**made, "needs_own_jvm": False}, shares_jvm=True)


def test_tables_of_a_set_are_used() -> None:
    text = f"{TABLES}STATEMENT SET BEGIN INSERT INTO p TABLE t; END"
    assert check_script(text, file="s.sql", base_dir="/base", variables={}).warnings == ()


def views_over_views() -> str:
    """Views that name all views before them, with a set of two INSERTs for each."""
    names = [f"v{n}" for n in range(90)]
    views = "".join(
        f"CREATE VIEW {name} AS SELECT * FROM {', '.join(names[:number]) or 'range(1)'};"
        for number, name in enumerate(names)
    )
    wide = ", ".join(names)
    last = "".join(f"CREATE VIEW w{n} AS SELECT * FROM {wide};" for n in range(200))
    every = ", ".join(f"w{n}" for n in range(200))
    sets = "STATEMENT SET BEGIN INSERT INTO p TABLE top;INSERT INTO p TABLE top;END;" * 230
    return f"CREATE TABLE p USING print;{views}{last}CREATE VIEW top AS SELECT * FROM {every};{sets}"


HOSTILE = {
    "sets over many views": views_over_views(),
    "sets within sets": "CREATE TABLE p USING print;" + "STATEMENT SET BEGIN INSERT INTO p SELECT 1;" * 490,
    "a set of many tables": (
        "".join(f"CREATE TABLE t{n} USING csv OPTIONS (path 'd{n}');" for n in range(330))
        + f"CREATE VIEW v AS SELECT * FROM {', '.join(f't{n}' for n in range(165))};BEGIN STATEMENT SET;"
        + "".join(f"INSERT INTO t{n} TABLE v;" for n in range(165, 330)) * 2
        + "END"
    ),
}


@pytest.mark.parametrize("weapon", HOSTILE)
def test_hostile_sets_take_little_time_and_memory(weapon: str) -> None:
    found = bounded.outcome(lambda: repr(places(HOSTILE[weapon])).encode())
    assert isinstance(found, bytes)
