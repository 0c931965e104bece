"""A connection of the driver to a database, through the JDBC driver that Spark uses."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.java_classes import java_class
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL, parse
from spark_runner.connectors.jdbc.failures import of_java
from spark_runner.connectors.jdbc.sockets import CONNECT_SECONDS
from spark_runner.connectors.jdbc.wire import Login

_JDBC = "org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions"
_DIALECTS = "org.apache.spark.sql.jdbc.JdbcDialects"
_SECONDS = str(int(CONNECT_SECONDS))

Value = str | int | None
Row = list[str | None]


class Database:
    """A database of a table; `options` are those of the table."""

    def __init__(self, session: SparkSession, options: Mapping[str, Any]) -> None:
        self.session, self.address = session, parse(str(options["url"]))
        self._options = options

    @property
    def login(self) -> Login:
        """How the tasks connect without a JDBC driver."""
        return Login.of(self._options)

    def spark_options(self) -> dict[str, str]:
        """The options of Spark for this database; Spark hides them in plans and in its UI."""
        at, options = self.address, self._options
        found = {"url": at.url}
        if options["username"]:
            found["user"] = options["username"]
        if options["password"]:
            found["password"] = options["password"]
        if driver := options["driver"] or at.driver:
            found["driver"] = driver
        if at.family == POSTGRESQL:
            found |= {"ApplicationName": "orchestrator", "tcpKeepAlive": "true"}
            found |= {"connectTimeout": _SECONDS, "loginTimeout": _SECONDS}
            # No statement has a name: the server of a pooler may know it from another client.
            found["prepareThreshold"] = "0"
        elif at.family == MYSQL and driver.startswith("org.mariadb."):
            # Spark knows its dialect by this scheme, which the driver takes if its URL says so.
            mark = "&" if "?" in at.url else "?"
            found["url"] = f"jdbc:mysql:{at.url.split(':', 2)[2]}{mark}permitMysqlScheme"
            found["connectTimeout"] = f"{_SECONDS}000"
        return {name: value for name, value in found.items() if name not in at.parameters}

    @contextlib.contextmanager
    def connection(self) -> Iterator["Connection"]:
        """A connection for several transactions; raises ConnectorError."""
        settings = {**self.spark_options(), "dbtable": "none"}
        with self.errors():
            given = java_class(self.session, "org.apache.spark.api.python.PythonUtils").toScalaMap(settings)
            dialect = java_class(self.session, _DIALECTS).get(settings["url"])
            connect = dialect.createConnectionFactory(java_class(self.session, _JDBC)(given))
            opened = connect.apply(-1)
        try:
            with self.errors():
                opened.setAutoCommit(False)
            yield Connection(self, opened)
        finally:
            with contextlib.suppress(Py4JError):
                opened.close()

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise errors of the database as ConnectorError, with a reason."""
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            found = of_java(self.address, error)
            if found is None and "ClassNotFoundException" in str(error):
                raise ConnectorError(
                    f"no JDBC driver for '{self.address.plain}' is among the jars of the job; add it to"
                    " `spark.packages` or `spark.jars`, and name its class in the option 'driver'"
                ) from error
            if found is None:
                raise
            raise found from error


class Connection:
    """One connection; its transactions are all or nothing."""

    def __init__(self, database: Database, opened: Any) -> None:
        self._database, self._opened = database, opened

    @property
    def shown(self) -> str:
        """The database in messages."""
        return self._database.address.shown

    def is_direct(self) -> bool:
        """Whether PostgreSQL itself is at the other end, and no pooler that may change servers in between.

        For the driver of PostgreSQL itself. A pooler gives its clients made-up ids of processes, for their
        requests to cancel.
        """
        with self._database.errors():
            given = self._opened.getBackendPID()
        return str(given) == self.value("SELECT pg_backend_pid()")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end, or roll back at an error; raises ConnectorError."""
        try:
            yield
            with self._database.errors():
                self._opened.commit()
        except BaseException:
            with contextlib.suppress(Py4JError):
                self._opened.rollback()
            raise

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo the statements within if one of them fails; the transaction goes on."""
        with self._database.errors():
            point = self._opened.setSavepoint()
        try:
            yield
        except BaseException:
            with contextlib.suppress(Py4JError):
                self._opened.rollback(point)
                self._opened.releaseSavepoint(point)  # or later ones would be within it
            raise
        with self._database.errors():
            self._opened.releaseSavepoint(point)

    def run(self, statement: str, *values: Value) -> int:
        """Run a statement; returns the number of changed rows."""
        with self._database.errors(), _closing(self._prepared(statement, values)) as prepared:
            return int(prepared.executeUpdate())

    def rows(self, statement: str, *values: Value) -> list[Row]:
        """The rows of a query, as texts."""
        with self._database.errors(), _closing(self._prepared(statement, values)) as prepared:
            found, result = list[Row](), prepared.executeQuery()
            columns = range(1, result.getMetaData().getColumnCount() + 1)
            while result.next():
                found.append([result.getString(index) for index in columns])
            return found

    def value(self, statement: str, *values: Value) -> str | None:
        """The only value of a query; None without a row."""
        found = self.rows(statement, *values)
        return found[0][0] if found else None

    def _prepared(self, statement: str, values: Sequence[Value]) -> Any:
        prepared = self._opened.prepareStatement(statement)
        for index, value in enumerate(values, start=1):
            if isinstance(value, int):
                prepared.setLong(index, value)
            else:
                prepared.setString(index, value)
        return prepared


@contextlib.contextmanager
def _closing(opened: Any) -> Iterator[Any]:
    try:
        yield opened
    finally:
        with contextlib.suppress(Py4JError):
            opened.close()
