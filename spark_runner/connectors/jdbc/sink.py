"""Tables of PostgreSQL, MySQL and MariaDB, as sinks.

Each write fills a staging table; then one transaction moves its rows into the target, and records that the
write has happened.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Tolerance, Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.database import Connection, Database
from spark_runner.connectors.jdbc.dialect import Dialect, Staged
from spark_runner.connectors.jdbc.failures import DatabaseBroke, DatabaseBusy, DatabaseFailed
from spark_runner.connectors.jdbc.mysql import MySql
from spark_runner.connectors.jdbc.names import TableName, table_name
from spark_runner.connectors.jdbc.postgres import Postgres
from spark_runner.connectors.jdbc.record import Write, WriteRecord
from spark_runner.connectors.jdbc.sieve import move_fitting
from spark_runner.connectors.jdbc.staging import Filled, Sieve, fill
from spark_runner.connectors.jdbc.target import Target, find_target

_DIALECTS: Mapping[str, Dialect] = {POSTGRESQL: Postgres(), MYSQL: MySql()}
_TRIES = 5  # of a transaction that another one was in the way of
_FETCH_ROWS = "10"  # of rejected rows, which may be large: drivers hold all of them otherwise
_MAX_KEYS = 1000  # of writers whose writes are counted
_ERRORS = (PySparkException, Py4JError)
_REPEATED_KEY = "21000"  # ON CONFLICT met a row that the same statement had written


def dialect_of(database: Database) -> Dialect:
    """The SQL of a database that can be written; raises ConnectorError for another."""
    found = _DIALECTS.get(database.address.family)
    if found is None:
        kind = database.address.kind
        raise ConnectorError(
            f"connector 'jdbc' writes to PostgreSQL, MySQL and MariaDB; it can only read '{kind}'"
        )
    return found


class JdbcSink:
    """One table; its writes are numbered, as a run may have several INSERTs into a table."""

    def __init__(self) -> None:
        self._guard = threading.Lock()  # of the two below
        self._done: OrderedDict[tuple[str, str], int] = OrderedDict()  # writes by run key and place
        self._cleaned = set[str]()  # places whose record was cleaned

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove the staging tables of earlier attempts; what they have committed stays, and counts."""
        if writer.attempt > 1:
            database = Database(session, options)
            record, _ = _record(database, options)
            with database.connection() as connection:
                record.recover(connection, writer)

    def probe(self, session: SparkSession, options: Mapping[str, Any], schema: StructType) -> None:
        """Check the connection, the table, its columns and the right to insert."""
        database = Database(session, options)
        dialect = dialect_of(database)
        with database.connection() as connection:
            target = find_target(connection, dialect, options, schema, ())
            if not target.changes:
                names = target.table.columns(target.names)
                with contextlib.suppress(_Undo), connection.transaction():
                    connection.run(
                        f"INSERT INTO {target.table} ({names}) SELECT {names} FROM {target.table} WHERE 1 = 0"
                    )
                    raise _Undo

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Write all rows, or none; a write of an earlier attempt that has happened is not repeated."""
        database, writer = Database(frame.sparkSession, options), request.writer
        dialect, (record, table) = dialect_of(database), _record(database, options)
        key = writer.run_key, f"{database.address.plain}/{table}"
        with self._guard:
            number = self._done.get(key, 0)
        with database.connection() as connection:
            target = find_target(connection, dialect, options, frame.schema, request.primary_key)
            record.create(connection)
            _change(connection, target)

            def make(staging: TableName) -> None:
                for statement in dialect.create_staging(staging, target.table, target.names):
                    connection.run(statement)

            write = record.begin(connection, writer, number, make)
            self._clean(record, connection, key[1])
            has_rejected = write.done_rows is not None and record.rejected.has(connection, write.owner)
        rows = write.done_rows
        if rows is None:
            move = _Move(database, dialect, record, write, target, options, request.mode == "overwrite")
            try:
                rows, has_rejected = move.run(frame)
            except DatabaseFailed as error:
                if error.is_of_a_row and request.may_reject.why_none:
                    raise error.with_advice(request.may_reject.why_none) from error
                if not (error.is_of_a_row and request.may_reject.rows):
                    raise
                move = move.sieving(writer, number, request.may_reject)
                write, rows, has_rejected = move.write, *move.run(frame)
        with self._guard:
            self._done[key] = number + 1
            self._done.move_to_end(key)
            if len(self._done) > _MAX_KEYS:
                self._done.popitem(last=False)
        return Written(rows, rejected=_rejected(database, record, write) if has_rejected else None)

    def _clean(self, record: WriteRecord, connection: Connection, place: str) -> None:
        with self._guard:
            if place in self._cleaned:
                return
            self._cleaned.add(place)
        record.clean(connection)


@dataclass(frozen=True)
class _Move:
    """One write that has begun."""

    database: Database
    dialect: Dialect
    record: WriteRecord
    write: Write
    target: Target
    options: Mapping[str, Any]
    overwrites: bool
    sieve: Sieve | None = None

    def sieving(self, writer: Writer, number: int, tolerance: Tolerance) -> "_Move":
        """The same write, begun once more, of which some rows may be rejected."""
        with self.database.connection() as connection:
            self.record.rejected.create(connection)
            is_ascii = not self.dialect.holds_unicode(connection)

            def make(staging: TableName) -> None:
                columns = [(each.name, each.given.dataType) for each in self.target.columns]
                for statement in self.dialect.create_sieve(staging, self.target.table, columns):
                    connection.run(statement)

            write = self.record.begin(connection, writer, number, make, again=self.write)
        return replace(self, write=write, sieve=Sieve(self.dialect, tolerance, is_ascii))

    def run(self, frame: DataFrame) -> tuple[int, bool]:
        """Fill the staging table, and commit: the number of rows, and whether others are rejected."""
        try:
            filled = fill(self.database, frame, self.target, self.write.staging, self.options, self.sieve)
            with self.database.connection() as connection:
                for left in reversed(range(_TRIES)):
                    try:
                        rejected = self._commit(connection, filled)
                        break
                    except DatabaseBusy:
                        if not left:
                            raise
                self._drop(connection)  # after the commit, which does not wait for who looks at that table
        except BaseException:
            # What cannot be removed now is removed by a further attempt, or as an orphan.
            with contextlib.suppress(ConnectorError, *_ERRORS), self.database.connection() as connection:
                self._drop(connection)
            raise
        return filled.rows - rejected, bool(rejected)

    def _commit(self, connection: Connection, filled: Filled) -> int:
        """Move the staged rows; returns the number of those that are rejected."""
        target = self.target
        staged = Staged(
            self.write.staging, target.table, target.names, target.key, filled.tasks, bool(target.delete)
        )
        if self.sieve:
            staged = replace(staged, given=self.dialect.given(staged.staging))
        rejected = 0
        with connection.transaction():
            for statement in self.dialect.guard():
                connection.run(statement)
            self.record.confirm(connection, self.write, filled.rows)
            if filled.rows:
                _check(connection, self.dialect, staged, filled.rows)
            if self.overwrites:
                self.dialect.lock(connection, target.table)
                at_once = bool(self.options["truncate"])
                connection.run(self.dialect.empty(target.table, at_once=at_once))
            if filled.rows and self.sieve:
                rejected = move_fitting(connection, self.dialect, staged, self.sieve.most(filled.rows))
                self.record.reject(connection, self.write, staged, rejected)
            elif filled.rows:
                _merge(connection, self.dialect, staged)
        return rejected

    def _drop(self, connection: Connection) -> None:
        self.record.drop(connection, self.write.staging.name)


def _rejected(database: Database, record: WriteRecord, write: Write) -> DataFrame:
    """The rejected rows of a write, as the database keeps them; empty if there are none."""
    query = record.rejected.query(write.owner)
    settings = {**database.spark_options(), "dbtable": f"({query}) r", "fetchsize": _FETCH_ROWS}
    found = database.session.read.format("jdbc").options(**settings).load()
    return found.select("reason", sql.col("given").alias("row"))


class _Undo(Exception):
    """Ends a transaction that only checks something."""


def _record(database: Database, options: Mapping[str, Any]) -> tuple[WriteRecord, TableName]:
    dialect = dialect_of(database)
    table = table_name(dialect.family, str(options["table"]))
    return WriteRecord(dialect, table, str(options["work_schema"])), table


def _change(connection: Connection, target: Target) -> None:
    """Create the table, or add columns: another driver may have done the same meanwhile."""
    for statement in target.changes:
        try:
            with connection.transaction():
                connection.run(statement)
        except DatabaseFailed as error:
            if error.state not in {"42P07", "42701", "23505", "42S01", "42S21"}:
                raise


def _check(connection: Connection, dialect: Dialect, staged: Staged, rows: int) -> None:
    """Raise DatabaseBroke if the staged rows are not those that the tasks have written."""
    for statement in dialect.freeze(staged.staging):
        connection.run(statement)
    found = int(connection.value(dialect.count(staged)) or 0)
    if found != rows:
        raise DatabaseBroke(
            f"table '{staged.target.shown}' of {connection.shown} was not changed: its staging table has"
            f" {found} rows instead of {rows}; a crash of the server empties it"
        )


def _merge(connection: Connection, dialect: Dialect, staged: Staged) -> None:
    """Move the rows; keys rarely repeat, and the SQL that expects it has to sort all rows."""
    try:
        with connection.savepoint():
            for statement in dialect.merge(staged, may_repeat=False):
                connection.run(statement)
    except DatabaseFailed as error:
        if error.state != _REPEATED_KEY:
            raise
        for statement in dialect.merge(staged, may_repeat=True):
            connection.run(statement)
