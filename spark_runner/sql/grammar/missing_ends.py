"""Finds where a script lacks a `;`: a statement that begins within the one before it.

Spark would read both as one statement, and name another place. Most words of SQL may be names, as in
`SELECT id show FROM t create`: so only what cannot go on a statement is taken for the beginning of another.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_runner.sql.text.cursor import CLOSING
from spark_runner.sql.text.tokens import SqlToken, TokenKind, meaningful

_START = re.compile(
    r"""
      CREATE\ (OR\ REPLACE\ )?(TEMP(ORARY)?\ )?(TABLE|VIEW|FUNCTION|NAMESPACE|DATABASE|SCHEMA)\ @
    | (INSERT\ (INTO|OVERWRITE)|MERGE\ INTO)\ @
    | (EXECUTE|BEGIN)\ STATEMENT\ SET\b | STATEMENT\ SET\ BEGIN\b
    | (CACHE(\ LAZY)?|UNCACHE|ANALYZE|REFRESH|ALTER|DROP|TRUNCATE)\ TABLE\ @ | DROP\ VIEW\ @
    | EXPLAIN\ (INSERT|SELECT|WITH|VALUES|FROM|EXTENDED|FORMATTED|COST|CODEGEN)\b
    | SHOW\ (CATALOGS|NAMESPACES|DATABASES|SCHEMAS|TABLES|COLUMNS)\b
    | SET\ (@|')(\ [.-]\ @)*\ =
    """.replace("@", r"[\w$`]+"),
    re.VERBOSE,
)
"""The beginnings that are no end of another statement, in the spelling of `_spelled`."""

_ROWS = re.compile(r"(SELECT|VALUES) (?!AS |FROM |JOIN |ON |WHERE )[\w$`'*(/-]|WITH [\w$`]+ AS \(")
_ON_LINES = re.compile(
    r"(USE|DESCRIBE) (?!ON |JOIN |WHERE |GROUP |ORDER |LEFT |INNER )[\w$`]+|RESET \w+ \."
    r"|ASSERT (?!ON |JOIN |WHERE |GROUP |ORDER |LEFT |INNER )(?!\( [\w$`]+ [,)])[\w$`(]"
)
"""Beginnings that may also be the alias of a table, in the same spelling: at the start of a line alone."""

_WORDS = """
ALTER ANALYZE ASSERT BEGIN CACHE CREATE DESCRIBE DROP EXECUTE EXPLAIN INSERT MERGE REFRESH RESET SELECT SET
SHOW STATEMENT TRUNCATE UNCACHE USE VALUES WITH
"""
_FIRST = frozenset(_WORDS.split())

_OPEN = """
ALL AND AS BEGIN BETWEEN BY CASE CROSS DISTINCT ELSE EXCEPT EXECUTE EXPLAIN FROM FULL GROUP HAVING IN INNER
INTERSECT INTO IS JOIN LEFT LIKE LIMIT MINUS NOT ON OR ORDER OVER RIGHT SELECT SETMINUS SHOW THEN UNION UPDATE
USING VALUES WHEN WHERE WITH
"""
_GOES_ON = frozenset(_OPEN.split())
"""Words behind which no statement ends."""

_HEAD = re.compile(
    r"EXPLAIN( EXTENDED| FORMATTED| COST| CODEGEN)?|(EXECUTE )?STATEMENT SET( BEGIN)?|BEGIN STATEMENT SET"
)
_WITHOUT_QUERY = re.compile(
    r"(ASSERT|CACHE|DELETE|DESCRIBE|END|MERGE|REFRESH|RESET|SET|SHOW|UNCACHE|USE) "
    r"|CREATE (OR REPLACE )?(TEMP(ORARY)? )?FUNCTION "
    r"|CREATE (OR REPLACE )?(TEMP(ORARY)? )?TABLE (IF NOT EXISTS )?(?!IF NOT EXISTS)[\w$`]+ (?!\.)"
)
"""The beginnings of statements that have queries in parentheses alone; a table of a catalog may have one."""

_HAS_OWN_SET = re.compile(r"(ALTER|MERGE|UPDATE) ")
_SPELLED = {TokenKind.STRING: "'", TokenKind.QUOTED: "`", TokenKind.VARIABLE: "$"}
_CLOSING = frozenset(CLOSING.values())
_LONGEST = 40  # tokens; a key has two for each of its parts


def statements_in(tokens: Sequence[SqlToken]) -> list[list[SqlToken]]:
    """The statements in the tokens up to a `;`: one, or more where a `;` is missing between them."""
    solid = [token for token in tokens if meaningful(token)]
    starts = list(_starts(solid, tokens))
    if not starts:
        return [list(tokens)]
    begins = [solid[0].start, *(solid[start].start for start in starts)]
    ends = [*(solid[start - 1].end for start in starts), solid[-1].end]
    return [
        [token for token in tokens if begin <= token.start < end]
        for begin, end in zip(begins, ends, strict=True)
    ]


def missing_before_end(tokens: Sequence[SqlToken]) -> int | None:
    """The offset at which an INSERT lacks the `;` before the END of its set; None if it has no such END."""
    if len(tokens) < 2 or not tokens[-1].is_word("END"):  # noqa: PLR2004 - END and what it follows
        return None
    opened = sum(token.is_word("CASE") - token.is_word("END") for token in tokens)
    return tokens[-2].end if opened < 0 and _may_end(tokens[-2]) else None


def _starts(solid: Sequence[SqlToken], tokens: Sequence[SqlToken]) -> Iterator[int]:
    """The indices of the tokens with which the second and each further statement begin."""
    candidates = list(_outer_words(solid))
    if all(index == 0 for index, _ in candidates):
        return
    lines, statement = _line_starts(tokens), _Statement.at(solid, 0)
    for index, word in candidates:
        if index >= statement.behind and _may_end(solid[index - 1]):
            spelled = _spelled(solid, index)
            if statement.ends_before(spelled, on_line=solid[index].start in lines):
                yield index
                statement = _Statement.at(solid, index)
        statement.has_rows |= word in {"SELECT", "VALUES"}


@dataclass
class _Statement:
    """What is known of a statement so far: its first words, and whether it has a query."""

    head: str
    behind: int  # the index of the first token with which another one can begin
    has_rows: bool = False

    @classmethod
    def at(cls, tokens: Sequence[SqlToken], index: int) -> "_Statement":
        """The statement that begins at a token."""
        head = _spelled(tokens, index)
        found = _HEAD.match(head)
        words = found[0].count(" ") + 1 if found else 0
        # What follows at once belongs to EXPLAIN, and to a set that needs no `;` behind its BEGIN.
        return cls(head, index + (words if head.startswith("BEGIN ") else words + 1))

    def ends_before(self, spelled: str, *, on_line: bool) -> bool:
        """Whether these tokens, perhaps the first ones of a line, begin another statement."""
        if _START.match(spelled):
            is_of_query = self.head.startswith(("FROM ", "WITH ")) and not self.has_rows
            if spelled.startswith("INSERT ") and is_of_query:
                return False  # it has an error of its own
            return not (spelled.startswith("SET ") and _HAS_OWN_SET.match(self.head))
        if spelled.startswith(("SELECT ", "WITH ")) and _ROWS.match(spelled):
            is_second = self.has_rows and not self.head.startswith("FROM ")  # FROM t SELECT a SELECT b is one
            return is_second or (on_line and _WITHOUT_QUERY.match(self.head) is not None)
        return on_line and _ON_LINES.match(spelled) is not None


def _outer_words(tokens: Sequence[SqlToken]) -> Iterator[tuple[int, str]]:
    """The words outside of parentheses with which a statement may begin, with their indices."""
    depth = 0
    for index, (kind, text, _) in enumerate(tokens):
        if kind is TokenKind.SYMBOL:
            depth += (text in CLOSING) - (text in _CLOSING)
        elif kind is TokenKind.WORD and depth == 0 and (word := text.upper()) in _FIRST:
            yield index, word


def _line_starts(tokens: Sequence[SqlToken]) -> set[int]:
    """The offsets of the tokens that are the first ones of a line."""
    found, is_new = set[int](), False
    for token in tokens:
        if not meaningful(token):
            is_new = is_new or "\n" in token.text
        else:
            if is_new:
                found.add(token.start)
            is_new = False
    return found


def _may_end(before: SqlToken) -> bool:
    """Whether a statement may end with this token."""
    if before.kind is TokenKind.WORD:
        return before.text.upper() not in _GOES_ON
    return before.kind is not TokenKind.SYMBOL or before.text in _CLOSING


def _spelled(tokens: Sequence[SqlToken], index: int) -> str:
    """The next tokens with a space between them: words in upper case, a mark for other names and texts."""
    return " ".join(
        _SPELLED.get(token.kind) or token.text.upper() for token in tokens[index : index + _LONGEST]
    )
