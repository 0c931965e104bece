"""The data directory of a server: one server at a time, its login, and the note from which others find it."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from queues.model.errors import DataDirectoryInUse
from queues.private_directories import write_private
from queues.session.settings import Login

USER = "orchestrator"
PASSWORD_FILE = "password"  # noqa: S105 - the name of a file


def login_of(data_dir: Path) -> Login | None:
    """The login of the server with this data directory; None where its nodes are not closed yet."""
    file = data_dir.absolute() / PASSWORD_FILE
    with suppress(OSError):
        if file.stat().st_size:  # an empty one is what a crash of the machine left of it
            return Login(USER, password_file=str(file), server_uid=os.geteuid())
    return None


def make_login() -> Login:
    """A new one, with a password of 256 random bits."""
    return replace(Login.random(USER), server_uid=os.geteuid())


def keep_login(data_dir: Path, login: Login) -> None:
    """Write its password, whole or not at all: from then on the server counts as closed."""
    draft = data_dir / f".{PASSWORD_FILE}"
    write_private(draft, f"{login.secret()}\n")
    draft.replace(data_dir / PASSWORD_FILE)


LOCK_FILE = "lock"
SERVER_FILE = "server.json"

PROBE_WAIT_S = 0.3
"""`running_server` of another process holds the lock for microseconds; that is no server."""

ORPHAN_WAIT_S = 12.0
"""A server whose owner was killed is being ended by its guard: 5 s of grace, then a kill."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that runs now: its `host:port`, the pid of the process that owns it, and why it does."""

    address: str
    pid: int
    owner: str


def running_server(data_dir: Path) -> RunningServer | None:
    """Return the server that serves from this directory, None when there is none or it is not yet ready.

    server.json is believed only while the lock is held, which the server process itself does: what a
    killed server left behind counts for nothing.
    """
    return _read(data_dir) if _is_locked(data_dir) else None


@contextmanager
def locked(data_dir: Path) -> Iterator[int]:
    """Hold the lock of the directory, and give its file descriptor to be inherited by the server.

    The lock ends when the last process that has the descriptor is gone. Raises DataDirectoryInUse when
    a live server has it, OSError when the directory cannot be made or written.
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
        withdraw(data_dir)  # what is there now is of a server that was killed
        yield descriptor
    finally:
        os.close(descriptor)


def announce(data_dir: Path, server: RunningServer) -> None:
    """Write server.json, whole or not at all; the caller's server holds the lock."""
    draft = data_dir / f"{SERVER_FILE}.{os.getpid()}"
    write_private(draft, json.dumps(asdict(server)) + "\n")
    draft.replace(data_dir / SERVER_FILE)


def withdraw(data_dir: Path) -> None:
    """Remove server.json; the caller or its server holds the lock."""
    with suppress(FileNotFoundError):
        (data_dir / SERVER_FILE).unlink()


def _read(data_dir: Path) -> RunningServer | None:
    try:
        facts = json.loads((data_dir / SERVER_FILE).read_text("utf-8"))
        return RunningServer(str(facts["address"]), int(facts["pid"]), str(facts["owner"]))
    except (OSError, ValueError, KeyError, TypeError):  # absent, or not written by us
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
