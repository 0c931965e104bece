"""Connections to PostgreSQL and MariaDB over TLS, of the driver and of its tasks."""

from dataclasses import replace
from pathlib import Path

import pytest

from spark_runner.connectors.jdbc.wire import Login, Wire, WireError
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import PASSWORD, DatabaseServer, mariadb_at, postgres_at
from tests.servers.secured import Certificates

LINES = [b"%d\t%s\n" % (number, b"x" * 1000) for number in range(3_000)]
VERIFIED = {"postgres": "sslmode=verify-full&sslrootcert", "mariadb": "sslMode=verify-full&serverSslCert"}


@pytest.fixture
def secured(postgres_tls_port: int) -> DatabaseServer:
    """An empty database, at the name that the certificate of its server has."""
    return replace(postgres_at(postgres_tls_port), host="localhost")


def login(database: DatabaseServer, mode: str, ca: str, host: str = "localhost") -> Login:
    parameters = {"sslmode": mode, "sslrootcert": ca}
    return Login(host, database.port, database.database, database.user, PASSWORD, parameters)


def test_rows_go_over_tls(secured: DatabaseServer, certificates: Certificates) -> None:
    secured.run("CREATE TABLE t (id int, name text)")
    with Wire(login(secured, "verify-full", certificates.ca)) as wire:
        of_mine = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert list(wire.copy_out(f"COPY ({of_mine}) TO STDOUT")) == [b"t\n"]
        wire.copy_in("COPY t FROM STDIN", [b"".join(LINES)])
        assert list(wire.copy_out("COPY (SELECT * FROM t ORDER BY id) TO STDOUT")) == LINES


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
def test_a_server_of_another_authority_is_refused(
    secured: DatabaseServer, certificates: Certificates, mode: str
) -> None:
    with pytest.raises(WireError, match=r"TLS with localhost.*certificate verify failed") as caught:
        Wire(login(secured, mode, certificates.other_ca))
    assert caught.value.state == "08006"


def test_the_name_of_the_server_counts_in_one_mode(
    secured: DatabaseServer, certificates: Certificates
) -> None:
    with Wire(login(secured, "verify-ca", certificates.ca, "127.0.0.1")) as wire:
        wire.run("SELECT 1")
    with pytest.raises(WireError, match="certificate is not valid"):
        Wire(login(secured, "verify-full", certificates.ca, "127.0.0.1"))


@pytest.mark.parametrize("server", list(VERIFIED))
def test_a_script_writes_and_reads_over_tls(
    request: pytest.FixtureRequest,
    certificates: Certificates,
    run_script: Run,
    tmp_path: Path,
    server: str,
) -> None:
    port: int = request.getfixturevalue(f"{server}_tls_port")
    secured = replace((postgres_at if server == "postgres" else mariadb_at)(port), host="localhost")
    secured.run("CREATE TABLE t (id int, name varchar(20))")

    def copied(ca: str) -> list[int]:
        verified = f"{secured.database}?{VERIFIED[server]}={ca}"
        table = secured.options("t").replace(secured.database, verified)
        found = run_script(
            f"""CREATE TABLE t (id INT, name STRING) {table};
            CREATE TABLE out (id INT, name STRING) USING parquet OPTIONS (path '{tmp_path}/out');
            INSERT INTO t VALUES (1, 'a'), (2, 'b');
            INSERT INTO out SELECT * FROM t;"""
        )
        return [each["rows"] for each in found]

    with pytest.raises(SqlError, match=r"at localhost:\d+ does not answer: .*certificat"):
        copied(certificates.other_ca)
    assert copied(certificates.ca) == [2, 2]
    assert secured.run("SELECT count(*) FROM t") == [["2"]]
