"""`zookeeper --ensemble` with real servers: what keeps a server from being a member, and who has rights."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from orchestrator.cli.ensemble import client_certificate, client_settings
from orchestrator.doctor.ensemble import servers as status_of_servers
from queues import Ensemble, Login, SessionSettings, Tls, parse_members
from queues.embedded.ports import free_ports
from tests.acceptance.support import Running, Shell, assert_no_traceback
from tests.waiting import wait_until

SCRIPT = Path(__file__).parents[2] / "deploy/make-secrets.sh"

pytestmark = pytest.mark.timeout(400)


class Servers:
    """An ensemble of three servers, each with a state directory, on one host."""

    def __init__(self, shell: Shell) -> None:
        ports = free_ports("127.0.0.1", 9)
        groups = [ports[at : at + 3] for at in (0, 3, 6)]
        self.members = ",".join(":".join(["127.0.0.1", *map(str, group)]) for group in groups)
        self.hosts = [f"127.0.0.1:{group[0]}" for group in groups]
        self._shell = shell
        for name in ("secrets", "others"):
            subprocess.run([SCRIPT, shell.directory / name, "127.0.0.1"], check=True, capture_output=True)

    def start(self, number: int, *, key: str = "secrets", login: str = "secrets", state: int = 0) -> Running:
        return self._shell.start(
            *("zookeeper", "--ensemble", self.members, "--id", str(number)),
            *("--certificate", f"{key}/ensemble.pem"),
            *("--password-file", f"{login}/zookeeper-password"),
            ORCHESTRATOR_STATE_DIR=str(self._shell.directory / f"state-{state or number}"),
        )


@pytest.fixture
def servers(shell: Shell) -> Servers:
    return Servers(shell)


def test_an_ensemble_serves_its_login_alone_and_refuses_strangers(shell: Shell, servers: Servers) -> None:
    first = servers.start(1)
    wait_until(lambda: "it serves no requests" in error_of_first(shell, servers), 60, "server 1 waits")
    second = servers.start(2)
    for server in (first, second):
        server.wait_for_words(" serves as ")
    assert "server 1 of 3" in first.stderr
    assert_settings_are_of_clients(shell, first)

    stranger = servers.start(3, key="others").wait()
    assert (stranger.code, "runs with another certificate" in stranger.stderr) == (1, True), stranger.stderr
    other_login = servers.start(3, login="others").wait()
    assert other_login.code == 1
    assert "the nodes of the ensemble have another login" in other_login.stderr
    twice = servers.start(2, state=4).wait()
    assert (twice.code, "is taken by another process" in twice.stderr) == (1, True), twice.stderr
    for ended in (stranger, other_login, twice):
        assert_no_traceback(ended.stderr)

    # The third server can still join, and then take the place of a lost one.
    third = servers.start(3)
    third.wait_for_words("serves as follower")
    roles = sorted(server["role"] for server in cluster_servers(shell))
    assert roles == ["follower", "follower", "leader"]
    first.kill()
    second.terminate()
    assert second.wait().code == 0
    third.wait_for_words("without a majority")
    servers.start(2).wait_for_words(" serves as ")
    third.wait_for_words("is now ")

    client = KazooClient(
        servers.hosts[2], use_ssl=True, ca=str(shell.directory / "secrets/ensemble.crt"), timeout=10
    )
    client.start(timeout=60)
    try:
        for path in ("/", "/zookeeper/config"):
            with pytest.raises(NoAuthError):
                client.get_children(path) if path == "/" else client.get(path)
        with pytest.raises(NoAuthError):
            client.create("/mine")
    finally:
        client.stop()
        client.close()

    third.terminate()
    assert third.wait().code == 0
    mistaken = servers.start(3, state=1).wait()
    assert mistaken.code == 1
    assert "is of server 1 of the ensemble, and this is server 3" in mistaken.stderr


def assert_settings_are_of_clients(shell: Shell, server: Running) -> None:
    """What the server prints for clients names files that clients may have, and makes a client work."""
    server.wait_for_words("zookeeper_login = ")
    printed = "\n".join(re.findall(r"^  (zookeeper_\w+ = .*)$", server.stderr, re.MULTILINE))
    ca_file = Path(tomllib.loads(printed)["zookeeper_tls"]["ca_file"])
    assert ca_file == shell.directory / "secrets/ensemble.crt"
    assert "PRIVATE KEY" not in ca_file.read_text("utf-8")
    assert "openssl x509" not in server.stderr
    shell.write("config.toml", printed)
    found = {server["address"]: server["role"] for server in cluster_servers(shell)}
    assert sorted(found.values()) == ["", "follower", "leader"]


def error_of_first(shell: Shell, started: Servers) -> str:
    """Why server 1 has no role."""
    tls = Tls(str(shell.directory / "secrets/ensemble.crt"))
    return status_of_servers(SessionSettings(started.hosts[0], tls=tls))[0].error


def cluster_servers(shell: Shell) -> list[dict[str, str]]:
    """What `cluster status` says of the servers in `config.toml`."""
    config = str(shell.directory / "config.toml")
    status = shell.type("cluster", "status", "-o", "json", ORCHESTRATOR_CONFIG=config).json()
    found: list[dict[str, str]] = status["servers"]
    return found


@pytest.mark.parametrize("name", ["ensemble.pem", "ensemble.crt"])
def test_clients_never_get_the_key(tmp_path: Path, name: str) -> None:
    subprocess.run([SCRIPT, tmp_path / "secrets", "127.0.0.1"], check=True, capture_output=True)
    pair = (tmp_path / "secrets/ensemble.pem").read_text("utf-8")
    key, beside = tmp_path / name, tmp_path / "ensemble.crt"
    ensemble = Ensemble(parse_members("a,b,c"), 1, key, Login("ada", "password"))
    key.write_text(pair, "utf-8")
    assert client_certificate(ensemble) is None
    beside.write_text(pair, "utf-8")
    assert client_certificate(ensemble) is None
    assert 'ca_file = "FILE"' in client_settings(ensemble)[1]
    shutil.copy(tmp_path / "secrets/ensemble.crt", beside)
    assert client_certificate(ensemble) == beside


@pytest.mark.usefixtures("servers")
def test_secrets_that_others_may_read_are_reported(shell: Shell) -> None:
    for name in ("ensemble.pem", "zookeeper-password"):
        (shell.directory / "secrets" / name).chmod(0o644)
    ended = shell.type(
        *("zookeeper", "--ensemble", "192.0.2.1,192.0.2.2,192.0.2.3", "--id", "1"),
        *("--certificate", "secrets/ensemble.pem", "--password-file", "secrets/zookeeper-password"),
    )
    assert (ended.code, "no address of this host" in ended.stderr) == (1, True), ended.stderr
    for what in ("key", "password"):
        assert f"warning: the {what} of the ensemble is in " in ended.stderr
    assert ended.stderr.count("every user of this host may read") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--id", "2"], "for a server of an --ensemble"),
        (["--ensemble", "zk1,zk2,zk3"], "needs --certificate and --password-file"),
        (["--ensemble", "zk1,zk2", "--certificate", "x", "--password-file", "x"], "needs 3 servers"),
        (["--ensemble", "a,b,c", "--certificate", "x", "--password-file", "x"], "by --id, from 1 to 3"),
        (
            ["--ensemble", "a,b,c", "--id", "4", "--certificate", "x", "--password-file", "x"],
            "names servers 1 to 3",
        ),
        (
            ["--ensemble", "a,b,c", "--id", "1", "--certificate", "x", "--password-file", "x"],
            "cannot be read",
        ),
        (["--ensemble", "a,b,c", "--port", "2181"], "not in --port"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(shell: Shell, arguments: list[str], words: str) -> None:
    ended = shell.type_quickly("zookeeper", *arguments)  # it starts no server
    assert (ended.code, words in ended.stderr) == (2, True), ended.stderr
    assert_no_traceback(ended.stderr)
