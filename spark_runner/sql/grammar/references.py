"""Finds the names that a query reads, without Spark: enough to keep a script from destroying its input."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from spark_runner.sql.locations import is_relative
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.full_name import FullName, full_name_at, full_name_of
from spark_runner.sql.text.literals import name_value, string_value
from spark_runner.sql.text.tokens import SqlToken, TokenKind

FILE_FORMATS = ("avro", "binaryfile", "csv", "image", "json", "libsvm", "orc", "parquet", "text", "xml")
_TABLE_WORDS = ("FROM", "JOIN", "TABLE")
# After these words neither a comma nor a parenthesis precedes a table.
_OTHER_CLAUSES = (
    *("WITH", "SELECT", "VALUES", "WHERE", "GROUP", "HAVING", "ORDER"),
    *("SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "WINDOW"),
)


# Functions with a FROM between their arguments.
_WITH_FROM = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")


class Reference(NamedTuple):
    """The offset of the first use of a name, and the number of uses."""

    offset: int
    times: int


class TableNames(NamedTuple):
    """The names in the position of a table: those of one part, and those of several."""

    own: dict[str, Reference]
    of_catalogs: dict[tuple[str, ...], FullName]


def references(tokens: Sequence[SqlToken]) -> dict[str, Reference]:
    """Lower-case one-part names in the position of a table, with their uses.

    Names that the query itself defines (WITH x AS ...) are left out. The result may hold too many names
    (`trim(BOTH FROM x)`), so a name that is neither a table nor a view of the script has no meaning.
    """
    return table_names(tokens).own


def catalog_names(tokens: Sequence[SqlToken]) -> dict[tuple[str, ...], FullName]:
    """The names of several parts in the position of a table, by their keys: tables of catalogs of Spark.

    Files that the query names directly are left out, as in csv.`/data/orders.csv`.
    """
    return table_names(tokens).of_catalogs


def table_names(tokens: Sequence[SqlToken]) -> TableNames:
    """The results of `references` and `catalog_names`."""
    scan = _Scan(tokens)
    for index in range(len(scan.tokens)):
        scan.see(index)
    return TableNames(scan.found, scan.full_names)


def names_in(tokens: Sequence[SqlToken]) -> frozenset[str] | None:
    """Lower-case words and names of a query that may name a table; None if it may read others too.

    IDENTIFIER() computes a name at run time, and a path of files may be that of a table.
    """
    if formats_named(tokens) or computes_names(tokens):
        return None
    return frozenset(_name(token).lower() for token in tokens)


def computes_names(tokens: Sequence[SqlToken]) -> bool:
    """Whether a query may compute the names of tables at run time, by IDENTIFIER()."""
    return any(token.is_word("IDENTIFIER") for token in tokens)


def hides_names(tokens: Sequence[SqlToken]) -> bool:
    """Whether a query computes a name at run time that its text does not show."""
    return any(
        token.is_word("IDENTIFIER") and literal_name(tokens, index) is None
        for index, token in enumerate(tokens)
    )


def literal_name(tokens: Sequence[SqlToken], index: int) -> FullName | None:
    """The name of a table or column in IDENTIFIER('...') at a token; None for any other expression."""
    shape = [token.text for token in tokens[index + 1 : index + 5]]
    match tokens[index + 1 : index + 5]:
        case [_, literal, _, *behind] if literal.kind is TokenKind.STRING and shape[0] + shape[2] == "()":
            if (behind and behind[0].is_symbol("(")) or has_mark(literal.text):
                return None
            try:
                found = full_name_of(string_value(literal.text))
            except ValueError:
                return None
            return None if found is None else FullName(found.parts, tokens[index].start)
    return None


def reads_file_names(tokens: Sequence[SqlToken]) -> bool:
    """Whether a query may compute the names of its input files, which cached rows do not keep."""
    return any(
        token.is_word("IDENTIFIER") or _name(token).lower().startswith("input_file_") for token in tokens
    )


def names_relative_files(tokens: Sequence[SqlToken]) -> bool:
    """Whether a query may name files by a relative path, as in csv.`orders.csv`."""
    return any(
        first.kind is TokenKind.WORD
        and dot.is_symbol(".")
        and name.kind is TokenKind.QUOTED
        and format_name(first) in FILE_FORMATS
        and is_relative(name_value(name.text))
        for first, dot, name in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def formats_named(tokens: Sequence[SqlToken]) -> set[str]:
    """Lower-case names of formats whose files a query may name directly, as in csv.`/data/orders.csv`.

    Any name before a dot and a quoted name may be one, including a table with a quoted column.
    """
    return {name for name, is_quoted in _before_dots(tokens) if is_quoted and name in FILE_FORMATS}


def names_files_of(tokens: Sequence[SqlToken], denied: Collection[str]) -> str | None:
    """The word that may make Spark read files of a denied format; None without one.

    Spark also accepts the class of a format as its name, and IDENTIFIER() a text computed at run time.
    """
    if computes_names(tokens):
        return "IDENTIFIER"
    return next((name for name, _ in _before_dots(tokens) if name in denied or "." in name), None)


def _before_dots(tokens: Sequence[SqlToken]) -> Iterator[tuple[str, bool]]:
    """Each name before a dot, as the name of a format, and whether the name behind the dot is quoted."""
    for first, dot, second in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if dot.is_symbol(".") and (name := format_name(first)):
            yield name, _is_quoted(second)


def format_name(token: SqlToken) -> str:
    """The name by which Spark looks up a format; empty for a token that is not a name.

    Spark compares each letter in both cases: a long s equals an s, and a dotted capital I equals an i.
    """
    return _name(token).upper().replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "I").lower()


def _name(token: SqlToken) -> str:
    """The name in a token; empty for a token that is not a name."""
    if token.kind is TokenKind.WORD or token.kind is TokenKind.QUOTED:
        return name_value(token.text)
    return token.text[1:-1] if _is_quoted(token) else ""


def _is_quoted(token: SqlToken) -> bool:
    # A setting of Spark turns strings in double quotes into names.
    return token.kind is TokenKind.QUOTED or (token.kind is TokenKind.STRING and token.text.startswith('"'))


class _Scan:
    """Scans the tokens of a query, and tracks for each parenthesis whether tables are listed there."""

    def __init__(self, tokens: Sequence[SqlToken]) -> None:
        self.tokens = tokens
        self.found: dict[str, Reference] = {}
        self.full_names: dict[tuple[str, ...], FullName] = {}
        self._listing = [False]  # per open parenthesis: whether tables are listed here
        self._of_function = [False]  # likewise: whether a FROM here belongs to a function
        self._with = [False]  # likewise: whether names are defined here
        self._defined: list[list[str]] = [[]]  # likewise: names that are defined until it closes
        self._known = Counter[str]()  # the same, with the number of definitions
        self._defining: list[tuple[int, str]] = []  # (depth, name): a name is not yet defined in its own body

    def see(self, index: int) -> None:
        """Process one token."""
        token = self.tokens[index]
        word = token.text.upper() if token.kind is TokenKind.WORD else ""
        if token.kind is TokenKind.SYMBOL:
            self._parenthesis(index)
        elif word == "IDENTIFIER" and (named := literal_name(self.tokens, index)) is not None:
            self._literal(index, named)
        elif word in _TABLE_WORDS:
            if word == "TABLE" and self._is_named_table(index):
                self._name(index)
            self._with[-1] = False
            before = self._at(index - 1)
            self._listing[-1] = not (before and before.is_word("DISTINCT"))  # a IS DISTINCT FROM b
        elif word == "VALUES" and self._table_may_stand(index):
            return  # a table without a name
        elif word in _OTHER_CLAUSES:
            self._listing[-1] = False
            self._with[-1] = word == "WITH"
        elif word or token.kind is TokenKind.QUOTED:
            self._name(index)

    def _is_named_table(self, index: int) -> bool:
        """Whether TABLE at `index` is the name of a table, as in FROM table t."""
        before, behind = self._at(index - 1), self._at(index + 1)
        follows = before is not None and (before.is_word(*_TABLE_WORDS) or before.is_symbol(","))
        return follows and not (behind is not None and behind.is_symbol("("))

    def _literal(self, index: int, name: FullName) -> None:
        """Add the name that IDENTIFIER('...') at `index` has, where a table may stand."""
        if not self._table_may_stand(index):
            return
        if len(name.parts) > 1:
            self.full_names.setdefault(name.key, name)
            return
        key = name.key[0]
        offset, times = self.found.get(key, (name.offset, 0))
        self.found[key] = Reference(offset, times + 1)

    def _parenthesis(self, index: int) -> None:
        token = self.tokens[index]
        if token.is_symbol("("):
            self._listing.append(self._table_may_stand(index))
            self._of_function.append(self._opens_function(index))
            self._with.append(False)
            self._defined.append([])
        elif token.is_symbol(")") and len(self._listing) > 1:
            self._listing.pop()
            self._of_function.pop()
            self._with.pop()
            self._known.subtract(self._defined.pop())
            if self._defining and self._defining[-1][0] == len(self._listing):
                name = self._defining.pop()[1]
                self._defined[-1].append(name)
                self._known[name] += 1

    def _name(self, index: int) -> None:
        token, behind = self.tokens[index], self._at(index + 1)
        name = name_value(token.text).lower()
        if self._defines(index):
            self._defining.append((len(self._listing), name))
        elif behind and behind.is_symbol("."):
            if self._table_may_stand(index) and not self._of_function[-1]:
                self._full_name(index)
        elif not self._known[name] and self._table_may_stand(index):
            offset, times = self.found.get(name, (token.start, 0))
            self.found[name] = Reference(offset, times + 1)

    def _full_name(self, index: int) -> None:
        found = full_name_at(self.tokens, index)
        if found is None:
            return
        name, end = found
        is_file = _is_quoted(self.tokens[end - 1]) and format_name(self.tokens[index]) in FILE_FORMATS
        behind = self._at(end)
        calls = behind is not None and behind.is_symbol("(")
        if not ((is_file and len(name.parts) == 2) or calls):  # noqa: PLR2004 - format.`path`
            self.full_names.setdefault(name.key, name)

    def _opens_function(self, index: int) -> bool:
        """Whether the parenthesis at `index` holds arguments that FROM separates, and no query."""
        before, behind = self._at(index - 1), self._at(index + 1)
        is_function = before is not None and before.is_word(*_WITH_FROM)
        holds_query = behind is not None and (
            behind.is_word("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")
            or behind.is_symbol("(")
        )
        return is_function and not holds_query

    def _table_may_stand(self, index: int) -> bool:
        before = self._at(index - 1)
        opens = before is not None and (
            before.is_word(*_TABLE_WORDS, "LATERAL") or before.is_symbol(",") or before.is_symbol("(")
        )
        return self._listing[-1] and opens

    def _defines(self, index: int) -> bool:
        """Whether `name AS (` begins here, after WITH, RECURSIVE or another definition."""
        if not self._with[-1]:
            return False
        before, behind, opening = self._at(index - 1), self._at(index + 1), self._at(index + 2)
        starts = before is not None and (before.is_word("WITH", "RECURSIVE") or before.is_symbol(","))
        follows = (
            behind is not None and behind.is_word("AS") and opening is not None and opening.is_symbol("(")
        )
        return starts and follows

    def _at(self, index: int) -> SqlToken | None:
        return self.tokens[index] if 0 <= index < len(self.tokens) else None
