"""Real PostgreSQL and MariaDB servers for tests: from the environment, else the programs of Debian."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from queues.embedded.ports import free_ports
from spark_runner.connectors.registry import BUILT_IN
from tests.servers.cache import cached
from tests.servers.secured import Certificates
from tests.servers.unprivileged import give_away, private_folder, run_as_user, running
from tests.servers.zookeeper import unavailable

if TYPE_CHECKING:  # not loaded in a test run without Spark
    from pyspark.sql import SparkSession

DRIVERS = BUILT_IN["jdbc"].packages
PASSWORD = "tulip-42-Meadow"  # noqa: S105 - of servers that tests start
_FETCH_S = 240


@dataclass(frozen=True)
class DatabaseServer:
    """A server, and an empty database of it for one test."""

    kind: str
    host: str
    port: int
    database: str
    user: str
    ask: Callable[[str, str], str] = field(repr=False)  # the database and statements -> rows of texts

    @property
    def url(self) -> str:
        return f"jdbc:{self.kind}://{self.host}:{self.port}/{self.database}"

    def run(self, statements: str) -> list[list[str]]:
        """Run statements; returns the cells of the rows of the last ones."""
        return [line.split("\t") for line in self.ask(self.database, statements).splitlines()]

    def options(self, table: str, **more: object) -> str:
        """The WITH of a table."""
        given = {"connector": "jdbc", "url": self.url, "username": self.user, "password": PASSWORD}
        given |= {"table": table} | {key: str(value) for key, value in more.items()}
        return "WITH (" + ", ".join(f"'{key}' = '{value}'" for key, value in given.items()) + ")"


@contextmanager
def local_postgres(certificates: Certificates | None = None) -> Iterator[int]:
    """The port of a PostgreSQL of our own, which takes TLS if it has certificates."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not programs:
        unavailable("no PostgreSQL: install the Debian package postgresql")
    (port,) = free_ports("127.0.0.1", 1)
    with private_folder("postgres-") as folder:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"]
        if certificates:
            key = _server_key(certificates, folder)
            settings += ["ssl=on", f"ssl_cert_file={key}", f"ssl_key_file={key}"]
        give_away(folder)
        run_as_user(
            [
                *(str(programs[0] / "initdb"), "-D", str(folder / "data"), "-U", "admin", "-E", "UTF8"),
                *("--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--locale=C.UTF-8"),
            ]
        )
        command = [str(programs[0] / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
        command += [part for each in settings for part in ("-c", each)]
        with running(command, folder, lambda: _psql(port, "postgres", "SELECT 1") == "1\n"):
            yield port


@contextmanager
def _local_mariadb(certificates: Certificates | None = None) -> Iterator[int]:
    """The port of a MariaDB of our own, which takes TLS if it has certificates."""
    if shutil.which("mariadbd") is None:
        unavailable("no MariaDB: install the Debian package mariadb-server")
    (port,) = free_ports("127.0.0.1", 1)
    with private_folder("mariadb-") as folder:
        data, socket = folder / "data", folder / "socket"
        # A server that starts removes the temporary tables of others in its `tmpdir`.
        own = (f"--datadir={data}", f"--tmpdir={folder}")
        key = _server_key(certificates, folder) if certificates else None
        give_away(folder)
        run_as_user(
            [
                *("mariadb-install-db", "--no-defaults", *own, "--skip-test-db"),
                "--auth-root-authentication-method=normal",
            ]
        )
        init = folder / "init.sql"
        init.write_text(
            f"CREATE USER admin IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO admin WITH GRANT OPTION;\n"
        )
        command = [
            *("mariadbd", "--no-defaults", *own, f"--socket={socket}", f"--port={port}"),
            *("--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}", f"--init-file={init}"),
            *("--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"),
            *((f"--ssl-cert={key}", f"--ssl-key={key}") if key else ()),
        ]
        with running(command, folder, lambda: _mariadb(port, "", "SELECT 1") == "1\n"):
            yield port


@contextmanager
def local_pgbouncer(postgres: int) -> Iterator[int]:
    """The port of a PgBouncer that gives each transaction one of two connections to this PostgreSQL."""
    if shutil.which("pgbouncer") is None:
        unavailable("no PgBouncer: install the Debian package pgbouncer")
    (port,) = free_ports("127.0.0.1", 1)
    with private_folder("pgbouncer-") as folder:
        users, settings = folder / "users", folder / "pgbouncer.ini"
        users.write_text(f'"admin" "{PASSWORD}"\n')
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={postgres}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\n"
            "pool_mode = transaction\ndefault_pool_size = 2\n"
            "ignore_startup_parameters = extra_float_digits\n"
        )
        give_away(folder)
        command = ["pgbouncer", str(settings)]
        with running(command, folder, lambda: _psql(port, "postgres", "SELECT 1") == "1\n"):
            yield port


@pytest.fixture(scope="session")
def postgres_port() -> Iterator[int]:
    """The port of a PostgreSQL for all tests of a worker process."""
    with local_postgres() as port:
        yield port


@pytest.fixture(scope="session")
def postgres_tls_port(certificates: Certificates) -> Iterator[int]:
    """The port of a PostgreSQL with TLS for all tests of a worker process."""
    with local_postgres(certificates) as port:
        yield port


@pytest.fixture(scope="session")
def mariadb_port() -> Iterator[int]:
    """The port of a MariaDB for all tests of a worker process."""
    with _local_mariadb() as port:
        yield port


@pytest.fixture(scope="session")
def mariadb_tls_port(certificates: Certificates) -> Iterator[int]:
    """The port of a MariaDB with TLS for all tests of a worker process."""
    with _local_mariadb(certificates) as port:
        yield port


@pytest.fixture
def postgres(postgres_port: int) -> DatabaseServer:
    """An empty database of PostgreSQL."""
    return postgres_at(postgres_port)


@pytest.fixture
def mariadb(mariadb_port: int) -> DatabaseServer:
    """An empty database of MariaDB."""
    return mariadb_at(mariadb_port)


@pytest.fixture(params=["postgres", "mariadb"])
def database(request: pytest.FixtureRequest) -> DatabaseServer:
    """An empty database of each kind."""
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


def postgres_at(port: int, name: str = "") -> DatabaseServer:
    """An empty database of the server at this port."""
    name = name or f"test_{uuid.uuid4().hex}"
    _psql(port, "postgres", f"CREATE DATABASE {name}")
    return DatabaseServer("postgresql", "127.0.0.1", port, name, "admin", lambda *given: _psql(port, *given))


def mariadb_at(port: int) -> DatabaseServer:
    """An empty database of the server at this port."""
    name = f"test_{uuid.uuid4().hex}"
    _mariadb(port, "", f"CREATE DATABASE {name}")
    return DatabaseServer("mariadb", "127.0.0.1", port, name, "admin", lambda *given: _mariadb(port, *given))


def add_drivers(spark: "SparkSession") -> None:
    """Make the JDBC drivers known to the JVM of a session, and to its executors."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the class loader
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - likewise
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known = str(context.addedJars())
    for jar in driver_jars():
        if jar.name not in known:
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
            context.addJar(str(jar))


def driver_jars() -> list[Path]:
    """The jars of the JDBC drivers, fetched once for all checkouts of this machine."""
    if shutil.which("mvn") is None:
        unavailable("no JDBC drivers: they need mvn")
    folders = [cached(f"jdbc-{name.rpartition(':')[2]}", partial(_fetch, name)) for name in DRIVERS]
    return [next(folder.glob("*.jar")) for folder in folders]


def _fetch(artifact: str, folder: Path) -> None:
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    try:
        subprocess.run(command, check=True, cwd=folder, timeout=_FETCH_S, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        unavailable(f"no JDBC drivers: {artifact} was not fetched within {_FETCH_S} s")
    except subprocess.CalledProcessError as error:
        unavailable(f"no JDBC drivers: {artifact} was not fetched: {error.stdout[-2000:]}")


def _server_key(certificates: Certificates, folder: Path) -> Path:
    """The key and the certificate of the server, as a file of its own user."""
    key = folder / "server.pem"
    shutil.copyfile(certificates.server, key)
    key.chmod(0o600)
    return key


def _psql(port: int, database: str, statements: str) -> str:
    at = ["-h", "127.0.0.1", "-p", str(port), "-U", "admin", "-d", database]
    command = ["psql", *at, "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", statements]
    return _answer(command, {"PGPASSWORD": PASSWORD})


def _mariadb(port: int, database: str, statements: str) -> str:
    at = ["-h127.0.0.1", f"-P{port}", "-uadmin", "--default-character-set=utf8mb4"]
    return _answer(["mariadb", *at, "-N", "-B", database, "-e", statements], {"MYSQL_PWD": PASSWORD})


def _answer(command: Sequence[str], environment: dict[str, str]) -> str:
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    return found.stdout if found.returncode == 0 else f"error: {found.stderr}"
