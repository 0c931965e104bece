"""Properties of the SQL splitter and compiler that hold for any text; longer with ORCHESTRATOR_CAMPAIGNS."""

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_runner.sql.compiler.compile import Check, check_script
from spark_runner.sql.text.built_ins import values_of, with_values
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, split, tokenize
from tests.golden.cases import Case, read, scripts
from tests.sampling import times

BOUNDED = settings(max_examples=times(60, 5_000), deadline=None, derandomize=True)
_PARTS = (
    *(
        "SELECT ",
        "INSERT INTO t ",
        "CREATE TABLE t ",
        "(a INT, b AS a) ",
        "USING csv ",
        "OPTIONS (path 'x') ",
    ),
    *(
        "CREATE VIEW v AS ",
        "EXECUTE STATEMENT SET BEGIN ",
        "END",
        "ASSERT ",
        "EXPLAIN ",
        "CACHE TABLE t",
        "SET a = 1",
    ),
    *(
        "WITH ('connector' = 'print')",
        "/*+ OPTIONS(header false) */",
        "TUMBLE(a, INTERVAL '1' MINUTE)",
        "FROM t ",
    ),
    *(
        ";",
        ";\n",
        ",",
        "(",
        ")",
        "'",
        '"',
        "`",
        "--",
        "/*",
        "*/",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "\ufeff",
        "\0",
        "\ue002",
    ),
    *(
        "${x}",
        "${",
        "${ds}",
        "${secret:a/b}",
        "'${ds}'",
        "r'",
        "''",
        "1",
        "a",
        "é",
        "😀",
        "-",
        ".",
        "=",
        "$$",
    ),
)
SCRIPTS = st.lists(st.sampled_from(_PARTS), max_size=30).map("".join) | st.text(max_size=40)
CASES = st.sampled_from([case for path in scripts("compiler") for case in read(path)])


def check(text: str, variables: Any = None) -> Check:
    return check_script(text, file="s.sql", base_dir="/base", variables=variables or {"x": "1"})


def is_inside(text: str, error: SqlError) -> bool:
    lines = text.split("\n")
    return 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 1


@BOUNDED
@given(SCRIPTS)
def test_a_script_is_split_without_loss_or_refused_at_a_place_inside(text: str) -> None:
    source = ScriptSource("s.sql", text)
    try:
        tokens, statements = list(tokenize(source)), list(split(source))
    except SqlError as error:
        refused = error
    else:
        _check_pieces(text, tokens, statements)
        return
    assert is_inside(text, refused)


def _check_pieces(text: str, tokens: list[SqlToken], statements: list[list[SqlToken]]) -> None:
    assert "".join(token.text for token in tokens) == text
    ends = [0, *(token.end for token in tokens if token.kind is TokenKind.END), len(text)]
    for statement in statements:  # each lies between two semicolons, as it is in the file
        start, end = statement[0].start, statement[-1].end
        assert "".join(token.text for token in statement) == text[start:end]
        assert sum(start < each <= end for each in ends[1:-1]) == 0


@BOUNDED
@given(SCRIPTS)
def test_errors_and_warnings_are_inside_of_the_script(text: str) -> None:
    found = check(text)
    assert (found.plan is None) == bool(found.errors)
    for error in (*found.errors, *found.warnings):
        assert is_inside(text, error)
        assert error.source_line == text.split("\n")[error.line - 1].rstrip("\r")
        assert str(error)


@BOUNDED
@given(CASES, SCRIPTS)
def test_a_script_behind_another_keeps_the_errors_of_the_first(case: Case, behind: str) -> None:
    alone, both = check(case.text, case.variables), check(f"{case.text};\n{behind}", case.variables)
    if _leaves_nothing_open(case.text) and not any(
        "nothing to do" in error.message for error in alone.errors
    ):
        seen = {(error.line, error.column, error.message) for error in both.errors}
        first = [(error.line, error.column, error.message) for error in alone.errors]
        assert [each for each in first if each not in seen and "has no end" not in each[2]] == []


def _leaves_nothing_open(text: str) -> bool:
    try:
        tokens = list(tokenize(ScriptSource("s.sql", text)))
    except SqlError:
        return False
    return not (tokens and tokens[-1].kind is TokenKind.COMMENT)


@pytest.mark.parametrize("path", scripts("compiler"), ids=lambda path: path.stem)
def test_plans_survive_json_with_all_their_texts(path: Path) -> None:
    for case in read(path):
        _survives(case)


_TEXTS = ("query", "condition", "columns", "statement")  # of a step, as pieces


def _survives(case: Case) -> None:
    plan = check(case.text, case.variables).plan
    if plan is None:
        return
    again = json.loads(json.dumps(plan))
    assert again == plan
    source = ScriptSource("s.sql", again["source"])
    for step in again["steps"]:
        for key in _TEXTS:
            if isinstance(step.get(key), list):
                passage = Passage.from_json(source, step[key], again["values"])
                values = {text: number for number, text in enumerate(again["values"])}
                assert Passage.from_json(source, passage.to_json(values), list(values)) == passage
    with_values(again, values_of("run", 1, datetime(2026, 1, 31, tzinfo=UTC)))


def _tokens(text: str) -> list[SqlToken]:
    try:
        return list(tokenize(ScriptSource("s.sql", text)))
    except SqlError:
        return []


def _facts(check: Check) -> Any:
    """What a script means, without places: kinds, names and options, or the messages."""
    if check.plan is None:
        return [error.message for error in check.errors]
    left_out = {"line", "column", "path_at", *_TEXTS, "computed", "metadata", "expectations"}
    return [
        {key: value for key, value in step.items() if key not in left_out} for step in check.plan["steps"]
    ]


def _texts(check: Check) -> list[str]:
    """The words of all queries, without space and comments."""
    if check.plan is None:
        return []
    source = ScriptSource("s.sql", check.plan["source"])
    passages = [
        Passage.from_json(source, step[key], check.plan["values"])
        for step in check.plan["steps"]
        for key in _TEXTS
        if step.get(key)
    ]
    return [token.text for passage in passages for token in passage.tokens]


@BOUNDED
@given(CASES, st.sampled_from([" ", "\n", "\t", "\r\n", " /* a; ' */", " -- it's; /*\n"]), st.data())
def test_space_and_comments_between_tokens_change_positions_only(
    case: Case, blank: str, data: st.DataObject
) -> None:
    tokens = _tokens(case.text)
    # A key of SET takes no space, a number may go on with a dot, and messages may name lines.
    gaps = [
        token.start
        for before, token in pairwise(tokens)
        if TokenKind.SPACE in {before.kind, token.kind} and before.kind is not TokenKind.COMMENT
    ]
    if not gaps or any(token.is_word("SET", "RESET") for token in tokens) or "line" in case.text:
        return
    place = data.draw(st.sampled_from(gaps))
    before, after = (
        check(case.text, case.variables),
        check(f"{case.text[:place]}{blank}{case.text[place:]}", case.variables),
    )
    if any(" line " in error.message for error in before.errors):
        return
    assert _facts(after) == _facts(before)
    assert _texts(after) == _texts(before)


@BOUNDED
@given(CASES, st.sampled_from([str.lower, str.upper, str.title]))
def test_words_of_sql_in_any_case_compile_alike(case: Case, change: Any) -> None:
    keywords = {
        *(
            "CREATE",
            "TABLE",
            "VIEW",
            "OR",
            "REPLACE",
            "TEMPORARY",
            "USING",
            "OPTIONS",
            "WITH",
            "AS",
            "SELECT",
            "FROM",
        ),
        *(
            "INSERT",
            "INTO",
            "OVERWRITE",
            "BY",
            "NAME",
            "EXECUTE",
            "STATEMENT",
            "BEGIN",
            "END",
            "ASSERT",
            "EXPLAIN",
        ),
        *(
            "CACHE",
            "UNCACHE",
            "LAZY",
            "IF",
            "EXISTS",
            "CONSTRAINT",
            "EXPECT",
            "ON",
            "VIOLATION",
            "FAIL",
            "WATERMARK",
        ),
        *(
            "FOR",
            "PRIMARY",
            "KEY",
            "NOT",
            "ENFORCED",
            "METADATA",
            "GENERATED",
            "ALWAYS",
            "INTERVAL",
            "TUMBLE",
            "HOP",
        ),
        *(
            "VALUES",
            "UNION",
            "JOIN",
            "WHERE",
            "GROUP",
            "EXTENDED",
            "FORMATTED",
            "COST",
            "CODEGEN",
            "SET",
            "RESET",
        ),
    }
    text = "".join(
        change(token.text) if token.kind is TokenKind.WORD and token.text in keywords else token.text
        for token in _tokens(case.text)
    )
    if not text or "table" in case.name:  # there a word may be a name
        return
    before, after = check(case.text, case.variables), check(text, case.variables)
    assert [(error.line, error.column) for error in after.errors] == [
        (error.line, error.column) for error in before.errors
    ]
    if before.plan is not None:
        assert _facts(after) == _facts(before)
