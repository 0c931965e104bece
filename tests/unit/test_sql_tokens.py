import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import TokenKind, meaningful, split, tokenize

SQLISH = st.lists(
    st.sampled_from(
        [
            *"ab1.,;()'\"`\\$+-/*\n\t é😀",
            "--",
            "/*",
            "*/",
            "/*+",
            "''",
            "${x}",
            "${",
            "r'",
            "SELECT ",
            "\\'",
            "\r\n",
        ]
    ),
    max_size=40,
).map("".join)


def statements(text: str) -> list[str]:
    source = ScriptSource("s.sql", text)
    return ["".join(token.text for token in tokens) for tokens in split(source)]


@given(SQLISH)
def test_tokens_never_lose_a_character_and_know_where_they_are(text: str) -> None:
    try:
        tokens = list(tokenize(ScriptSource("s.sql", text)))
    except SqlError:  # the tests below check the mistakes
        return
    assert "".join(token.text for token in tokens) == text
    assert all(text[token.start : token.end] == token.text for token in tokens)


@given(SQLISH)
def test_statements_hold_every_meaningful_token_but_the_semicolons(text: str) -> None:
    source = ScriptSource("s.sql", text)
    try:
        tokens = list(tokenize(source))
    except SqlError:
        return
    kept = [token for statement in split(source) for token in statement if meaningful(token)]
    assert kept == [token for token in tokens if meaningful(token) and token.kind is not TokenKind.END]


@given(st.text(alphabet="ab \n😀\r", max_size=60), st.integers(0, 60))
def test_a_position_leads_back_to_its_offset(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    source = ScriptSource("s.sql", text)
    line, column = source.position(offset)
    assert source.offset(line, column) == offset
    assert text.split("\n")[line - 1][: column - 1] == text[:offset].rpartition("\n")[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a; b", ["a", "b"]),
        ("a; b;", ["a", "b"]),
        (";;  ;", []),
        ("\ufeffa;", ["a"]),
        ("", []),
        ("-- only a comment; really\n", []),
        ("a -- x; y\n; b", ["a", "b"]),
        ("a -- no end", ["a"]),
        ("a -- goes on \\\n ; here\n; b", ["a", "b"]),
        ("a /* ; /* ; */ ; */ b; c", ["a /* ; /* ; */ ; */ b", "c"]),
        ("/* first */ a; /* last */", ["a"]),
        ("a /*+ HINT(b) */ c", ["a /*+ HINT(b) */ c"]),
        ("a ';' b; c", ["a ';' b", "c"]),
        ("a 'it''s; ' b; c", ["a 'it''s; ' b", "c"]),
        (r"a 'it\'s; ' b; c", [r"a 'it\'s; ' b", "c"]),
        (r"a r'\'; b", [r"a r'\'", "b"]),
        ('a ";" b; c', ['a ";" b', "c"]),
        ("a `;``;` b; c", ["a `;``;` b", "c"]),
        ("a '--' b; c", ["a '--' b", "c"]),
        ("a '/*' b; c '*/'", ["a '/*' b", "c '*/'"]),
        ("a '\n;\n' b", ["a '\n;\n' b"]),
    ],
)
def test_a_semicolon_ends_a_statement_only_outside_of_quotes_and_comments(
    text: str, expected: list[str]
) -> None:
    assert statements(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a;\n  'open", 2, 3, "this string has no closing quote"),
        ('a "open;', 1, 3, "this string has no closing quote"),
        ("a `open", 1, 3, "this name has no closing back-tick"),
        ("a;\n\n /* open /* closed */", 3, 2, "this comment has no closing '*/'"),
        ("a ${x", 1, 3, "this '${' has no closing '}'"),
        ("a ${x\n}", 1, 3, "this '${' has no closing '}'"),
        ("😀 'x", 1, 3, "this string has no closing quote"),
    ],
)
def test_an_unclosed_text_is_reported_at_its_opening(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        statements(text)
    assert (caught.value.line, caught.value.column, caught.value.message) == (line, column, message)


def test_the_digits_behind_a_dot_have_no_dot_of_their_own() -> None:
    kinds = {token.text: token.kind for token in tokenize(ScriptSource("s.sql", "x.1.bd 1.bd"))}
    assert kinds["bd"] is TokenKind.WORD
    assert kinds["1.bd"] is TokenKind.NUMBER
