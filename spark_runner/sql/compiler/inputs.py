"""Refuses an INSERT that would change or delete input of the script."""

from collections.abc import Iterable

from spark_runner.sql.compiler.names import Name, Reads, Table
from spark_runner.sql.grammar.statements import Insert
from spark_runner.sql.overlaps import refused


def check_input_survives(statement: Insert, target: Table, reads: Reads, names: Iterable[Name]) -> None:
    """Raise SqlError if the INSERT writes to what it reads, or deletes one of the tables in `names`."""
    tables = (known.placed for known in names if isinstance(known, Table))
    found = refused(target.placed, reads.placed(), tables if statement.overwrite else ())
    if found:
        raise statement.passage.error(found, statement.target_offset)
