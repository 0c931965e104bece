import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient

import queues
from queues.embedded import (
    DataDirectoryInUse,
    EmbeddedEnsemble,
    EmbeddedZooKeeper,
    PortTaken,
    RunningServer,
    ServerConfig,
    ServerStartFailed,
    running_server,
)
from queues.embedded.guarded import GRACE_S
from queues.embedded.ports import free_ports
from queues.four_letter import ask
from queues.zkcli import zkcli_command
from tests.servers.zookeeper import zookeeper_server
from tests.waiting import wait_until

TICK_MS = 500

GONE_S = 20
"""The guard's grace, its kill, and a slow machine."""

OWNER_PROGRAM = """
import signal, sys
from pathlib import Path
from queues.embedded import EmbeddedZooKeeper, ServerConfig
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
with EmbeddedZooKeeper(ServerConfig(Path(sys.argv[1]), tick_ms=500, owner="child")) as server:
    print(server.hosts, server.pid, server.guard_pid, flush=True)
    sys.stdin.read()
"""


def config(data_dir: Path, *, port: int | None = None, owner: str = "") -> ServerConfig:
    return ServerConfig(data_dir, port=port, tick_ms=TICK_MS, owner=owner)


@contextmanager
def client_of(hosts: str, timeout: float = 10) -> Iterator[KazooClient]:
    client = KazooClient(hosts, timeout=timeout)
    try:
        client.start(timeout=30)
        yield client
    finally:
        client.stop()
        client.close()


def ended(process: psutil.Process) -> bool:
    """Tell whether a process runs no more; one without a parent stays a zombie until init looks."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Owner:
    """Another Python process that owns a server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line, "the owner did not start its server"
        self.hosts = line[0]
        self.server, self.guard = psutil.Process(int(line[1])), psutil.Process(int(line[2]))

    def gone(self) -> bool:
        return ended(self.server) and ended(self.guard)


@contextmanager
def owner_of(data_dir: Path) -> Iterator[Owner]:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER_PROGRAM, str(data_dir)],
        env={**os.environ, "PYTHONPATH": str(Path(queues.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Owner(process)
        finally:
            process.kill()


def test_a_kazoo_client_is_served(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server, client_of(server.hosts) as client:
        client.create("/a", b"1")
        assert client.get("/a")[0] == b"1"
        assert server.mode() == "standalone"
        assert server.hosts.startswith("127.0.0.1:")


def test_the_server_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server:
        listening = psutil.Process(server.pid).net_connections("tcp")
        assert {
            (c.laddr.ip.removeprefix("::ffff:"), c.laddr.port) for c in listening if c.status == "LISTEN"
        } == {("127.0.0.1", server.port)}


def test_sessions_last_from_two_ticks_to_forty_seconds(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server:
        for asked_s, granted_ms in ((0.5, 1000), (5, 5000), (60, 40_000)):
            with client_of(server.hosts, timeout=asked_s) as client:
                session = f"sid=0x{client.client_id[0]:x},"
                (mine,) = [line for line in ask(server.hosts, "cons").splitlines() if session in line]
                assert f",to={granted_ms}," in mine


def test_data_and_port_survive_a_restart(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server, client_of(server.hosts) as client:
        client.create("/kept", b"as it was")
        first = server.hosts
    with EmbeddedZooKeeper(config(tmp_path)) as server, client_of(server.hosts) as client:
        assert client.get("/kept")[0] == b"as it was"
        assert server.hosts == first


def test_data_survives_a_kill(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path)).start()
    with client_of(server.hosts) as client:
        client.create("/kept", b"as it was")
        server.kill()
    assert not server.is_running()
    with server, client_of(server.hosts) as client:
        assert client.get("/kept")[0] == b"as it was"


def test_another_port_is_taken_when_that_of_the_last_run_is_not_free(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server:
        first = server.port
    with socket.create_server(("127.0.0.1", first)), EmbeddedZooKeeper(config(tmp_path)) as server:
        assert server.port != first
        assert server.mode() == "standalone"


def test_a_fixed_port_is_used(tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    with EmbeddedZooKeeper(config(tmp_path, port=port)) as server:
        assert server.hosts == f"127.0.0.1:{port}"


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


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    data_dir = tmp_path / "file" / "below"
    with pytest.raises(ServerStartFailed, match=f"data directory {data_dir}: Not a directory"):
        EmbeddedZooKeeper(config(data_dir)).start()


def test_a_server_that_dies_while_it_starts_tells_why(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "version-2").touch()  # where ZooKeeper wants a folder
    server = EmbeddedZooKeeper(config(tmp_path))
    with pytest.raises(ServerStartFailed, match=r"died while it started: .*version-2.*see .*zookeeper\.log"):
        server.start()
    assert not server.is_running()


def test_a_jvm_that_cannot_start_tells_why(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(ServerConfig(tmp_path, heap_mb=0))
    with pytest.raises(ServerStartFailed, match="heap"):
        server.start()


def test_a_data_directory_may_have_any_name(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path / "a b=ü\\n")) as server:
        assert server.mode() == "standalone"


def test_a_second_server_on_the_same_directory_is_refused_and_told_whose_it_is(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path, owner="up")) as server:
        with pytest.raises(DataDirectoryInUse) as caught:
            EmbeddedZooKeeper(config(tmp_path)).start()
        assert server.mode() == "standalone"
        assert running_server(tmp_path) is not None
    assert (caught.value.address, caught.value.pid, caught.value.owner) == (server.hosts, os.getpid(), "up")
    assert f"{server.hosts}, run by process {os.getpid()} (up)" in str(caught.value)


def test_a_running_server_is_found_by_its_directory_until_it_stops(tmp_path: Path) -> None:
    assert running_server(tmp_path) is None
    with EmbeddedZooKeeper(config(tmp_path, owner="up")) as server:
        assert running_server(tmp_path) == RunningServer(server.hosts, os.getpid(), "up")
    assert running_server(tmp_path) is None


def test_the_file_of_a_killed_server_is_not_believed(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server:
        server.kill()
        assert (tmp_path / "server.json").exists()
        assert running_server(tmp_path) is None


def test_no_process_is_left_when_the_owner_is_killed(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        assert not ended(owner.server)
        owner.process.kill()
        wait_until(owner.gone, GONE_S, "server and guard are gone")
    assert running_server(tmp_path) is None


def test_a_new_server_can_start_at_once_when_the_owner_is_killed(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        owner.process.kill()
        owner.process.wait()
        with EmbeddedZooKeeper(config(tmp_path)) as server:
            assert server.mode() == "standalone"
            assert owner.gone()


def test_a_stuck_server_is_killed_when_the_owner_is_killed(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        owner.server.suspend()  # takes no TERM
        owner.process.kill()
        wait_until(owner.gone, GONE_S, "server and guard are gone")


def test_no_process_is_left_when_the_guard_is_killed(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path)).start()
    assert server.pid is not None
    assert server.guard_pid is not None
    process = psutil.Process(server.pid)
    os.kill(server.guard_pid, signal.SIGKILL)
    wait_until(lambda: ended(process), GONE_S, "the server is gone")
    wait_until(lambda: not server.is_running(), GONE_S, "the owner sees it")
    assert running_server(tmp_path) is None
    server.stop()


def test_the_owner_sees_that_the_server_died(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server:
        assert server.pid is not None
        psutil.Process(server.pid).kill()
        wait_until(lambda: not server.is_running(), GONE_S, "the owner sees it")
        assert server.mode() is None
        assert server.start().mode() == "standalone"


def test_an_interrupt_from_the_terminal_reaches_the_owner_and_not_the_server(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        assert owner.process.stdout is not None
        assert owner.process.stdin is not None
        os.killpg(owner.process.pid, signal.SIGINT)
        assert owner.process.stdout.readline() == "interrupted\n"
        with client_of(owner.hosts) as client:
            assert client.get_children("/") == ["zookeeper"]
        owner.process.stdin.close()  # the program ends in order
        assert owner.process.wait(GONE_S) == 0
        assert owner.gone()


def test_stopping_and_starting_twice_changes_nothing(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path))
    server.stop()
    pid = server.start().pid
    assert server.start().pid == pid
    server.stop()
    server.stop()
    assert server.pid is None
    assert server.mode() is None


def test_an_ensemble_survives_its_leader_and_takes_it_back(tmp_path: Path) -> None:
    with EmbeddedEnsemble(tmp_path, tick_ms=TICK_MS) as ensemble, client_of(ensemble.hosts) as client:
        assert sorted(server.mode() or "" for server in ensemble.members.values()) == [
            "follower",
            "follower",
            "leader",
        ]
        client.create("/before", b"1")
        first = ensemble.leader()
        assert first is not None
        ensemble.members[first].kill()
        second = wait_until(ensemble.leader, 30, "another leader is elected")
        assert second != first
        client.retry(client.create, "/after", b"2")

        member = ensemble.members[first].start()
        assert member.mode() == "follower"
        ensemble.members[second].stop()
        wait_until(ensemble.leader, 30, "a leader with the member that came back")
        with client_of(member.hosts) as other:
            assert other.retry(other.get, "/after")[0] == b"2"


def test_an_ensemble_comes_back_with_its_ports_and_data(tmp_path: Path) -> None:
    with EmbeddedEnsemble(tmp_path, tick_ms=TICK_MS) as ensemble, client_of(ensemble.hosts) as client:
        client.create("/kept")
        first = ensemble.hosts
    with EmbeddedEnsemble(tmp_path, tick_ms=TICK_MS) as ensemble, client_of(ensemble.hosts) as client:
        assert ensemble.hosts == first
        assert client.exists("/kept")


def test_a_forked_child_does_not_hold_up_the_end(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path)).start()
    assert server.pid is not None
    process = psutil.Process(server.pid)
    held, hold = os.pipe()
    child = os.fork()
    if not child:  # has a copy of the pipe by which the guard learns of our end
        os.close(hold)
        os.read(held, 1)
        os._exit(0)
    os.close(held)
    try:
        started = time.monotonic()
        server.stop()
        assert ended(process)
        assert time.monotonic() - started < GRACE_S
    finally:
        os.close(hold)
        os.waitpid(child, 0)


def test_tests_use_the_server_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZOOKEEPER_HOSTS", "zk1:2181,zk2:2181")
    with zookeeper_server(tmp_path) as hosts:
        assert hosts == "zk1:2181,zk2:2181"


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_tests_without_a_server_are_skipped_at_a_desk_and_fail_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("ZOOKEEPER_HOSTS", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match=r"no ZooKeeper: .*Java 17 or newer"), zookeeper_server(tmp_path):
        pass


def test_zkcli_prints_the_answer_and_nothing_else(zookeeper_hosts: str, zookeeper_root: str) -> None:
    with client_of(zookeeper_hosts) as client:
        client.create(zookeeper_root, b"\nWATCHER::\nConnecting to the data")

    def zkcli(*args: str) -> subprocess.CompletedProcess[str]:
        command = zkcli_command(zookeeper_hosts, args)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    got = zkcli("get", zookeeper_root)
    assert (got.returncode, got.stdout, got.stderr) == (0, "\nWATCHER::\nConnecting to the data\n", "")
    missing = zkcli("get", f"{zookeeper_root}/none")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == f"Node does not exist: {zookeeper_root}/none\n"


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
