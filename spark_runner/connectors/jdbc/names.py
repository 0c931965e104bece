"""Names of tables and columns, as a user writes them and as a database has them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^\s."`\[\]]+))\s*(?:\.|$)')


def quoted(family: str, name: str) -> str:
    """A name for SQL, whatever characters it has."""
    mark = "`" if family == MYSQL else '"'
    return mark + name.replace(mark, mark * 2) + mark


@dataclass(frozen=True)
class TableName:
    """A table; `schema` is empty if the user names none: the connection decides then."""

    family: str
    schema: str
    name: str

    def __str__(self) -> str:
        return ".".join(quoted(self.family, part) for part in (self.schema, self.name) if part)

    @property
    def shown(self) -> str:
        """The table in messages."""
        return f"{self.schema}.{self.name}" if self.schema else self.name

    def beside(self, name: str, schema: str = "") -> "TableName":
        """Another table, in a schema or in that of this one."""
        return TableName(self.family, schema or self.schema, name)

    def column(self, name: str) -> str:
        """The name of a column for SQL."""
        return quoted(self.family, name)

    def columns(self, names: Sequence[str]) -> str:
        """A list of columns for SQL."""
        return ", ".join(map(self.column, names))


def table_name(family: str, text: str) -> TableName:
    """The table that an option names: `table`, `schema.table`, with parts in quotes where they need them.

    PostgreSQL has names without quotes in lower case. Raises ConnectorError.
    """
    parts, at = list[str](), 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise ConnectorError(f"option 'table': '{text}' is no name of a table; write schema.table")
        exact = (found[1] or "").replace('""', '"') or (found[2] or "").replace("``", "`")
        plain = found[3] or ""
        parts.append(exact or (plain.lower() if family == POSTGRESQL else plain))
        at = found.end()
    if not 1 <= len(parts) <= 2 or text.rstrip().endswith("."):  # noqa: PLR2004 - a schema and a name
        raise ConnectorError(f"option 'table': '{text}' is no name of a table; write schema.table")
    return TableName(family, parts[0] if len(parts) > 1 else "", parts[-1])
