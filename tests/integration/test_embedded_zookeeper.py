import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from queues import (
    DataDirectoryInUse,
    EmbeddedZooKeeper,
    PortTaken,
    ServerConfig,
    ServerStartFailed,
    running_server,
)
from queues.embedded.directory import RunningServer
from queues.embedded.packets import send_four_letter_word
from queues.embedded.ports import free_ports
from tests.servers.zookeeper import zookeeper_client

TICK_MS = 500


def config(data_dir: Path, *, port: int | None = None, owner: str = "") -> ServerConfig:
    return ServerConfig(data_dir, port=port, tick_ms=TICK_MS, owner=owner)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """At a requested port, in a data directory with an unusual name."""
    (port,) = free_ports("127.0.0.1", 1)
    data_dir = tmp_path_factory.mktemp("server") / "a b=ü\\n"
    with EmbeddedZooKeeper(config(data_dir, port=port, owner="up")) as running:
        yield running


def test_a_kazoo_client_is_served(server: EmbeddedZooKeeper) -> None:
    with zookeeper_client(server.hosts) as client:
        client.create("/a", b"1")
        assert client.get("/a")[0] == b"1"
    assert server.mode() == "standalone"


def test_a_fixed_port_is_used(server: EmbeddedZooKeeper) -> None:
    assert server.hosts == f"127.0.0.1:{server.config.port}"


def test_the_server_listens_on_the_loopback_address_only(server: EmbeddedZooKeeper) -> None:
    listening = psutil.Process(server.pid).net_connections("tcp")
    assert {
        (c.laddr.ip.removeprefix("::ffff:"), c.laddr.port) for c in listening if c.status == "LISTEN"
    } == {("127.0.0.1", server.port)}


def test_sessions_last_from_two_ticks_to_forty_seconds(server: EmbeddedZooKeeper) -> None:
    for asked_s, granted_ms in ((0.5, 1000), (5, 5000), (60, 40_000)):
        with zookeeper_client(server.hosts, timeout=asked_s) as client:
            session = f"sid=0x{client.client_id[0]:x},"
            (mine,) = [
                line for line in send_four_letter_word(server.hosts, "cons").splitlines() if session in line
            ]
            assert f",to={granted_ms}," in mine


def test_a_second_server_on_the_same_directory_is_refused_and_the_error_names_the_owner(
    server: EmbeddedZooKeeper,
) -> None:
    data_dir = server.config.data_dir
    with pytest.raises(DataDirectoryInUse) as caught:
        EmbeddedZooKeeper(config(data_dir)).start()
    assert server.mode() == "standalone"
    assert running_server(data_dir) is not None
    assert (caught.value.address, caught.value.pid, caught.value.owner) == (server.hosts, os.getpid(), "up")
    assert f"{server.hosts}, run by process {os.getpid()} (up)" in str(caught.value)


def test_a_server_is_found_by_its_directory_until_it_stops_and_calling_twice_changes_nothing(
    tmp_path: Path,
) -> None:
    server = EmbeddedZooKeeper(config(tmp_path, owner="up"))
    server.stop()
    assert running_server(tmp_path) is None
    pid = server.start().pid
    assert server.start().pid == pid
    assert running_server(tmp_path) == RunningServer(server.hosts, os.getpid(), "up")
    server.stop()
    server.stop()
    assert running_server(tmp_path) is None
    assert server.pid is None
    assert server.mode() is None


def test_data_and_port_survive_a_restart_and_a_port_that_is_taken_is_replaced(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server, zookeeper_client(server.hosts) as client:
        client.create("/kept", b"as it was")
        first, port = server.hosts, server.port
    with EmbeddedZooKeeper(config(tmp_path)) as server, zookeeper_client(server.hosts) as client:
        assert client.get("/kept")[0] == b"as it was"
        assert server.hosts == first
    with socket.create_server(("127.0.0.1", port)), EmbeddedZooKeeper(config(tmp_path)) as server:
        assert server.port != port
        assert server.mode() == "standalone"


def test_data_survives_a_kill_and_the_file_of_the_killed_server_is_not_believed(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path)).start()
    with zookeeper_client(server.hosts) as client:
        client.create("/kept", b"as it was")
        server.kill()
    assert not server.is_running()
    assert (tmp_path / "server.json").exists()
    assert running_server(tmp_path) is None
    with server, zookeeper_client(server.hosts) as client:
        assert client.get("/kept")[0] == b"as it was"


def test_a_fixed_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} on 127.0.0.1 is taken"):
            EmbeddedZooKeeper(config(tmp_path, port=port)).start()


def test_a_port_taken_behind_our_back_is_read_from_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queues.embedded.server.is_free", lambda _host, _port: True)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} on 127.0.0.1 is taken"):
            EmbeddedZooKeeper(config(tmp_path, port=port)).start()


@pytest.mark.parametrize("is_closed", [False, True])
def test_another_server_of_this_user_that_takes_the_port_first_is_not_taken_for_ours(
    is_closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer until the new server fails, and a closed one would take over its nodes."""
    with EmbeddedZooKeeper(config(tmp_path / "theirs")) as other, zookeeper_client(other.hosts) as client:
        client.create("/theirs")
        monkeypatch.setattr("queues.embedded.server.is_free", lambda _host, _port: True)
        late = replace(config(tmp_path / "late", port=other.port), closed=is_closed)
        with pytest.raises(PortTaken):
            EmbeddedZooKeeper(late).start()
        assert sorted(client.get_children("/")) == ["theirs", "zookeeper"]
        client.create("/open")


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    data_dir = tmp_path / "file" / "below"
    with pytest.raises(ServerStartFailed, match=f"data directory {data_dir}: Not a directory"):
        EmbeddedZooKeeper(config(data_dir)).start()


def test_the_error_of_a_server_that_dies_while_it_starts_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "version-2").touch()  # where ZooKeeper needs a folder
    server = EmbeddedZooKeeper(config(tmp_path))
    with pytest.raises(ServerStartFailed, match=r"died while it started: .*version-2.*see .*zookeeper\.log"):
        server.start()
    assert not server.is_running()


def test_the_error_of_a_jvm_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(ServerConfig(tmp_path, heap_mb=0))
    with pytest.raises(ServerStartFailed, match="heap"):
        server.start()
