"""The files by which a warm server, the drivers in it and the workers of its host know of each other.

In the run directory of the server:

    server.json              port and secret of its gateway, mode 0600; there once it can be used
    keepers/<pid>            the workers for which it is kept
    tenants/<incarnation>    a driver that uses the JVM, or has died there; gone when nothing of it is left
    tenants/<incarnation>.left   a driver that has gone by itself, until the server has counted it
    draining                 it takes no new driver, and ends when the last one has gone

The run directory of a driver in it has a link `warm` to that of the server. Standard library only.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.logs.files import write_json
from spark_runner.plain_file import read_json
from spark_runner.process import ProcessId, current_boot_id, identify, is_alive

LINK = "warm"
_GATEWAY, _DRAINING, _KEEPERS, _TENANTS, _LEFT = "server.json", "draining", "keepers", "tenants", ".left"


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where the JVM of a warm server listens, on loopback."""

    port: int
    secret: str


@dataclass(frozen=True, slots=True)
class Tenant:
    """One driver that has entered a warm server."""

    incarnation: str
    process: ProcessId

    @property
    def mark(self) -> str:
        """What its jobs and its thread are called in the JVM."""
        return mark_of(self.incarnation)


def mark_of(incarnation: str) -> str:
    """The job group, and the name of the thread, of a driver."""
    return f"tenant-{incarnation}"


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The files of one warm server; what is read may raise OSError, ValueError or KeyError."""

    path: Path

    @property
    def run(self) -> str:
        """The run that it is for its shim."""
        return self.path.parent.name

    # ------------------------------------------------------------------ the server
    def prepare(self) -> None:
        """Make its folders, before it is started."""
        for name in (_KEEPERS, _TENANTS):
            (self.path / name).mkdir(mode=0o700)

    def open(self, gateway: Gateway) -> None:
        """Let drivers come."""
        write_json(self.path / _GATEWAY, {"port": gateway.port, "secret": gateway.secret}, durable=True)

    def gateway(self) -> Gateway:
        """Where it listens, once it is open."""
        found = json.loads((self.path / _GATEWAY).read_bytes())
        return Gateway(int(found["port"]), str(found["secret"]))

    def was_opened(self) -> bool:
        """Whether drivers could ever come."""
        return (self.path / _GATEWAY).exists()

    def drain(self) -> None:
        """Let no more drivers come."""
        (self.path / _DRAINING).touch(mode=0o600)

    def is_draining(self) -> bool:
        """Whether no more drivers are to come."""
        return (self.path / _DRAINING).exists()

    # ------------------------------------------------------------------ its drivers
    def enter(self, incarnation: str) -> None:
        """Say that this process is going to use the JVM."""
        _note_own_process(self.path / _TENANTS / incarnation)

    def leave(self, incarnation: str) -> None:
        """Say that nothing of this driver is left in the JVM."""
        tenant = self.path / _TENANTS / incarnation
        tenant.replace(tenant.with_suffix(_LEFT))

    def is_in(self, incarnation: str) -> bool:
        """Whether something of this driver may be left in the JVM, if that still runs."""
        return (self.path / _TENANTS / incarnation).exists()

    def tenants(self) -> Iterator[Tenant]:
        """All drivers that have entered and of which something may be left."""
        for name, process in _noted_processes(self.path / _TENANTS):
            yield Tenant(name, process)

    def count_left(self) -> int:
        """How many have gone since the last call."""
        left = [path for path in (self.path / _TENANTS).iterdir() if path.suffix == _LEFT]
        for path in left:
            path.unlink()
        return len(left)

    # ------------------------------------------------------------------ its workers
    def keep(self) -> None:
        """Say that this process, a worker, wants it to go on."""
        path = self.path / _KEEPERS / str(os.getpid())
        if not path.exists():
            _note_own_process(path)

    def release(self) -> None:
        """Say that this process does not want it any more."""
        (self.path / _KEEPERS / str(os.getpid())).unlink(missing_ok=True)

    def is_kept(self) -> bool:
        """Whether a worker is there that wants it to go on."""
        return any(is_alive(process) for _, process in _noted_processes(self.path / _KEEPERS))


def _note_own_process(path: Path) -> None:
    process = identify(os.getpid())
    assert process is not None  # noqa: S101 - it is us
    # Not forced to the disk: after a power cut there is no JVM either.
    write_json(path, {"pid": process.pid, "start": process.start}, mode=None)


def _noted_processes(folder: Path) -> Iterator[tuple[str, ProcessId]]:
    for path in folder.iterdir():
        if not path.suffix:
            with contextlib.suppress(FileNotFoundError):  # it has just left
                found = read_json(path)
                yield path.name, ProcessId(found["pid"], found["start"], current_boot_id())
