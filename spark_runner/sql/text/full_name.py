"""Names of several parts, as tables of Spark catalogs have them: `catalog.namespace.table`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import name_value, quote_name
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, meaningful, tokenize

MAX_PARTS = 8
MAX_CHARACTERS = 512  # of all parts: a name becomes part of plans, outcomes and messages

_SESSION = {("session",), ("system", "session")}
_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})
_PLAIN = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class FullName:
    """The parts of a name as they are written, and the offset of the first one."""

    parts: tuple[str, ...]
    offset: int

    @property
    def key(self) -> tuple[str, ...]:
        """The parts for a comparison; two tables of a catalog that distinguishes case may have the same."""
        return tuple(part.lower() for part in self.parts)

    @property
    def is_too_long(self) -> bool:
        """Whether it has more parts or characters than a name may have."""
        return len(self.parts) > MAX_PARTS or sum(map(len, self.parts)) > MAX_CHARACTERS

    @property
    def of_session(self) -> str:
        """The name of the table or view of the script that Spark reaches by this name; empty for others."""
        return self.parts[-1] if self.key[:-1] in _SESSION else ""

    def __str__(self) -> str:
        """The name in SQL."""
        return ".".join(part if _PLAIN.fullmatch(part) else quote_name(part) for part in self.parts)


def full_name_at(tokens: Sequence[SqlToken], index: int) -> tuple[FullName, int] | None:
    """The name that begins at the token `index`, and the index behind it; None if no name begins there.

    A name may have any number of parts here, also one.
    """
    parts, end = list[str](), index
    while end < len(tokens) and tokens[end].kind in _NAMES:
        parts.append(name_value(tokens[end].text))
        end += 1
        if not (end < len(tokens) and tokens[end].is_symbol(".")):
            return FullName(tuple(parts), tokens[index].start), end
        end += 1
    return None


def may_be_same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two keys may be of one table: the current catalog and namespace complete a short name."""
    shorter = min(len(one), len(other))
    return one[-shorter:] == other[-shorter:]


class KnownNames:
    """Names of tables of catalogs, to find those that may mean the same table as another one."""

    def __init__(self) -> None:
        self._whole: dict[tuple[str, ...], FullName] = {}  # by key
        self._ends: dict[tuple[str, ...], FullName] = {}  # by each end of a key

    def add(self, name: FullName) -> None:
        """Add a name."""
        self._whole.setdefault(name.key, name)
        for start in range(len(name.key)):
            self._ends.setdefault(name.key[start:], name)

    def same(self, name: FullName) -> FullName | None:
        """One of the names that may mean the same table, by `may_be_same`; None without one."""
        ends = (name.key[start:] for start in range(len(name.key)))
        return self._ends.get(name.key) or next(
            (self._whole[end] for end in ends if end in self._whole), None
        )


def full_name_of(text: str) -> FullName | None:
    """The name that a text consists of; None for any other text."""
    try:
        tokens = [token for token in tokenize(ScriptSource("", text)) if meaningful(token)]
    except SqlError:
        return None
    found = full_name_at(tokens, 0)
    return found[0] if found is not None and found[1] == len(tokens) else None
