"""The record of writes in the database: each happens once, whatever happens to drivers.

The table `orchestrator_writes` has a row for each write of a run, and for each stream one with its last
micro-batch. The transaction that moves the staged rows into their target also sets `committed_at`. So a
further attempt finds out whether the write has happened. `owner` is a fence: of several drivers that try the
same write, the one that began last may commit, and one that was suspended meanwhile may not. Without its row
a write cannot be committed either, so that old rows can be deleted.

The table `orchestrator_rejected` has the rows that the target has rejected, written by the same transaction.
A further attempt finds them there, for the first one may have ended before it has reported them.
"""

import contextlib
import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import ConnectorError, TargetChanged
from spark_runner.connectors.jdbc.address import MYSQL
from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import GIVEN_TABLE, Dialect, Staged
from spark_runner.connectors.jdbc.failures import EXISTS, DatabaseFailed
from spark_runner.connectors.jdbc.names import TableName
from spark_runner.connectors.jdbc.rejected import RejectedRecord

TABLE = "orchestrator_writes"
STAGING = "orchestrator_staging_"
_ORPHAN_DAYS = 7  # after which a write without an end is given up
_KEEP_DAYS = 30  # in which a further attempt of a run finds its committed writes
_KEEP_STREAM_DAYS = 365  # likewise, a stream its last micro-batch
_WAIT_S = 90  # for a driver that commits the same write; a suspended one loses its connection before
_DROP_WAIT_S = 5  # for a suspended task that holds a staging table: a later write removes it
_BATCH = re.compile(r"(.+)-([0-9]{1,18})")  # the key of a micro-batch: that of its stream and its number


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
        self.rejected = RejectedRecord(dialect, self._table)
        self._is_mysql = dialect.family == MYSQL
        self._now = "CURRENT_TIMESTAMP"

    def exists(self, connection: Connection) -> bool:
        """Whether there is a record."""
        return bool(self._dialect.columns(connection, self._table))

    def create(self, connection: Connection) -> None:
        """Create the table if it is missing."""
        if self.exists(connection):
            self._dialect.check(connection, self._table)
            return
        text, time = ("varchar(255)", "datetime") if self._is_mysql else ("text", "timestamp with time zone")
        try:
            with connection.transaction():
                connection.run(
                    f"CREATE TABLE {self._table} (id varchar(64) PRIMARY KEY, run_key {text} NOT NULL,"
                    f" batch bigint, target {text} NOT NULL, attempt integer NOT NULL,"
                    f" owner varchar(32) NOT NULL, staging {text} NOT NULL, row_count bigint,"
                    f" started_at {time} NOT NULL DEFAULT {self._now}, committed_at {time} NULL)"
                    + self._dialect.table_options
                )
                connection.run(f"CREATE INDEX {TABLE}_age ON {self._table} (started_at)")
        except DatabaseFailed as error:
            if error.state not in EXISTS:  # another driver has just created it
                raise ConnectorError(
                    f"{error}; the connector needs a table '{self._table}' for what is written once: grant"
                    " CREATE on its schema, or name another one by the option 'work_schema'"
                ) from error

    def begin(
        self,
        connection: Connection,
        writer: Writer,
        number: int,
        make: Callable[[TableName], None],
        again: Write | None = None,
    ) -> Write:
        """Begin the write number `number` of a writer, and make its staging table.

        From now on no other driver can commit it. Raises TargetChanged if a further attempt has begun it, or
        a driver that commits it does not end. `again` is the write as this driver has begun it before: then
        also if any other one has begun it since.
        """
        key, owner, (run_key, batch) = self._id(writer, number), uuid.uuid4().hex, _parts(writer)
        staging, orphan = self._table.beside(STAGING + owner), ""
        exists = "ON DUPLICATE KEY UPDATE id = id" if self._is_mysql else "ON CONFLICT (id) DO NOTHING"
        with connection.transaction():
            connection.run(self._dialect.patience(_WAIT_S))
            connection.run(
                f"INSERT INTO {self._table} (id, run_key, batch, target, attempt, owner, staging)"
                f" VALUES (?, ?, {'NULL' if batch is None else batch}, ?, ?, ?, ?) {exists}",
                *(key, run_key, self._target.shown[:255], writer.attempt, owner, staging.name),
            )
            ((attempt, at, earlier, committed, rows, of),) = connection.rows(
                "SELECT attempt, batch, staging, committed_at, row_count, owner"
                f" FROM {self._table} WHERE id = ? FOR UPDATE",
                key,
            )
            if again and of != again.owner:
                raise _fenced(self._target)
            if of != owner:  # it was there
                if batch is not None and int(at or 0) > batch:
                    raise _fenced(self._target, "a later micro-batch of this stream")
                if batch is None or int(at or 0) == batch:
                    if committed is not None:
                        return Write(key, str(of), staging, int(rows or 0))
                    if int(attempt or 0) > writer.attempt:
                        raise _fenced(self._target)
                if committed is not None:  # an earlier micro-batch
                    self.rejected.forget(connection, str(of))
                connection.run(
                    f"UPDATE {self._table} SET owner = ?, attempt = ?, staging = ?,"
                    f" batch = {'NULL' if batch is None else batch}, row_count = NULL, committed_at = NULL,"
                    f" started_at = {self._now} WHERE id = ?",
                    *(owner, writer.attempt, staging.name, key),
                )
                orphan = "" if committed else str(earlier)
            connection.run(self._dialect.patience(None))
            if not self._is_mysql:
                make(staging)
        if self._is_mysql:  # its CREATE TABLE commits
            make(staging)
        self.drop(connection, orphan)
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

    def reject(self, connection: Connection, write: Write, staged: Staged, rows: int) -> None:
        """Keep the rejected rows, within the transaction that moves the others; `rows` is their number."""
        self.rejected.keep(connection, write.owner, staged)
        connection.run(f"UPDATE {self._table} SET row_count = row_count - {rows} WHERE id = ?", write.id)

    def recover(self, connection: Connection, writer: Writer) -> None:
        """Remove staging tables of earlier attempts of a writer."""
        if self.exists(connection):
            with connection.transaction():
                found = connection.rows(
                    f"SELECT staging FROM {self._table} WHERE committed_at IS NULL AND run_key = ?"
                    " AND attempt <= ?",
                    *(_parts(writer)[0], writer.attempt),
                )
            self.drop(connection, *[str(name) for (name,) in found])

    def clean(self, connection: Connection) -> None:
        """Remove staging tables that no write will use, and rows of writers that do not come back."""
        old = f"{self._now} - INTERVAL '{{}}' DAY"
        with connection.transaction():
            found = self._dialect.tables(connection, self._table.beside(STAGING))
        if found:
            with connection.transaction():  # after the list: a table is made when its row is there
                used = connection.rows(
                    f"SELECT staging FROM {self._table} WHERE committed_at IS NULL"
                    f" AND started_at > {old.format(_ORPHAN_DAYS)}"
                )
            left = {name.removesuffix(GIVEN_TABLE) for name in found} - {str(name) for (name,) in used}
            self.drop(connection, *sorted(left))
        with contextlib.suppress(TargetChanged), connection.transaction():
            connection.run(self._dialect.patience(_DROP_WAIT_S))
            connection.run(
                f"DELETE FROM {self._table} WHERE started_at < {old.format(_ORPHAN_DAYS)} AND ("
                f"batch IS NULL AND (committed_at IS NULL OR started_at < {old.format(_KEEP_DAYS)})"
                f" OR started_at < {old.format(_KEEP_STREAM_DAYS)})"
            )
        self.rejected.clean(connection, _DROP_WAIT_S)

    def drop(self, connection: Connection, *names: str) -> None:
        """Remove staging tables; a task of a dead attempt that is suspended may hold one of them."""
        for name in names:
            if name.startswith(STAGING):
                with contextlib.suppress(ConnectorError), connection.transaction():
                    connection.run(self._dialect.patience(_DROP_WAIT_S))
                    connection.run(f"DROP TABLE IF EXISTS {self._table.beside(name)}")
                    if self._is_mysql:
                        connection.run(f"DROP TABLE IF EXISTS {self._table.beside(name + GIVEN_TABLE)}")

    def _id(self, writer: Writer, number: int) -> str:
        parts = (_parts(writer)[0], str(number), str(self._target))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _parts(writer: Writer) -> tuple[str, int | None]:
    """The key of a run, or of a stream with the number of its micro-batch."""
    found = _BATCH.fullmatch(writer.run_key)
    return (found[1][:255], int(found[2])) if found else (writer.run_key[:255], None)


def _fenced(target: TableName, other: str = "") -> TargetChanged:
    reason = f"{other} was there before" if other else "another attempt of this run has begun this write"
    return TargetChanged(f"table '{target.shown}' was not changed: {reason}")
