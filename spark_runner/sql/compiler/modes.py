"""The modes of a script, and the one of a script that sets none."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.connections import FindConnection
from spark_runner.sql.compiler.names import Reads
from spark_runner.sql.compiler.tables import is_unbounded
from spark_runner.sql.grammar.references import references
from spark_runner.sql.grammar.statements import (
    AnyStatement,
    BeginSet,
    CatalogAction,
    CatalogStatement,
    CreateTable,
    CreateView,
    Insert,
    SetStatement,
)
from spark_runner.sql.text.passage import Passage

BATCH, AVAILABLE_NOW, STREAMING = "batch", "available-now", "streaming"
MODES = (BATCH, AVAILABLE_NOW, STREAMING)

DEFAULT_TRIGGER_MS = 10_000  # a source of files lists its folder at each trigger
_SHORTEST_MS, _LONGEST_MS = 100, 24 * 3_600_000
_INTERVAL = re.compile(r"([0-9]{1,9})\s*([a-z]+)", re.IGNORECASE)
_UNITS = {
    "ms": 1,
    **dict.fromkeys(("milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
}


@dataclass(frozen=True)
class DefaultMode:
    """The mode of a script that sets none, and the table without an end that decides it."""

    mode: str = BATCH
    decided_by: Passage | None = None


def default_mode(statements: Iterable[AnyStatement], find: FindConnection | None) -> DefaultMode:
    """`available-now` for a script with an INSERT or view that reads a table without an end; else `batch`."""
    unbounded = dict[str, CreateTable]()
    for statement in statements:
        if isinstance(statement, CreateTable):
            if is_unbounded(statement, find):
                unbounded[statement.name.lower()] = statement
        elif unbounded and (query := _query_of(statement)) is not None:
            read = next((name for name in references(query.tokens) if name in unbounded), None)
            if read is not None:
                return DefaultMode(AVAILABLE_NOW, unbounded[read].passage)
    return DefaultMode()


def _query_of(statement: AnyStatement) -> Passage | None:
    """The query of a view, or of an INSERT, which may be the first one of a statement set."""
    if isinstance(statement, BeginSet):
        return _query_of(statement.first) if statement.first else None
    if isinstance(statement, CatalogStatement):
        return statement.body if statement.action is CatalogAction.INSERT_INTO else None
    return statement.query if isinstance(statement, CreateView | Insert) else None


def checked_mode(statement: SetStatement, written: str) -> str:
    """The mode that a SET names; raises SqlError for another text, which is `written` in the script."""
    mode = statement.value.strip().lower()
    if mode not in MODES:
        hint = did_you_mean(mode, MODES) or f"; this version has {', '.join(MODES)}"
        message = f"{statement.key} cannot be '{written}'{hint}"
        raise statement.passage.error(message, statement.value_offset)
    return mode


def checked_time(statement: SetStatement, written: str) -> int:
    """The milliseconds that a SET names, as between two triggers; raises SqlError."""
    match = _INTERVAL.fullmatch(statement.value.strip())
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        message = f"'{statement.key}' cannot be '{written}'; it is a number and a unit, such as '10 seconds'"
        raise statement.passage.error(message, statement.value_offset)
    milliseconds = int(match[1]) * unit
    if not _SHORTEST_MS <= milliseconds <= _LONGEST_MS:
        message = f"'{statement.key}' cannot be '{written}'; it is from 100 ms to 24 hours"
        raise statement.passage.error(message, statement.value_offset)
    return milliseconds


def check_bounded(reads: Reads, text: Passage) -> None:
    """Raise SqlError for a statement of mode batch that reads a table without an end."""
    for table in reads.tables.values():
        if table.spec.unbounded:
            named = references(text.tokens).get(table.name.lower())
            message = (
                f"table '{table.name}' of connector '{table.spec.connector}' has no end, and mode 'batch'"
                f" reads all rows; an INSERT in mode '{AVAILABLE_NOW}' or '{STREAMING}' can read it"
            )
            raise text.error(message, named.offset if named else 0)
