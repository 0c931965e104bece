"""Finds which names a query reads, without Spark: enough to keep a script from eating its own input."""

from spark_runner.sql.cursor import Cursor
from spark_runner.sql.literals import name_value
from spark_runner.sql.source import Passage
from spark_runner.sql.tokens import Kind, Token

# Behind these words neither a comma nor a parenthesis stands before a table.
_AFTER_TABLES = tuple(
    ["WITH", "SELECT", "VALUES", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "WINDOW"]
)
_TABLE_WORDS = ("FROM", "JOIN", "TABLE")


def references(query: Passage) -> dict[str, int]:
    """Lower-case names of one part that stand where a table stands, with the offset of the first use.

    Names that the query itself defines (WITH x AS ...) are left out. May name too much (`trim(BOTH FROM x)`),
    so nothing may be concluded from a name that is neither a table nor a view of the script.
    """
    tokens = Cursor(query).tokens
    found: dict[str, int] = {}
    defined: set[str] = set()
    defining: list[tuple[int, str]] = []  # (depth, name): in its own body a name is not yet known
    in_tables = [False]  # per open parenthesis: whether a comma here separates tables
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if token.is_symbol("("):
            in_tables.append(in_tables[-1] and _opens_tables(before))
        elif token.is_symbol(")") and len(in_tables) > 1:
            in_tables.pop()
            if defining and defining[-1][0] == len(in_tables):
                defined.add(defining.pop()[1])
        elif token.is_word(*_TABLE_WORDS):
            in_tables[-1] = not (before and before.is_word("DISTINCT"))  # a IS DISTINCT FROM b
        elif token.is_word(*_AFTER_TABLES):
            in_tables[-1] = False
        elif token.kind in {Kind.WORD, Kind.QUOTED}:
            name = name_value(token.text).lower()
            if _defines(tokens, index):
                defining.append((len(in_tables), name))
            elif name in defined or _qualified(tokens, index):
                continue
            elif in_tables[-1] and _opens_tables(before):
                found.setdefault(name, token.start)
    return found


def _opens_tables(token: Token | None) -> bool:
    return token is not None and (
        token.is_word(*_TABLE_WORDS, "LATERAL", "ONLY") or token.is_symbol(",") or token.is_symbol("(")
    )


def _defines(tokens: list[Token], index: int) -> bool:
    """Whether `name AS (` stands here, behind WITH, RECURSIVE or the end of another definition."""
    before = tokens[index - 1] if index else None
    behind = tokens[index + 1 : index + 3]
    return (
        before is not None
        and (before.is_word("WITH", "RECURSIVE") or before.is_symbol(","))
        and len(behind) == 2  # noqa: PLR2004 - AS and the parenthesis
        and behind[0].is_word("AS")
        and behind[1].is_symbol("(")
    )


def _qualified(tokens: list[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].is_symbol(".")
