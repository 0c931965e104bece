"""The settings of a script for rows that do not fit: how many may be set aside, and where."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.names import Table
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.grammar.statements import SetStatement
from spark_runner.sql.locations import comparable, overlap

LIMIT_ROWS, LIMIT_PERCENT, QUARANTINE = "job.error.limit.rows", "job.error.limit.percent", "job.quarantine"
BAD_ROW_KEYS = (LIMIT_ROWS, LIMIT_PERCENT, QUARANTINE)
QUARANTINE_COLUMNS = (
    *("record", "form", "types", "reason", "source", "rule", "file", "job", "run", "attempt", "at"),
)
_NUMBER = re.compile(r"[0-9]{1,15}")
_PERCENT = re.compile(r"[0-9]{1,2}(\.[0-9]{1,6})?|100(\.0{1,6})?")


@dataclass
class BadRowSettings:
    """The last value of each setting; they hold for the whole script."""

    rows: int | None = None
    percent: float | None = None
    table: SetStatement | None = None

    def set(self, statement: SetStatement) -> None:
        """Take a SET of one of `BAD_ROW_KEYS`; raises SqlError at a wrong value."""
        key, value = statement.key.lower(), statement.value.strip()
        if key == LIMIT_ROWS:
            if not _NUMBER.fullmatch(value):
                raise statement.passage.error(
                    f"'{statement.key}' is a number of rows", statement.value_offset
                )
            self.rows = int(value)
        elif key == LIMIT_PERCENT:
            if not _PERCENT.fullmatch(value):
                message = f"'{statement.key}' is a percentage from 0 to 100"
                raise statement.passage.error(message, statement.value_offset)
            self.percent = float(value)
        else:
            self.table = statement

    def reset(self, key: str) -> None:
        """Forget a setting."""
        if key == LIMIT_ROWS:
            self.rows = None
        elif key == LIMIT_PERCENT:
            self.percent = None
        else:
            self.table = None

    @property
    def has_limit(self) -> bool:
        """Whether records that cannot be decoded are set aside instead of failing the job."""
        return self.rows is not None or self.percent is not None

    def to_plan(self, scope: Scope, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The part of the plan; empty without a setting.

        Raises SqlError for a table that takes no rows, or that a step of the script writes.
        """
        found: dict[str, Any] = {"rows": self.rows, "percent": self.percent}
        if self.table is not None:
            found["table"] = _table(self.table, scope, steps)
        return {"bad_rows": found} if self.has_limit or self.table else {}


def _table(statement: SetStatement, scope: Scope, steps: Iterable[Mapping[str, Any]]) -> str:
    """The table that takes the rows, marked as written."""
    name = statement.value.strip().strip("`")
    table = scope.names.get(name.lower())
    if not isinstance(table, Table) or not table.spec.writable:
        tables = [
            each.name for each in scope.names.values() if isinstance(each, Table) and each.spec.writable
        ]
        hint = did_you_mean(name, tables) or "; declare it with CREATE TABLE"
        message = f"no table '{statement.written(statement.value_offset, name)}' can take rows{hint}"
        raise statement.passage.error(message, statement.value_offset)
    for column in table.stored:
        if column.lower() not in QUARANTINE_COLUMNS:
            message = (
                f"table '{table.name}' has column '{column}'; rows that do not fit have"
                f" {', '.join(QUARANTINE_COLUMNS)}"
            )
            raise statement.passage.error(message, statement.value_offset)
    if (line := _line_of_writer(table, steps)) is not None:
        message = (
            f"table '{table.name}' takes the rows that do not fit, and the INSERT of line {line} writes to"
            " the same place, where it could delete them; name another table"
        )
        raise statement.passage.error(message, statement.value_offset)
    table.uses += 1
    table.step["written"] = True
    return table.name


def _line_of_writer(table: Table, steps: Iterable[Mapping[str, Any]]) -> int | None:
    """The line of the first INSERT that writes a table, or where its rows are."""
    places = dict[str, str]()
    for step in steps:
        if step["kind"] == "table":
            places[step["name"].lower()] = comparable(step["location"]) if step["location"] else ""
        elif step["kind"] == "insert":
            name = step["target"].lower()
            is_there = bool(table.place and places[name]) and overlap(table.place, places[name])
            if is_there or name == table.name.lower():
                return int(step["line"])
    return None
