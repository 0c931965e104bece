"""The data directory of a server: its lock, its login, and server.json, in which clients find the server."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from queues.embedded.config import EnsembleMember
from queues.model.errors import DataDirectoryInUse, ServerNotRunning, ServerStartFailed
from queues.private_directories import write_private
from queues.session.settings import Acl, Login, SessionSettings

EMBEDDED_USER = "orchestrator"
PASSWORD_FILE = "password"  # noqa: S105 - the name of a file


def login_of(data_dir: Path) -> Login | None:
    """The login of the server with this data directory; None if its nodes are not closed yet."""
    file = data_dir.absolute() / PASSWORD_FILE
    with suppress(OSError):
        if file.stat().st_size:  # a crash of the machine can leave an empty file
            return Login(EMBEDDED_USER, password_file=str(file), server_uid=os.geteuid())
    return None


def make_login() -> Login:
    """A new login, with a password of 256 random bits."""
    return replace(Login.random(EMBEDDED_USER), server_uid=os.geteuid())


def keep_login(data_dir: Path, login: Login) -> None:
    """Write the password of the login atomically: from then on the server counts as closed."""
    draft = data_dir / f".{PASSWORD_FILE}"
    write_private(draft, f"{login.secret()}\n")
    draft.replace(data_dir / PASSWORD_FILE)


ID_FILE = "myid"
"""ZooKeeper's name of the file with the number of a member."""

IDENTITY_FILE = "ensemble"


def take_data(state: Path, member: EnsembleMember | None) -> None:
    """Record which server the data in `state` is of; raises ServerStartFailed if it is of another one.

    A server with the data of another ensemble could replace the data of all other members; one with the id
    of another member could vote twice.
    """
    has_data = any((state / "version-2").glob("*.*"))
    number, identity = (_recorded(state / name) for name in (ID_FILE, IDENTITY_FILE))
    if member is None:
        if number:
            raise ServerStartFailed(
                f"the data in {state} is of server {number} of an ensemble; {_OTHER_DATA}"
            )
        return
    if has_data and not number:
        raise ServerStartFailed(f"the data in {state} is of a server without an ensemble; {_OTHER_DATA}")
    if number and number != str(member.id):
        raise ServerStartFailed(
            f"the data in {state} is of server {number} of the ensemble, and this is server {member.id}; "
            f"{_OTHER_DATA}"
        )
    if identity and identity != member.identity:
        raise ServerStartFailed(
            f"the data in {state} is of an ensemble with another certificate; {_OTHER_DATA}. If the "
            f"certificate was renewed on all servers, remove {state / IDENTITY_FILE}"
        )
    write_private(state / ID_FILE, f"{member.id}\n")
    if member.identity:
        write_private(state / IDENTITY_FILE, f"{member.identity}\n")


_OTHER_DATA = "name another state directory, or restore its own data"


def _recorded(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""


LOCK_FILE = "lock"
SERVER_FILE = "server.json"

PROBE_WAIT_S = 0.3
"""`running_server` in another process holds the lock for microseconds; that is no server."""

ORPHAN_WAIT_S = 12.0
"""If the owner of a server was killed, the guard ends the server: 5 s of grace, then a kill."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A running server: its `host:port`, the pid of the process that owns it, and the owner's description."""

    address: str
    pid: int
    owner: str


def running_server(data_dir: Path) -> RunningServer | None:
    """Return the server that serves from this directory, None if there is none or it is not ready yet.

    server.json is valid only while the server process holds the lock: the file of a killed server is ignored.
    """
    return _read(data_dir) if _is_locked(data_dir) else None


def is_server_starting(data_dir: Path) -> bool:
    """Whether a process has the directory whose server does not serve yet, or no longer."""
    return _is_locked(data_dir) and _read(data_dir) is None


def local_settings(data_dir: Path) -> SessionSettings:
    """The session settings for the server of this data directory, as its user; raises ServerNotRunning."""
    server, login = running_server(data_dir), login_of(data_dir)
    if server is None:
        raise ServerNotRunning(data_dir)
    return SessionSettings(server.address, digest=login, acl=Acl.CREATOR if login else Acl.OPEN)


@contextmanager
def locked(data_dir: Path) -> Iterator[int]:
    """Hold the lock of the directory, and yield its file descriptor for the server to inherit.

    The lock ends with the last process that has the descriptor. Raises DataDirectoryInUse if a live server
    holds it, OSError if the directory cannot be created or written.
    """
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        started = time.monotonic()
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            server = _read(data_dir)
            patience_s = ORPHAN_WAIT_S if server and not _exists(server.pid) else PROBE_WAIT_S
            if time.monotonic() - started > patience_s:
                raise DataDirectoryInUse(
                    data_dir,
                    server.address if server else None,
                    server.pid if server else None,
                    server.owner if server else "",
                )
            time.sleep(0.02)
        withdraw(data_dir)  # an existing server.json belongs to a killed server
        yield descriptor
    finally:
        os.close(descriptor)


def announce(data_dir: Path, server: RunningServer) -> None:
    """Write server.json atomically; the caller's server must hold the lock."""
    draft = data_dir / f"{SERVER_FILE}.{os.getpid()}"
    write_private(draft, json.dumps(asdict(server)) + "\n")
    draft.replace(data_dir / SERVER_FILE)


def withdraw(data_dir: Path) -> None:
    """Remove server.json; the caller or its server must hold the lock."""
    with suppress(FileNotFoundError):
        (data_dir / SERVER_FILE).unlink()


def _read(data_dir: Path) -> RunningServer | None:
    try:
        facts = json.loads((data_dir / SERVER_FILE).read_text("utf-8"))
        return RunningServer(str(facts["address"]), int(facts["pid"]), str(facts["owner"]))
    except (OSError, ValueError, KeyError, TypeError):  # absent, or not written by `announce`
        return None


def _is_locked(data_dir: Path) -> bool:
    try:
        descriptor = os.open(data_dir / LOCK_FILE, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
