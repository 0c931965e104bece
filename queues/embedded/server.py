"""One real ZooKeeper server as a child process."""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from queues.embedded.config import (
    CONFIG_FILE,
    LOG_CONFIG,
    LOG_CONFIG_FILE,
    LOG_FILE,
    OUTPUT_FILE,
    STATE_FOLDER,
    ServerConfig,
    port_of_last_run,
)
from queues.embedded.directory import (
    PASSWORD_FILE,
    RunningServer,
    announce,
    keep_login,
    locked,
    login_of,
    make_login,
    take_data,
    withdraw,
)
from queues.embedded.guarded import GuardedProcess
from queues.embedded.java import LONG_RUN, QUICK_START, find_jars, find_java
from queues.embedded.packets import RootAccess, root_access, server_mode
from queues.embedded.ports import free_ports, is_free
from queues.model.errors import PortTaken, ServerEnded, ServerStartFailed
from queues.private_directories import private_directory, write_private
from queues.session.access_walk import close_nodes
from queues.session.client import can_tell_listeners, is_listener_of
from queues.session.settings import Login

SERVER_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

POLL_S = 0.02

POLL_TIMEOUT_S = 0.2
"""A request that arrives between bind and serve is never answered; the next one is answered at once."""

LOGIN_TIMEOUT_S = 30.0
"""The leader of a new ensemble closes its few nodes in less than a second."""

_PRIVATE_UMASK = 0o077

NEW_FILE = "new"
"""This file exists until the nodes of a new server are closed: nodes that others made by then are removed."""

PORT_TRIES = 3
"""Another process may take a free port before the server listens on it: then the start uses another one."""


class EmbeddedZooKeeper:
    """A ZooKeeper server that ends with this process, regardless of how the process ends.

    Its data is durable (every write is synced to disk) and stays in the data directory, as does its log,
    `zookeeper.log`. Also a context manager. This process must call `stop` or leave the block.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._data_dir = config.data_dir.absolute()
        self._port = config.port or None
        self._superuser: Login | None = None  # of one start that closes open nodes; never stored
        self._is_new = False
        self._process: GuardedProcess | None = None

    @property
    def port(self) -> int:
        """Client port; available after the first launch."""
        if self._port is None:
            raise RuntimeError("the server has no port before its first start; call start() first")
        return self._port

    @property
    def hosts(self) -> str:
        """Connection string for clients, `host:port`."""
        return f"{self.config.host}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Pid of the server process, None when it does not run."""
        return self._process.pid if self._process is not None and self.is_running() else None

    @property
    def guard_pid(self) -> int | None:
        """Pid of the process that ends the server when this process is gone; None if none runs."""
        return self._process.guard_pid if self._process is not None and self.is_running() else None

    @property
    def log_file(self) -> Path:
        """The server's own log."""
        return self._data_dir / LOG_FILE

    def is_running(self) -> bool:
        """Whether the server process runs; `mode` shows whether it serves."""
        return self._process is not None and self._process.exit_code() is None

    def check_running(self) -> None:
        """Raise ServerEnded if the server process has ended since its start."""
        if not self.is_running():
            raise ServerEnded(f"ZooKeeper at {self.hosts}", self.log_file)

    def mode(self) -> str | None:
        """Return standalone, leader or follower; None while it serves no requests."""
        return server_mode(self.hosts) if self.is_running() else None

    def start(self) -> Self:
        """Start the server and return when it serves; does nothing if it runs already.

        Raises JavaMissing, JarsMissing, DataDirectoryInUse, PortTaken, ServerStartFailed, UnsafeDirectory.
        """
        for tries_left in reversed(range(PORT_TRIES)):
            try:
                self.launch()
                self.wait_until_serving()
                break
            except PortTaken:
                if self.config.port or not tries_left:
                    raise
        return self

    def launch(self) -> None:
        """Start the server process without waiting: a member of an ensemble serves only with others."""
        if self.is_running():
            return
        self.stop()  # release the process of a server that died
        java, jars = find_java(), find_jars()
        command = [
            *(str(java.path), *(LONG_RUN if self.config.long_run else QUICK_START)),
            *(f"-Xmx{self.config.heap_mb}m", "-XX:+ExitOnOutOfMemoryError"),
            *(f"-Dlog4j2.configurationFile={LOG_CONFIG_FILE}", *self.config.jvm_options),
            *("-cp", str(jars / "*"), SERVER_CLASS, f"./{CONFIG_FILE}"),
        ]
        try:
            if self.config.closed:
                private_directory(self._data_dir)
            with locked(self._data_dir) as lock:
                has_data = any((self._data_dir / STATE_FOLDER / "version-2").glob("*.*"))
                self._is_new = not has_data or (self._data_dir / NEW_FILE).exists()
                # A login without its data is void: ZooKeeper creates `/` again, with all rights for everyone.
                is_closed = not self._is_new and (self.config.login or login_of(self._data_dir)) is not None
                self._superuser = make_login() if self.config.closed and not is_closed else None
                self._port = self._choose_port()
                self._write_files(self._port)
                with (self._data_dir / OUTPUT_FILE).open("ab") as output:
                    self._process = GuardedProcess(
                        command, self._data_dir, output, keep=[lock], umask=_PRIVATE_UMASK
                    )
        except OSError as error:
            raise ServerStartFailed(
                f"ZooKeeper cannot use the data directory {self._data_dir}: {error.strerror or error}"
            ) from error

    def wait_until_serving(self) -> None:
        """Return when the launched server answers requests; stop it and raise if it does not."""
        try:
            self._wait()
            if self.config.login is not None:
                self._agree_on_login(self.config.login)
            elif self._superuser is not None:
                login = make_login()
                close_nodes(self.hosts, superuser=self._superuser, owner=login, is_new=self._is_new)
                keep_login(self._data_dir, login)
                (self._data_dir / NEW_FILE).unlink(missing_ok=True)
            elif self.config.closed:
                self._check_login()
            announce(self._data_dir, RunningServer(self.hosts, os.getpid(), self.config.owner))
        except OSError as error:  # a full disk; a server that dies during a request
            self.stop()
            raise ServerStartFailed(
                f"ZooKeeper in {self._data_dir} started but cannot be used: {error.strerror or error}; "
                f"see {self._data_dir / LOG_FILE}"
            ) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and return when it is gone; does nothing if there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.exit_code() is None:  # else the lock is released, and the file may be another server's
            withdraw(self._data_dir)
        process.stop()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would, without any cleanup."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _choose_port(self) -> int:
        host = self.config.host
        if self.config.port:
            if not is_free(host, self.config.port):
                raise PortTaken(host, self.config.port)
            return self.config.port
        last = port_of_last_run(self._data_dir)
        if last is not None and is_free(host, last):
            return last
        return free_ports(host, 1)[0]

    def _write_files(self, port: int) -> None:
        state = self._data_dir / STATE_FOLDER
        state.mkdir(mode=0o700, exist_ok=True)
        take_data(state, self.config.member)
        superuser = "" if self._superuser is None else self._superuser.digest_id
        write_private(self._data_dir / CONFIG_FILE, self.config.zoo_cfg(port, superuser))
        write_private(self._data_dir / LOG_CONFIG_FILE, LOG_CONFIG)
        write_private(self._data_dir / OUTPUT_FILE, "")
        if self.config.closed and self._is_new:
            write_private(self._data_dir / NEW_FILE, "")
        for name, text in self.config.files:
            write_private(self._data_dir / name, text)
        log = self._data_dir / LOG_FILE
        if log.exists():  # `_failure` must read the log of this run only
            log.replace(self._data_dir / f"{LOG_FILE}.previous")

    def _wait(self) -> None:
        deadline = time.monotonic() + self.config.start_timeout_s
        while self.is_running():
            # Another process that took the port, even of this user, may answer until this server fails.
            if server_mode(self.hosts, POLL_TIMEOUT_S) is not None and self._listens():
                return
            if time.monotonic() > deadline:
                raise ServerStartFailed(
                    f"ZooKeeper at {self.hosts} did not serve within {self.config.start_timeout_s:g} s; "
                    f"see {self._data_dir / LOG_FILE}"
                )
            time.sleep(POLL_S)
        raise self._failure()

    def _listens(self) -> bool:
        """Whether the server process has its port; also true where only closed servers could tell."""
        if not self.config.closed and not can_tell_listeners(self.config.host):
            return True
        group = self.guard_pid  # it leads the group of the server process
        return group is not None and is_listener_of(group, self.config.host, self.port)

    def _agree_on_login(self, login: Login) -> None:
        """Return when all nodes of the ensemble belong to the login: the leader of a new one closes them."""
        deadline, superuser = time.monotonic() + LOGIN_TIMEOUT_S, self._superuser
        while (access := root_access(login, self.config.host, self.port)) is not RootAccess.OWN:
            is_late = time.monotonic() > deadline
            # Nothing of another login may be removed.
            if superuser is None or access is RootAccess.OTHER or is_late:
                raise ServerStartFailed(
                    f"the nodes of the ensemble have another login than the one in {login.password_file}: "
                    "copy one password file to all servers"
                )
            if self.mode() == "leader":
                close_nodes(self.hosts, superuser=superuser, owner=login, is_new=True)
            time.sleep(POLL_S)
        (self._data_dir / NEW_FILE).unlink(missing_ok=True)

    def _check_login(self) -> None:
        login, file = login_of(self._data_dir), self._data_dir / PASSWORD_FILE
        if login is None or root_access(login, self.config.host, self.port) is not RootAccess.OWN:
            raise ServerStartFailed(
                f"the nodes in {self._data_dir} are not restricted to the login in {file}: one of the two "
                "was removed or restored without the other, and other users may have changed nodes. Remove "
                f"that file to keep the nodes, under a new login; or remove {self._data_dir}"
            )

    def _failure(self) -> ServerStartFailed:
        """Return the error that the log of a dead server shows."""
        log = _read_text(self._data_dir / LOG_FILE)
        # A member binds three ports, and only its log shows which of them was taken.
        if "java.net.BindException" in log and self.config.member is None:
            return PortTaken(self.config.host, self.port)
        errors = [line for line in log.splitlines() if " ERROR " in line or "Exception: " in line]
        output = errors or _read_text(self._data_dir / OUTPUT_FILE).splitlines() or ["no output"]
        return ServerStartFailed(
            f"ZooKeeper died while it started: {' | '.join(output[-3:])}; see {self._data_dir / LOG_FILE}"
        )


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
