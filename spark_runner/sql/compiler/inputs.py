"""Refuses an INSERT that would change or delete input of the script."""

from collections.abc import Iterable

from spark_runner.sql.compiler.names import Name, Reads, Table
from spark_runner.sql.grammar.statements import Insert
from spark_runner.sql.locations import contains, overlap
from spark_runner.sql.text.errors import SqlError


def check_input_survives(statement: Insert, target: Table, reads: Reads, names: Iterable[Name]) -> None:
    """Raise SqlError if the INSERT writes to what it reads, or deletes one of the tables in `names`."""
    location, place = target.spec.location, target.place
    if not place:
        return
    for table in reads.tables.values():
        if table.place and overlap(place, table.place):
            raise _destroys(statement, f"reads '{table.name}' from", table.spec.location, location)
    if not statement.overwrite:
        return
    for known in names:
        if not isinstance(known, Table) or not known.place:
            continue
        # The same path twice is intended: a later statement reads or extends the output of this one.
        if contains(place, known.place) and not contains(known.place, place):
            raise _destroys(statement, f"would delete table '{known.name}' in", known.spec.location, location)


def _destroys(statement: Insert, what: str, source: str, target: str) -> SqlError:
    where = "the path it writes to" if source == target else f"'{source}', which overlaps with its target"
    message = f"refused: this INSERT {what} {where} ('{target}')"
    return statement.passage.error(message, statement.target_offset)
