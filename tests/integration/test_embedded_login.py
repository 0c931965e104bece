"""A closed server against another user of the host, who has its port and no password."""

import contextlib
import errno
import json
import os
import select
import shutil
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from orchestrator.config.zookeeper import DriverAccess
from queues import EmbeddedZooKeeper, PortTaken, ServerConfig, ServerStartFailed, login_of, running_server
from queues.embedded import server as server_module
from queues.embedded.packets import root_access, send_four_letter_word
from queues.embedded.ports import free_ports
from queues.embedded.zkcli import logged_in
from queues.model.errors import Unreachable
from queues.session import Acl, Login, Session, SessionSettings, access_walk
from tests.another_user import as_another_user
from tests.servers.zookeeper import zookeeper_client

TICK_MS = 500
OF_ZOOKEEPER = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")
WORDS = ("mntr", "cons", "stat", "conf", "envi", "dump", "ruok", "wchs", "crst", "isro")


def closed(data_dir: Path) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(ServerConfig(data_dir, tick_ms=TICK_MS, closed=True))


def session_of(server: EmbeddedZooKeeper) -> Session:
    login = login_of(server.config.data_dir)
    return Session(SessionSettings(server.hosts, digest=login, acl=Acl.CREATOR))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    with closed(tmp_path_factory.mktemp("closed")) as running:
        with session_of(running) as session:
            session.ensure_path("/orchestrator/jobs")
        yield running


def test_the_example_of_the_queues_logs_in_by_the_data_directory(
    server: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    program = (Path(__file__).parents[2] / "examples" / "queues_alone.py").read_text("utf-8")
    assert "~/.local/state/spark-job-orchestrator/zookeeper" in program
    for place, ends_well in ((server.config.data_dir, True), (tmp_path, False)):
        own = program.replace("~/.local/state/spark-job-orchestrator/zookeeper", str(place))
        done = subprocess.run([sys.executable, "-c", own], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is ends_well, done.stderr
        assert ends_well or f"no ZooKeeper server runs with the data directory {tmp_path}" in done.stderr
    assert done.stdout == ""


def tried(hosts: str, act: Callable[[KazooClient], object], login: str = "") -> Any:
    """The result of `act` as another user: its answer as text, or the name of the error."""

    def attempt() -> str:
        client = KazooClient(hosts, auth_data={("digest", login)} if login else None)
        client.start(timeout=30)
        try:
            return str(act(client))
        finally:
            client.stop()
            client.close()

    return as_another_user(attempt)


@pytest.mark.parametrize("login", ["", "orchestrator:guessed"])
def test_another_user_can_read_write_and_make_nothing(server: EmbeddedZooKeeper, login: str) -> None:
    def act(client: KazooClient) -> list[str]:
        tries: list[Callable[[str], object]] = [
            client.get,
            client.exists,
            client.get_children,
            client.get_acls,
            client.delete,
            lambda path: client.set(path, b"theirs"),
            lambda path: client.create(f"{path.rstrip('/')}/theirs", b"", ephemeral=True),
            lambda path: client.set_acls(path, [make_digest_acl("evil", "evil", all=True)]),
        ]
        answers = []
        for path in (*OF_ZOOKEEPER, "/orchestrator", "/orchestrator/jobs"):
            for number, each in enumerate(tries):
                try:
                    answers.append(f"{number} {path}: {each(path)}")
                except Exception as error:  # noqa: BLE001 - the answer
                    if type(error).__name__ not in {"NoAuthError", "BadArgumentsError"}:
                        answers.append(f"{number} {path}: {error!r}")
        return answers

    assert tried(server.hosts, act, login) == "[]"


def test_four_letter_words_are_off(server: EmbeddedZooKeeper) -> None:
    for word in WORDS:
        assert "not in the whitelist" in send_four_letter_word(server.hosts, word), word
    assert server.mode() == "standalone", "srvr is answered always: no setting turns it off"


def test_no_password_is_in_a_process_list_or_in_a_file_that_others_read(server: EmbeddedZooKeeper) -> None:
    data_dir, login = server.config.data_dir, login_of(server.config.data_dir)
    assert login is not None
    password = login.secret()
    assert len(password) * 6 >= 256
    for pid in (server.pid, server.guard_pid):
        process = psutil.Process(pid)
        assert password not in " ".join([*process.cmdline(), *process.environ().values()])
    holders = [
        path for path in data_dir.rglob("*") if path.is_file() and password.encode() in path.read_bytes()
    ]
    assert holders == [Path(login.password_file)]
    for path in (data_dir, *data_dir.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    assert as_another_user(lambda: Path(login.password_file).read_text("ascii")) == "PermissionError"


def _evidence(data_dir: Path) -> str:
    """The logs of both runs of a server, and the sizes of its files; one loss was seen and not explained."""
    sizes = [f"{path.name}: {path.stat().st_size}" for path in data_dir.rglob("version-2/*")]
    logs = [path.read_text("utf-8") for path in sorted(data_dir.glob("zookeeper.log*"), reverse=True)]
    return "\n".join([*sizes, *logs])


def test_login_and_nodes_outlive_a_restart_and_stay_closed(tmp_path: Path) -> None:
    with closed(tmp_path) as server, session_of(server) as session:
        session.ensure_path("/kept")
        login = login_of(tmp_path)
    with closed(tmp_path) as server, session_of(server) as session:
        assert login_of(tmp_path) == login
        assert login is not None
        assert session.children("/") is not None
        assert session.exists("/kept") is not None, _evidence(tmp_path)
        for path in (*OF_ZOOKEEPER, "/kept"):
            assert tried(server.hosts, methodcaller("get", path)) == "NoAuthError"
        assert "superDigest" not in (tmp_path / "zoo.cfg").read_text()


def test_nodes_planted_while_a_new_server_starts_are_gone_when_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = access_walk.close_nodes

    def plant_and_close(hosts: str, **rest: Any) -> None:
        made = tried(hosts, lambda client: client.create("/orchestrator/jobs/00", b"theirs", makepath=True))
        assert made == "/orchestrator/jobs/00"
        mine = [make_digest_acl("evil", "evil", all=True)]
        made = tried(hosts, lambda client: client.create("/zookeeper/quota/a", b"", acl=mine), "evil:evil")
        assert made == "/zookeeper/quota/a"
        close(hosts, **rest)

    monkeypatch.setattr(server_module, "close_nodes", plant_and_close)
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") == ["zookeeper"]
        assert session.children("/zookeeper/quota") == []


def test_the_nodes_of_an_earlier_version_are_closed_and_kept(tmp_path: Path) -> None:
    plain = EmbeddedZooKeeper(ServerConfig(tmp_path, tick_ms=TICK_MS))
    with plain, zookeeper_client(plain.hosts) as client:
        client.create("/orchestrator/jobs/00", b"kept", makepath=True)
    with closed(tmp_path) as server, session_of(server) as session:
        found = session.get("/orchestrator/jobs/00")
        assert found is not None
        assert found[0] == b"kept"
        for path in (*OF_ZOOKEEPER, "/orchestrator", "/orchestrator/jobs/00"):
            assert tried(server.hosts, methodcaller("get", path)) == "NoAuthError"


def test_a_login_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    with closed(tmp_path) as server, session_of(server) as session:
        session.ensure_path("/kept")
        lost = login_of(tmp_path)
    assert lost is not None
    Path(lost.password_file).unlink()
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.exists("/kept") is not None


@pytest.mark.parametrize("lost", ["data", "data/version-2", "data/version-2/*"])
def test_a_login_that_outlives_its_data_leaves_the_new_nodes_open_to_nobody(
    tmp_path: Path, lost: str
) -> None:
    with closed(tmp_path) as server, session_of(server) as session:
        session.ensure_path("/gone")
    for gone in tmp_path.glob(lost):
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") == ["zookeeper"]
        for path in OF_ZOOKEEPER:
            assert tried(server.hosts, methodcaller("get", path)) == "NoAuthError"


def _without_log(data_dir: Path) -> None:
    for path in data_dir.glob("data/version-2/log.*"):
        path.unlink()


def _with_another_login(data_dir: Path) -> None:
    (data_dir / "password").write_text("of another server")


@pytest.mark.parametrize("restore", [_without_log, _with_another_login])
def test_nodes_that_are_not_for_the_login_alone_are_not_served(
    tmp_path: Path, restore: Callable[[Path], None]
) -> None:
    with closed(tmp_path) as server, session_of(server) as session:
        session.ensure_path("/kept")
    restore(tmp_path)
    with pytest.raises(ServerStartFailed, match=r"are not restricted to the login in .*/password"):
        closed(tmp_path).start()
    assert running_server(tmp_path) is None
    (tmp_path / "password").unlink()  # as the message says
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") is not None
        assert tried(server.hosts, methodcaller("get", "/")) == "NoAuthError"


def test_a_start_that_is_cut_off_before_the_nodes_are_closed_closes_them_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def die(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(server_module, "close_nodes", die)
        with pytest.raises(KeyboardInterrupt):
            closed(tmp_path).start()
    assert login_of(tmp_path) is None
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") == ["zookeeper"]
        assert tried(server.hosts, methodcaller("get", "/")) == "NoAuthError"


def test_nodes_planted_in_a_new_server_whose_start_is_interrupted_are_gone_when_the_next_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def plant_and_die(hosts: str, **_: object) -> None:
            assert tried(hosts, lambda client: client.create("/orchestrator", b"theirs")) == "/orchestrator"
            raise KeyboardInterrupt

        patch.setattr(server_module, "close_nodes", plant_and_die)
        with pytest.raises(KeyboardInterrupt):
            closed(tmp_path).start()
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") == ["zookeeper"]
        session.ensure_path("/kept")
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.exists("/kept") is not None


def test_a_disk_that_is_full_as_the_password_is_kept_ends_the_start_and_the_next_one_closes_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def full(_directory: Path, _login: Login) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(server_module, "keep_login", full)
        with pytest.raises(ServerStartFailed, match="No space left on device"):
            closed(tmp_path).start()
    assert running_server(tmp_path) is None
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") == ["zookeeper"]
        assert tried(server.hosts, methodcaller("get", "/")) == "NoAuthError"


def test_the_password_is_not_sent_to_another_user_who_listens_at_the_port(tmp_path: Path) -> None:
    with closed(tmp_path) as server, session_of(server) as session:
        assert session.children("/") is not None
        hosts, login = server.hosts, login_of(tmp_path)
        assert login is not None
        of_driver = DriverAccess().settings(session.settings, Login.random("run-1"), session.owners("/"))
    heard, send = os.pipe()
    ready, be_ready = os.pipe()

    def listen() -> None:
        host, port = hosts.split(":")
        with socket.create_server((host, int(port))) as listener:
            os.write(be_ready, b"x")
            listener.settimeout(2)
            with contextlib.suppress(TimeoutError):
                while True:
                    client, _ = listener.accept()
                    client.settimeout(1)
                    with client, contextlib.suppress(TimeoutError):
                        os.write(send, client.recv(4096))

    thief = threading.Thread(target=as_another_user, args=(listen,))
    thief.start()
    os.read(ready, 1)
    of_worker = SessionSettings(hosts, digest=login, acl=Acl.CREATOR)
    of_driver = SessionSettings.from_plan(json.loads(json.dumps(of_driver.for_plan())))
    for settings in (of_worker, of_driver):
        with pytest.raises(Unreachable), Session(replace(settings, connect_timeout=1)):
            pass
    host, port = hosts.split(":")
    with pytest.raises(ConnectionRefusedError, match="is not a server of this user"):
        root_access(login, host, int(port))  # the check of a start
    with logged_in(SessionSettings(hosts, digest=login)) as way:
        host, port = way.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"\0\0\0\x04test")
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(100) == b""
    thief.join()
    os.set_blocking(heard, False)
    with pytest.raises(BlockingIOError):
        assert not os.read(heard, 100_000)
    for end in (heard, send, ready, be_ready):
        os.close(end)


def test_no_other_user_gets_in_by_the_way_that_zkcli_takes(server: EmbeddedZooKeeper) -> None:
    hello = struct.pack("!iiqiqi16s?", 45, 0, 0, 4_000, 0, 16, bytes(16), False)  # a session is asked for
    settings = SessionSettings(server.hosts, digest=login_of(server.config.data_dir))
    with logged_in(settings) as way:
        host, port = way.split(":")

        def ask() -> bool:
            with socket.create_connection((host, int(port)), 10) as client:
                client.sendall(hello)
                return bool(client.recv(100))

        assert as_another_user(ask) in {False, "ConnectionResetError"}
        assert ask()


def test_a_driver_that_is_another_user_logs_in_to_the_server_of_its_worker(tmp_path: Path) -> None:
    with closed(tmp_path) as server, session_of(server) as session:
        login = Login.random("run-1")
        of_driver = DriverAccess().settings(session.settings, login, session.owners("/"))

        def see() -> str:
            with Session(of_driver) as own:
                return str(own.whoami())

        assert as_another_user(see) == f"digest:{login.user}"


def test_another_users_server_at_the_chosen_port_is_not_taken_for_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the choice of a port and the server's start another user may listen there, and answer."""
    (port,) = free_ports("127.0.0.1", 1)
    ready, be_ready = os.pipe()
    end, go_on = os.pipe()

    def answer() -> None:
        with socket.create_server(("127.0.0.1", port)) as listener:
            os.write(be_ready, b"x")
            listener.settimeout(0.1)
            while not select.select([end], [], [], 0)[0]:
                with contextlib.suppress(OSError):
                    client, _ = listener.accept()
                    with client:
                        client.sendall(b"Mode: standalone\n")

    thief = threading.Thread(target=as_another_user, args=(answer,))
    thief.start()
    os.read(ready, 1)
    monkeypatch.setattr(server_module, "is_free", lambda _host, _port: True)
    try:
        with pytest.raises(PortTaken):
            EmbeddedZooKeeper(ServerConfig(tmp_path, port=port, tick_ms=TICK_MS, closed=True)).start()
    finally:
        os.write(go_on, b"x")
        thief.join()
        for each in (ready, be_ready, end, go_on):
            os.close(each)
    assert running_server(tmp_path) is None
