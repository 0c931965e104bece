import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from queues import EmbeddedZooKeeper, ServerConfig, login_of, running_server
from queues.embedded.ports import free_ports
from queues.embedded.zkcli import CLIENT_CLASS, logged_in, zkcli_command
from queues.session import Acl, Login, Session, SessionSettings
from tests.another_user import as_another_user
from tests.servers.secured import ADA, SECRET, Secured
from tests.servers.zookeeper import zookeeper_client


def test_zkcli_prints_the_answer_and_nothing_else(zookeeper_hosts: str, zookeeper_root: str) -> None:
    with zookeeper_client(zookeeper_hosts) as client:
        client.create(zookeeper_root, b"\nWATCHER::\nConnecting to the data")

    def zkcli(*args: str) -> subprocess.CompletedProcess[str]:
        command = zkcli_command(zookeeper_hosts, args)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    got = zkcli("get", zookeeper_root)
    assert (got.returncode, got.stdout, got.stderr) == (0, "\nWATCHER::\nConnecting to the data\n", "")
    missing = zkcli("get", f"{zookeeper_root}/none")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == f"Node does not exist: {zookeeper_root}/none\n"


def test_no_content_of_a_node_controls_the_terminal(zookeeper_hosts: str, zookeeper_root: str) -> None:
    with zookeeper_client(zookeeper_hosts) as client:
        client.create(zookeeper_root, "\x1b]0;title\x07 \x9b2J\r hidden\ttab äöü".encode())
    here, end = os.openpty()
    command = zkcli_command(zookeeper_hosts, ["get", zookeeper_root])
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=end) as client_process:
        os.close(end)
        shown = b""
        with suppress(OSError):  # Linux: the other end of a terminal is closed
            while part := os.read(here, 4096):
                shown += part
        client_process.wait(60)
    os.close(here)
    # Java writes a character outside of its charset as a question mark.
    assert rb"\x1b]0;title\x07" in shown
    assert rb"\x0d hidden" in shown
    assert re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]|\x1b|\xc2[\x80-\x9f]", shown) is None


def test_zkcli_finds_the_member_that_answers(zookeeper_hosts: str) -> None:
    down = ",".join(f"127.0.0.1:{port}" for port in free_ports("127.0.0.1", 5))
    command = zkcli_command(f"{down},{zookeeper_hosts}", ["ls", "/zookeeper"])
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[config, quota]\n")


def test_zkcli_without_arguments_asks_for_commands(zookeeper_hosts: str) -> None:
    command = zkcli_command(zookeeper_hosts, [])
    done = subprocess.run(
        command, input="ls /zookeeper\n", capture_output=True, text=True, check=False, timeout=60
    )
    assert "[config, quota]" in done.stdout


def typed(*args: str, input: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:  # noqa: A002
    """`orchestrator zkcli` as typed, with its own state directory."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ORCHESTRATOR_", "ZOO"))
    }
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", "zkcli", *args],
        env=kept | {"ORCHESTRATOR_CONFIG": os.devnull} | environment,
        input=input,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture(scope="module")
def closed_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory with a running closed server, and a node that only its login can read."""
    state = tmp_path_factory.mktemp("state")
    config = ServerConfig(state / "zookeeper", tick_ms=500, closed=True, owner="test")
    with EmbeddedZooKeeper(config) as server:
        settings = SessionSettings(server.hosts, digest=login_of(config.data_dir), acl=Acl.CREATOR)
        with Session(settings) as session:
            session.ensure_path("/secret/inside")
        yield state


def test_it_logs_in_to_our_own_server_with_nothing_but_the_answer_on_stdout(closed_state: Path) -> None:
    listed = typed("ls", "/secret", ORCHESTRATOR_STATE_DIR=str(closed_state))
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "[inside]\n", "")
    asked = typed(input="ls /secret\n", ORCHESTRATOR_STATE_DIR=str(closed_state))
    assert "[inside]" in asked.stdout


def test_it_speaks_tls_and_logs_in_by_sasl_or_digest(secured: Secured, tmp_path: Path) -> None:
    password, tls = tmp_path / "password", secured.certificates.tls
    password.write_text(f"{SECRET}\n", "utf-8")
    password.chmod(0o600)
    for scheme in ("sasl", "digest"):
        folder, login = f"/{tmp_path.name}-{scheme}", Login(ADA.user, password_file=str(password))
        settings = SessionSettings(
            secured.hosts() + folder,
            tls=tls,
            acl=Acl.CREATOR,
            **{scheme: login},  # type: ignore[arg-type]
        )
        with Session(settings) as session:
            session.ensure_path("/inside")
        listed = typed(
            *("ls", "/"),
            ZOOKEEPER_HOSTS=settings.hosts,
            ORCHESTRATOR_STATE_DIR=str(tmp_path / "state"),
            ORCHESTRATOR_ZOOKEEPER_TLS__CA_FILE=tls.ca_file,
            ORCHESTRATOR_ZOOKEEPER_TLS__CERTIFICATE_FILE=tls.certificate_file,
            ORCHESTRATOR_ZOOKEEPER_TLS__KEY_FILE=tls.key_file,
            ORCHESTRATOR_ZOOKEEPER_LOGIN__SCHEME=scheme,
            ORCHESTRATOR_ZOOKEEPER_LOGIN__USER=ADA.user,
            ORCHESTRATOR_ZOOKEEPER_LOGIN__PASSWORD_FILE=str(password),
        )
        assert (listed.returncode, listed.stdout) == (0, "[inside]\n"), listed.stderr


def test_the_way_in_is_for_this_user_alone(closed_state: Path) -> None:
    server = running_server(closed_state / "zookeeper")
    assert server is not None
    settings = SessionSettings(server.address, digest=login_of(closed_state / "zookeeper"))

    def first_bytes() -> str:
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"\0\0\0\x01x")
            return connection.recv(100).hex()

    with logged_in(settings) as hosts:
        host, _, port = hosts.rpartition(":")
        assert as_another_user(first_bytes) in {"", "ConnectionResetError"}
        with zookeeper_client(hosts) as client:
            assert client.get_children("/secret") == ["inside"]


def words_of(pid: int) -> list[str]:
    """Arguments and environment of a process; raises psutil.NoSuchProcess if it has ended."""
    process = psutil.Process(pid)
    return [*process.cmdline(), *process.environ().values()]


def test_no_password_is_in_the_process_list_while_it_asks(closed_state: Path) -> None:
    login = login_of(closed_state / "zookeeper")
    assert login is not None
    environment = os.environ | {
        "ORCHESTRATOR_CONFIG": os.devnull,
        "ORCHESTRATOR_STATE_DIR": str(closed_state),
    }
    environment.pop("ZOOKEEPER_HOSTS", None)
    command = [sys.executable, "-m", "orchestrator", "zkcli"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as zkcli:
        assert zkcli.stdin is not None
        assert zkcli.stdout is not None
        zkcli.stdin.write("ls /secret\n")
        zkcli.stdin.flush()
        assert any("[inside]" in line for line in zkcli.stdout)
        words = words_of(zkcli.pid)
        for process in psutil.Process(zkcli.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # zkCli's own children, such as stty, end at once
                words += words_of(process.pid)
        assert "orchestrator" in words
        assert CLIENT_CLASS in words
        assert login.secret() not in " ".join(words)
        zkcli.stdin.close()
        zkcli.stdout.read()
