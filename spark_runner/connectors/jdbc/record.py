"""The record of writes in the database: each happens once, whatever happens to drivers.

The table `orchestrator_writes` has a row for each write of a run or of a micro-batch. The transaction that
moves the staged rows into their target also sets `committed_at`. So a further attempt finds out whether the
write has happened. `owner` is a fence: of several drivers that try the same write, the one that began last
may commit, and one that was suspended meanwhile may not.
"""

import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import ConnectorError, TargetChanged
from spark_runner.connectors.jdbc.address import MYSQL
from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import Dialect
from spark_runner.connectors.jdbc.failures import DatabaseFailed
from spark_runner.connectors.jdbc.names import TableName

TABLE = "orchestrator_writes"
STAGING = "orchestrator_staging_"
_KEEP_DAYS = 30  # of committed writes; the last one of a stream stays
_ORPHAN_DAYS = 7  # after which a staging table of a dead run is removed
_EXISTS = frozenset({"23505", "42P07", "42S01"})
_BATCH = re.compile(r"(.+)-\d+")  # the key of a micro-batch: that of its stream and its number


@dataclass(frozen=True)
class Write:
    """One write that has begun; `done_rows` is None unless it has happened before."""

    id: str
    owner: str
    staging: TableName
    done_rows: int | None = None


class WriteRecord:
    """The record for one target."""

    def __init__(self, dialect: Dialect, target: TableName, work_schema: str) -> None:
        self._dialect, self._target = dialect, target
        self._table = target.beside(TABLE, work_schema)
        self._is_mysql = dialect.family == MYSQL
        self._now = "CURRENT_TIMESTAMP"

    def exists(self, connection: Connection) -> bool:
        """Whether there is a record."""
        return bool(self._dialect.columns(connection, self._table))

    def create(self, connection: Connection) -> None:
        """Create the table if it is missing."""
        if self.exists(connection):
            return
        text, time = ("varchar(255)", "datetime") if self._is_mysql else ("text", "timestamp with time zone")
        now = f"DEFAULT {self._now}"
        try:
            with connection.transaction():
                connection.run(
                    f"CREATE TABLE {self._table} (id varchar(64) PRIMARY KEY, series varchar(64) NOT NULL,"
                    f" run_key {text} NOT NULL, target {text} NOT NULL, attempt integer NOT NULL,"
                    f" owner varchar(32) NOT NULL, staging {text} NOT NULL, row_count bigint,"
                    f" started_at {time} NOT NULL {now}, committed_at {time} NULL)"
                )
        except DatabaseFailed as error:
            if error.state not in _EXISTS:  # another driver has just created it
                raise ConnectorError(
                    f"{error}; the connector needs a table '{self._table}' for what is written once: grant"
                    " CREATE on its schema, or name another one by the option 'work_schema'"
                ) from error

    def begin(
        self, connection: Connection, writer: Writer, number: int, make: Callable[[TableName], None]
    ) -> Write:
        """Begin the write number `number` of a writer, and make its staging table.

        From now on no other driver can commit it. Raises TargetChanged if a further attempt has begun it.
        """
        key, owner = self._id(writer, number), uuid.uuid4().hex
        staging = self._table.beside(STAGING + owner)
        with connection.transaction():
            found = connection.rows(
                "SELECT attempt, staging, committed_at, row_count, owner"
                f" FROM {self._table} WHERE id = ? FOR UPDATE",
                key,
            )
            if found:
                attempt, earlier, committed, rows, _ = found[0]
                if committed is not None:
                    return Write(key, owner, staging, int(rows or 0))
                if int(attempt or 0) > writer.attempt:
                    raise _fenced(self._target)
                connection.run(
                    f"UPDATE {self._table} SET owner = ?, attempt = ?, staging = ?,"
                    f" started_at = {self._now} WHERE id = ?",
                    *(owner, writer.attempt, staging.name, key),
                )
                if not self._is_mysql:
                    self._drop(connection, str(earlier))
            else:
                connection.run(
                    f"INSERT INTO {self._table} (id, series, run_key, target, attempt, owner, staging)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    *(key, self._series(writer), writer.run_key[:255], self._target.shown[:255]),
                    *(writer.attempt, owner, staging.name),
                )
                earlier = None
            if not self._is_mysql:
                make(staging)
        if self._is_mysql:  # its CREATE TABLE and DROP TABLE commit
            if earlier:
                self._drop(connection, earlier)
            make(staging)
        return Write(key, owner, staging)

    def confirm(self, connection: Connection, write: Write, rows: int) -> None:
        """Take part in the transaction that moves the rows; raises TargetChanged without the right to."""
        changed = connection.run(
            f"UPDATE {self._table} SET committed_at = {self._now}, row_count = ?"
            " WHERE id = ? AND owner = ? AND committed_at IS NULL",
            *(rows, write.id, write.owner),
        )
        if changed != 1:
            raise _fenced(self._target)

    def recover(self, connection: Connection, writer: Writer) -> None:
        """Remove staging tables of earlier attempts of a writer."""
        if self.exists(connection):
            with connection.transaction():
                self._remove(connection, "run_key = ? AND attempt <= ?", writer.run_key[:255], writer.attempt)

    def clean(self, connection: Connection) -> None:
        """Remove what dead runs have left, and old writes."""
        ago = "CURRENT_TIMESTAMP - INTERVAL '{}' DAY"
        with connection.transaction():
            self._remove(connection, f"started_at < {ago.format(_ORPHAN_DAYS)}")
            connection.run(
                f"DELETE FROM {self._table} WHERE committed_at < {ago.format(_KEEP_DAYS)} AND (series = id"
                f" OR id NOT IN (SELECT id FROM (SELECT w.id FROM {self._table} w JOIN (SELECT series,"
                f" max(committed_at) AS last FROM {self._table} GROUP BY series) l"
                " ON l.series = w.series AND l.last = w.committed_at) kept))"
            )

    def drop(self, connection: Connection, write: Write) -> None:
        """Remove the staging table of a write."""
        self._drop(connection, write.staging.name)

    def _remove(self, connection: Connection, condition: str, *values: str | int) -> None:
        unfinished = f"FROM {self._table} WHERE committed_at IS NULL AND {condition}"
        for (name,) in connection.rows(f"SELECT staging {unfinished}", *values):
            self._drop(connection, str(name))

    def _drop(self, connection: Connection, name: str) -> None:
        if name.startswith(STAGING):
            connection.run(f"DROP TABLE IF EXISTS {self._table.beside(name)}")

    def _id(self, writer: Writer, number: int) -> str:
        return _hash(writer.run_key, str(number), str(self._target))

    def _series(self, writer: Writer) -> str:
        """Equal for the batches of one stream; of another run that of the write itself."""
        found = _BATCH.fullmatch(writer.run_key)
        return _hash(found[1] if found else writer.run_key, str(self._target))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _fenced(target: TableName) -> TargetChanged:
    return TargetChanged(
        f"table '{target.shown}' was not changed: another attempt of this run has begun this write"
    )
