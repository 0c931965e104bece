"""The rows that targets have rejected, kept in the database for further attempts of their writes."""

import contextlib

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL
from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import GIVEN, REASON, Dialect, Staged
from spark_runner.connectors.jdbc.failures import EXISTS, DatabaseFailed
from spark_runner.connectors.jdbc.names import TableName

REJECTED = "orchestrator_rejected"
_DENIED = frozenset({"42501", "42000"})  # of PostgreSQL, and of MySQL


class RejectedRecord:
    """The table of these rows; `writes` is that of the writes, whose `owner` they have."""

    def __init__(self, dialect: Dialect, writes: TableName) -> None:
        self._dialect, self._writes, self._table = dialect, writes, writes.beside(REJECTED)
        self._is_mysql = dialect.family == MYSQL

    def has(self, connection: Connection, owner: str) -> bool:
        """Whether a committed write has rejected rows: who may not read them has written none."""
        if not self.exists(connection):
            return False
        try:
            with connection.transaction():
                return bool(connection.rows(f"SELECT 1 FROM {self._table} WHERE owner = ? LIMIT 1", owner))
        except DatabaseFailed as error:
            if error.state not in _DENIED:
                raise
            return False

    def query(self, owner: str) -> str:
        """The query for the rejected rows of a committed write, as `reason` and `given`."""
        return f"SELECT reason, given FROM {self._table} WHERE owner = '{owner}'"

    def exists(self, connection: Connection) -> bool:
        """Whether there is the table."""
        return bool(self._dialect.columns(connection, self._table))

    def create(self, connection: Connection) -> None:
        """Create the table if it is missing; raises ConnectorError without the rights on it."""
        names = "owner, reason, given"
        try:
            if not self.exists(connection):
                self._create(connection)
            self._dialect.check(connection, self._table)
            with connection.transaction():
                connection.run(
                    f"INSERT INTO {self._table} ({names}) SELECT {names} FROM {self._table} WHERE 1 = 0"
                )
        except DatabaseFailed as error:
            if error.state not in _DENIED:
                raise
            raise ConnectorError(
                f"{error}; a row of this write was refused, and the connector keeps it in '{self._table}':"
                " grant CREATE on its schema, or SELECT, INSERT and DELETE on the table, or name another"
                " schema by the option 'work_schema'"
            ) from error

    def _create(self, connection: Connection) -> None:
        text = "longtext" if self._is_mysql else "text"
        try:
            with connection.transaction():
                connection.run(
                    f"CREATE TABLE {self._table} (owner varchar(32) NOT NULL, reason {text} NOT NULL,"
                    f" given {text} NOT NULL){self._dialect.table_options}"
                )
                connection.run(f"CREATE INDEX {REJECTED}_owner ON {self._table} (owner)")
        except DatabaseFailed as error:
            if error.state not in EXISTS:
                raise

    def keep(self, connection: Connection, owner: str, staged: Staged) -> None:
        """Keep the staged rows that have a reason, within the transaction that moves the others."""
        connection.run(
            f"INSERT INTO {self._table} (owner, reason, given) SELECT ?, {REASON}, {GIVEN}"
            f" FROM {staged.given} WHERE {staged.condition} AND {REASON} IS NOT NULL",
            owner,
        )

    def forget(self, connection: Connection, owner: str) -> None:
        """Remove the rejected rows of a write, within the transaction that replaces its row."""
        if self.exists(connection):
            # The table may be that of another user.
            with contextlib.suppress(DatabaseFailed), connection.savepoint():
                connection.run(f"DELETE FROM {self._table} WHERE owner = ?", owner)

    def clean(self, connection: Connection, wait_s: int) -> None:
        """Remove the rejected rows of writes that have no row, if the user may."""
        owner = "w.owner"
        if self._is_mysql:  # tables of earlier versions have the collation of the database
            owner = f"CONVERT({owner} USING utf8mb4) COLLATE utf8mb4_bin"
        with contextlib.suppress(ConnectorError), connection.transaction():
            if not self.exists(connection):
                return
            connection.run(self._dialect.patience(wait_s))
            found = connection.rows(
                f"SELECT r.owner FROM (SELECT DISTINCT owner FROM {self._table}) r"
                f" WHERE NOT EXISTS (SELECT 1 FROM {self._writes} w WHERE {owner} = r.owner)"
            )
            for (each,) in found:
                connection.run(f"DELETE FROM {self._table} WHERE owner = ?", each)
