"""The statements that a script may have."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter

from spark_runner.references.reference import Pieces
from spark_runner.sql.grammar.columns import Columns
from spark_runner.sql.text.full_name import FullName
from spark_runner.sql.text.passage import Passage, PlacedReference
from spark_runner.sql.text.tokens import SqlToken, TokenKind


@dataclass(frozen=True)
class Statement:
    """The base of all statements: their text, and its tokens without space and comments."""

    passage: Passage
    tokens: Sequence[SqlToken]

    def written(self, offset: int, value: str) -> str:
        """`value`, which is that of the token at `offset`, for a message: its variables keep their names."""
        token = self.tokens[bisect_left(self.tokens, offset, key=attrgetter("start"))]
        text = self.passage.written(token.start, token.end)
        if text == token.text:
            return value
        return text[1:-1] if token.kind is TokenKind.STRING and text[0] in "'\"" else text


@dataclass(frozen=True)
class SetStatement(Statement):
    """`SET key = value`, with the offsets of both."""

    key: str
    value: str
    key_offset: int
    value_offset: int


@dataclass(frozen=True)
class ResetStatement(Statement):
    """`RESET key`, with its offset; `key` is empty for `RESET`, which is all that the script has set."""

    key: str
    key_offset: int


@dataclass(frozen=True)
class Option:
    """One option of a table, with the offsets of its key and value.

    `pieces` are those of a value with references, whose places are `references`; else both are empty.
    """

    key: str
    value: str
    key_offset: int
    value_offset: int
    pieces: Pieces = ()
    references: Sequence[PlacedReference] = ()


@dataclass(frozen=True)
class CreateTable(Statement):
    """`CREATE TABLE` in either dialect; `connector` is empty if only the options name it (WITH)."""

    name: str
    name_offset: int
    replace: bool
    columns: Columns | None
    connector: str
    connector_offset: int
    options: tuple[Option, ...]


@dataclass(frozen=True)
class CreateView(Statement):
    """`CREATE VIEW name AS query`."""

    name: str
    name_offset: int
    replace: bool
    query: Passage


@dataclass(frozen=True)
class CreateFunction(Statement):
    """`CREATE TEMPORARY FUNCTION name AS 'module.attribute' [RETURNS type]`."""

    name: str
    name_offset: int
    replace: bool
    target: str
    target_offset: int
    returns: Passage | None


@dataclass(frozen=True)
class Query(Statement):
    """A query of its own, whose first rows are shown."""

    query: Passage


@dataclass(frozen=True)
class Assert(Statement):
    """`ASSERT condition [, 'message']`; the message is empty if none is given."""

    condition: Passage
    message: str


@dataclass(frozen=True)
class EndSet(Statement):
    """`END` of a statement set."""


@dataclass(frozen=True)
class Insert(Statement):
    """`INSERT INTO|OVERWRITE target [options] [BY NAME] query`."""

    target: str
    target_offset: int
    overwrite: bool
    by_name: bool
    query: Passage
    options: tuple[Option, ...] = ()  # for this INSERT


@dataclass(frozen=True)
class Explain(Statement):
    """`EXPLAIN [mode]` of a query, perhaps that of an INSERT."""

    mode: str  # as PySpark names it
    query: Passage
    insert: Insert | None


@dataclass(frozen=True)
class Cache(Statement):
    """`CACHE [LAZY] TABLE name`."""

    name: str
    name_offset: int
    lazy: bool


@dataclass(frozen=True)
class Uncache(Statement):
    """`UNCACHE TABLE [IF EXISTS] name`."""

    name: str
    name_offset: int
    if_exists: bool


class CatalogAction(StrEnum):
    """What a statement does with a catalog of Spark, as it is shown."""

    INSERT_INTO = "INSERT INTO"
    INSERT_OVERWRITE = "INSERT OVERWRITE"
    MERGE = "MERGE INTO"
    DELETE = "DELETE FROM"
    CREATE_TABLE = "CREATE TABLE"
    CREATE_NAMESPACE = "CREATE NAMESPACE"
    USE = "USE"
    USE_CATALOG = "USE CATALOG"
    ANALYZE = "ANALYZE TABLE"
    REFRESH = "REFRESH TABLE"
    SHOW = "SHOW"
    DESCRIBE = "DESCRIBE"

    @property
    def writes(self) -> bool:
        """Whether it changes rows of its table."""
        return self in CATALOG_INSERTS or self in {self.MERGE, self.DELETE}


CATALOG_INSERTS = frozenset({CatalogAction.INSERT_INTO, CatalogAction.INSERT_OVERWRITE})
"""Actions that write the rows of a query."""


@dataclass(frozen=True)
class CatalogStatement(Statement):
    """A statement on a catalog, which Spark runs as a whole.

    `body` begins at `body_offset` and is its end: the query, the condition of a DELETE, or what follows USING
    in a MERGE, whose `source` is None if that is a query.
    """

    action: CatalogAction
    name: FullName | None  # of the table or namespace; None for SHOW
    body_offset: int = 0
    body: Passage | None = None
    source: FullName | None = None
    replace: bool = False  # CREATE OR REPLACE TABLE


@dataclass(frozen=True)
class BeginSet(Statement):
    """`EXECUTE STATEMENT SET BEGIN`, or `BEGIN STATEMENT SET`, with the INSERT up to the next `;`."""

    first: Insert | CatalogStatement | None


AnyStatement = (
    SetStatement
    | ResetStatement
    | CreateTable
    | CreateView
    | CreateFunction
    | Insert
    | Query
    | Assert
    | BeginSet
    | EndSet
    | Explain
    | Cache
    | Uncache
    | CatalogStatement
)
