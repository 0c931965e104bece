"""Moves the staged rows that their table takes, and sets the others aside with the reason of the database.

It is for a write that has failed because of the values of a row, in one transaction: rows that are refused
together are halved at a savepoint, and tried again.
"""

from dataclasses import replace

from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import REASON, ROW, Dialect, Staged
from spark_runner.connectors.jdbc.failures import DatabaseFailed


def move_fitting(connection: Connection, dialect: Dialect, staged: Staged, most: int) -> int:
    """Move the rows that fit, in their order; returns the number of the others, which have a reason then.

    Raises DatabaseFailed if more than `most` rows do not fit, or for an error that is not of a row.
    """
    for statement in dialect.begin_sieve():
        connection.run(statement)
    fits = f"{staged.condition} AND {REASON} IS NULL"
    (found,) = connection.rows(  # COPY has refused some before, which have no number
        f"SELECT count(*), count({REASON}), min({ROW}), max({ROW}), min({REASON}) FROM {staged.given}"
        f" WHERE {staged.condition}"
    )
    total, refused, first, last = (int(number or 0) for number in found[:4])
    if refused > most:
        raise _too_many(connection, most, str(found[4]))
    waiting = [(first, last, total - refused)] if total > refused else []
    while waiting:
        low, high, count = waiting.pop()
        error = _moved(connection, dialect, replace(staged, between=(low, high)))
        if error is None:
            continue
        within = f"{fits} AND {ROW} BETWEEN {low} AND {high}"
        if count == 1:
            refused += 1
            if refused > most:
                raise _too_many(connection, most, error.words, error) from error
            connection.run(f"UPDATE {staged.given} SET {REASON} = ? WHERE {within}", error.reason)
            continue
        half = count // 2
        middle = connection.value(
            f"SELECT {ROW} FROM {staged.given} WHERE {within} ORDER BY {ROW} LIMIT 1 OFFSET {half - 1}"
        )
        waiting += [(int(middle or 0) + 1, high, count - half), (low, int(middle or 0), half)]
    return refused


def _moved(connection: Connection, dialect: Dialect, staged: Staged) -> DatabaseFailed | None:
    """Move some rows, or none of them: the error of one that is refused."""
    try:
        with connection.savepoint():
            for statement in dialect.merge(staged, may_repeat=True):
                connection.run(statement)
    except DatabaseFailed as error:
        if not error.is_of_a_row:
            raise
        return error
    return None


def _too_many(
    connection: Connection, most: int, words: str, error: DatabaseFailed | None = None
) -> DatabaseFailed:
    state, code = (error.state, error.code) if error else ("", 0)
    return DatabaseFailed(
        f"{connection.shown} refused more than {most:,} rows of this write, such as: {words}", state, code
    )
