# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Hostile scripts: each compiles or is refused with a position, within little time and memory."""

import json
from collections.abc import Iterator, Mapping

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.text import passage, tokens, variables
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import (
    MAX_CATALOG_TABLES,
    MAX_EXPANDED_CHARACTERS,
    MAX_NESTING,
    MAX_PATH_CHARACTERS,
    MAX_SCRIPT_CHARACTERS,
    MAX_STATEMENTS,
    MAX_VIEW_DEPTH,
    ScriptSource,
)
from spark_runner.sql.text.tokens import SqlToken, tokenize
from tests import bounded

SHOWN = "CREATE TABLE shown USING print; "
SIZE = MAX_SCRIPT_CHARACTERS - 1_000


def filled(piece: str) -> str:
    """As many copies of a piece as the length limit of a script allows."""
    return piece * (SIZE // len(piece))


def compiled(text: str, values: Mapping[str, str] | None = None) -> object:
    """The plan as JSON, or the error."""
    return bounded.outcome(
        lambda: json.dumps(
            compile_script(text, file="s.sql", base_dir="/base", variables=values or {}),
            ensure_ascii=False,
        ).encode()
    )


def views(levels: int) -> str:
    """Two views per level, each a join of both views of the level below."""
    pairs = "".join(
        f"CREATE VIEW a{n} AS SELECT * FROM a{n - 1} JOIN b{n - 1};"
        f"CREATE VIEW b{n} AS SELECT * FROM a{n - 1} JOIN b{n - 1};"
        for n in range(1, levels + 1)
    )
    first = "CREATE VIEW a0 AS SELECT * FROM t; CREATE VIEW b0 AS SELECT * FROM t;"
    return f"CREATE TABLE t USING csv OPTIONS (path 'x'); {first}{pairs}{SHOWN}INSERT INTO shown SELECT 1"


MANY = MAX_STATEMENTS // 2
REFUSED = {
    "views that double with each level": (views(26), {}, "reads tables 16,384 times through its views"),
    "a view of a view of a view": (
        "CREATE TABLE t USING csv OPTIONS (path 'x'); CREATE VIEW v0 AS SELECT * FROM t;"
        + "".join(f"CREATE VIEW v{n + 1} AS SELECT * FROM v{n};" for n in range(MAX_VIEW_DEPTH + 1)),
        {},
        f"more than {MAX_VIEW_DEPTH} deep",
    ),
    "a name of many parts in a query": (
        f"SELECT * FROM {filled('catalog.')}b",
        {},
        "the name of a table has up to 8 parts and 512 characters",
    ),
    "a value repeated": (
        f"{SHOWN}INSERT INTO shown SELECT {filled('${a} ')}",
        {"a": "x" * 100_000},
        f"more than {MAX_EXPANDED_CHARACTERS:,} characters",
    ),
    "a value repeated in quotes": (
        f"{SHOWN}INSERT INTO shown SELECT '{filled('${a}')}'",
        {"a": "'" * 100_000},
        f"more than {MAX_EXPANDED_CHARACTERS:,} characters",
    ),
    "a value repeated in statements": (
        "SET spark.a = '${a}';" * 100,
        {"a": "x" * 100_000},
        f"more than {MAX_EXPANDED_CHARACTERS:,} characters",
    ),
    "open parentheses": (
        f"{SHOWN}INSERT INTO shown SELECT {'(' * (SIZE // 2)}1{')' * (SIZE // 2)}",
        {},
        f"more than {MAX_NESTING} parentheses are open here",
    ),
    "a key of all the text": (f"SET table.{filled('a.')}b = 1", {}, "unknown setting 'table.a"),
    "a value of all the text": (f"SET job.mode = {filled('b')}", {}, "job.mode cannot be 'bbb"),
    "a key to reset of all the text": (f"RESET pipeline.{filled('x.')}y", {}, "unknown setting"),
    "statements": (filled("SET a=1;"), {}, f"statements, the limit is {MAX_STATEMENTS:,}"),
    "a text": ("-" * (MAX_SCRIPT_CHARACTERS + 1), {}, f"the limit is {MAX_SCRIPT_CHARACTERS:,}"),
    "a path": (
        f"CREATE TABLE t USING csv OPTIONS (path '{filled('a/')}')",
        {},
        f"the limit is {MAX_PATH_CHARACTERS:,}",
    ),
    "an unknown name of all the text": (
        "".join(f"CREATE TABLE table_{n} USING print;" for n in range(900))
        + f"INSERT INTO {'table_' * 50_000} SELECT 1",
        {},
        "characters ...]",
    ),
    "a target of many parts": (f"INSERT INTO {filled('a.')}b SELECT 1", {}, "has up to 8 parts"),
    "a target of many characters": (f"INSERT INTO a.{'b' * 600} SELECT 1", {}, "and 512 characters"),
    "tables of catalogs": (
        f"SELECT * FROM {','.join(f'a.t{n}' for n in range(30_000))}",
        {},
        f"more than {MAX_CATALOG_TABLES} tables of catalogs",
    ),
    "an unknown variable among many": (
        "SET spark.a = '${v}'",
        {f"variable_{n}": "1" for n in range(30_000)},
        "unknown variable 'v'",
    ),
    "an option of many parts": (
        f"CREATE TABLE t USING csv OPTIONS ({filled('a.')}b 1)",
        {},
        "unknown option",
    ),
    "a name of a module of all the text": (
        f"CREATE TEMPORARY FUNCTION f AS '{filled('a.')}b'",
        {},
        "is no function of Python",
    ),
    "calls of unknown functions": (
        f"{SHOWN}INSERT INTO shown SELECT " + ", ".join(f"f{n}(1)" for n in range(30_000)),
        {},
        "the script calls more than 500 functions",
    ),
    "deep rows": (
        f"CREATE TABLE t (a INT) USING inline OPTIONS (rows '{filled('[')}')",
        {},
        "nested too deeply",
    ),
    "a number of rows": (
        f"CREATE TABLE t (a INT) USING inline OPTIONS (rows '[[{filled('9')}]]')",
        {},
        "not JSON",
    ),
    "comments in comments": (filled("/* "), {}, "this comment has no closing"),
    "an escape that is no character": (
        "CREATE TABLE t USING csv OPTIONS (path '\\UFFFFFFFF')",
        {},
        "\\UFFFFFFFF, which is no character",
    ),
    "half of a surrogate pair": ("SET spark.a = 'x\\ud800'", {}, "half of a surrogate pair"),
    "NUL in a path": ("CREATE TABLE t USING csv OPTIONS (path 'a\\0b')", {}, "cannot hold the character NUL"),
}
COMPILED = {
    "names of tables of catalogs": (f"SELECT * FROM a.b JOIN {filled('a.b JOIN ')}a.b", {}),
    "tables of catalogs, and DELETEs": (
        "".join(f"SELECT * FROM a.t{n};" for n in range(MAX_CATALOG_TABLES - 1))
        + "".join(f"DELETE FROM a.u{n} WHERE true;" for n in range(MAX_CATALOG_TABLES)),
        {},
    ),
    "views over tables of catalogs": (
        "CREATE VIEW v0 AS SELECT * FROM "
        + ",".join(f"a.t{n}" for n in range(MAX_CATALOG_TABLES))
        + ";"
        + "".join(f"CREATE VIEW v{n + 1} AS SELECT * FROM v{n % 90};" for n in range(MANY))
        + "SELECT * FROM v1",
        {},
    ),
    "a MERGE of many branches": (
        f"MERGE INTO a.t USING b.s ON {filled('a = 1 AND ')[:300_000]} true WHEN MATCHED THEN DELETE",
        {},
    ),
    "variables that never close": (f"{SHOWN}INSERT INTO shown SELECT '{filled('${')}'", {}),
    "variables that never close in a name": (f"{SHOWN}INSERT INTO shown SELECT `{filled('${')}`", {}),
    "short values": (f"{SHOWN}INSERT INTO shown SELECT '{filled('${a}')}'", {"a": "v"}),
    "tables of which each is overwritten": (
        "".join(f"CREATE TABLE t{n} USING csv OPTIONS (path 'd{n}');" for n in range(MANY))
        + "".join(f"INSERT OVERWRITE t{n} SELECT 1;" for n in range(MANY)),
        {},
    ),
    "columns": (
        "CREATE TABLE t (" + ",".join(f"c{n} INT" for n in range(25_000)) + ") USING csv OPTIONS (path 'x');"
        "INSERT INTO t SELECT 1",
        {},
    ),
    "calls that are rewritten, with values": (
        f"{SHOWN}INSERT INTO shown SELECT {'PROCTIME(), ${a}, ' * 20_000} 1",
        {"a": "1"},
    ),
    "windows": (
        SHOWN + "INSERT INTO shown SELECT " + filled("TUMBLE_START(a, INTERVAL '1' DAY), ") + "1",
        {},
    ),
    "columns that are not stored": (
        "CREATE TABLE t (a INT," + ",".join(f"c{n} AS ${{a}} + a" for n in range(15_000)) + ")"
        " USING csv OPTIONS (path 'x'); INSERT INTO t SELECT 1",
        {"a": "1"},
    ),
    "expectations": (
        "CREATE TABLE t (a INT,"
        + ",".join(f"CONSTRAINT c{n} EXPECT (a > ${{a}}) ON VIOLATION FAIL" for n in range(7_000))
        + ") USING csv OPTIONS (path 'x'); INSERT INTO t SELECT 1",
        {"a": "1"},
    ),
    "columns of a key": (
        "CREATE TABLE t ("
        + ",".join(f"c{n} INT" for n in range(15_000))
        + ",PRIMARY KEY ("
        + ",".join(f"c{n}" for n in range(15_000))
        + ") NOT ENFORCED) USING csv OPTIONS (path 'x');"
        + f"{SHOWN}INSERT INTO shown SELECT * FROM t",
        {},
    ),
    "settings of streaming engines": (
        "SET parallelism.default = 2; RESET;" * (MANY - 1) + f"{SHOWN}INSERT INTO shown SELECT 1",
        {},
    ),
    "functions": (
        SHOWN
        + "".join(f"CREATE TEMPORARY FUNCTION f{n} AS 'm{n}.f' RETURNS ARRAY<INT>;" for n in range(990))
        + f"INSERT INTO shown SELECT {', '.join(f'f{n % 990}(1)' for n in range(30_000))}",
        {},
    ),
    "calls of an unknown function": (f"{SHOWN}INSERT INTO shown SELECT {filled('f(a_column), ')} 1", {}),
    "doubled quotes": (f"{SHOWN}INSERT INTO shown SELECT " + filled("''"), {}),
    "closed comments in comments": (f"{'/*' * 90_000}{'*/' * 90_000}{SHOWN}INSERT INTO shown SELECT 1", {}),
    "semicolons": (f"{filled(';')}{SHOWN}INSERT INTO shown SELECT 1", {}),
    "a pair of surrogates": ("SET spark.a = '\\ud83d\\ude00';" + SHOWN + "INSERT INTO shown SELECT 1", {}),
}


@pytest.mark.parametrize("weapon", REFUSED)
def test_a_script_over_a_limit_is_refused_with_its_position(weapon: str) -> None:
    text, values, words = REFUSED[weapon]
    found = compiled(text, values)
    assert isinstance(found, SqlError)
    assert words in str(found)
    assert str(found).startswith(f"s.sql:{found.line}:{found.column}: ")
    assert len(str(found)) < 5_000


@pytest.mark.parametrize("weapon", COMPILED)
def test_a_long_script_compiles_in_little_time_and_memory(weapon: str) -> None:
    found = compiled(*COMPILED[weapon])
    assert isinstance(found, bytes)


@pytest.mark.parametrize(("last", "times"), [("b", 1), ("${b}", 2)], ids=["plain", "with a value"])
def test_a_statement_is_cut_into_tokens_once_and_again_with_its_values(
    monkeypatch: pytest.MonkeyPatch, last: str, times: int
) -> None:
    script = f"{SHOWN}INSERT INTO shown SELECT {filled('a, ')[:90_000]}{last}"
    cut = 0

    def counted(source: ScriptSource) -> Iterator[SqlToken]:
        nonlocal cut
        for token in tokenize(source):
            cut += 1
            yield token

    for module in (passage, tokens, variables):
        monkeypatch.setattr(module, "tokenize", counted)
    compile_script(script, file="s.sql", base_dir="/base", variables={"b": "1"})
    whole = len(list(tokenize(ScriptSource("s.sql", script))))
    assert cut <= times * whole
