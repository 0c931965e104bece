"""The files through which a warm server, its drivers and the workers of its host find each other.

In the run directory of the server:

    server.json              port and secret of its gateway, mode 0600; written when the server is ready
    keepers/<pid>            the workers that keep it running
    tenants/<incarnation>    a driver that uses the JVM, or has died there; removed with the last of its work
    tenants/<incarnation>.left   a driver that left by itself, until the server has counted it
    draining                 the server takes no new driver, and ends after the last one

The run directory of a driver in it has a link `warm` to that of the server. Standard library only.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.logs.files import write_json
from spark_runner.protocol.plain_file import read_json
from spark_runner.protocol.process import ProcessId, current_boot_id, identify, is_alive

LINK = "warm"
_GATEWAY, _DRAINING, _KEEPERS, _TENANTS, _LEFT = "server.json", "draining", "keepers", "tenants", ".left"


@dataclass(frozen=True, slots=True)
class Recycling:
    """The limits after which a JVM is replaced; 0 = no limit."""

    age: float = 0.0  # seconds
    jobs: int = 0  # that have entered it
    memory: int = 0  # resident bytes
    alone: float = 20.0  # seconds without a worker: a restarted one finds its server again
    # Seconds. A driver enters half a second after the choice of its server; one that is later than this finds
    # no server, and is submitted again.
    late: float = 15.0

    def reason(self, *, age: float, jobs: int, memory: int) -> str:
        """The limit that was reached; empty before that."""
        if self.age and age >= self.age:
            return f"it is {age:.0f} s old"
        if self.jobs and jobs >= self.jobs:
            return f"{jobs} drivers have used it"
        if self.memory and memory >= self.memory:
            return f"it uses {memory >> 20} MiB"
        return ""


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The plan of a warm server, which a worker writes and the server reads.

    With `rehearsal` the server runs sample jobs before it opens, so that the first job does not wait for
    Spark's one-time work.
    """

    recycling: Recycling = field(default_factory=Recycling)
    rehearsal: bool = True

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "ServerPlan":
        """The plan in JSON values; raises KeyError, TypeError for values of another version."""
        return cls(Recycling(**document["recycling"]), bool(document["rehearsal"]))


@dataclass(frozen=True, slots=True)
class Gateway:
    """The address on loopback at which the JVM of a warm server listens."""

    port: int
    secret: str


@dataclass(frozen=True, slots=True)
class Tenant:
    """One driver that has entered a warm server."""

    incarnation: str
    process: ProcessId

    @property
    def mark(self) -> str:
        """The name of its job group and its thread in the JVM."""
        return mark_of(self.incarnation)


def mark_of(incarnation: str) -> str:
    """The job group, and the name of the thread, of a driver."""
    return f"tenant-{incarnation}"


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The files of one warm server; reads may raise OSError, ValueError or KeyError."""

    path: Path

    @property
    def run(self) -> str:
        """The run name of the server itself."""
        return self.path.parent.name

    # ------------------------------------------------------------------ the server
    def prepare(self) -> None:
        """Create its folders, before its start."""
        for name in (_KEEPERS, _TENANTS):
            (self.path / name).mkdir(mode=0o700)

    def open(self, gateway: Gateway) -> None:
        """Accept drivers."""
        write_json(self.path / _GATEWAY, {"port": gateway.port, "secret": gateway.secret}, durable=True)

    def gateway(self) -> Gateway:
        """Its address, once it is open."""
        found = json.loads((self.path / _GATEWAY).read_bytes())
        return Gateway(int(found["port"]), str(found["secret"]))

    def was_opened(self) -> bool:
        """Whether it has ever accepted drivers."""
        return (self.path / _GATEWAY).exists()

    def drain(self) -> None:
        """Accept no more drivers."""
        (self.path / _DRAINING).touch(mode=0o600)

    def is_draining(self) -> bool:
        """Whether it accepts no more drivers."""
        return (self.path / _DRAINING).exists()

    # ------------------------------------------------------------------ its drivers
    def enter(self, incarnation: str) -> None:
        """Record that this process is about to use the JVM."""
        _note_own_process(self.path / _TENANTS / incarnation)

    def leave(self, incarnation: str) -> None:
        """Record that this driver has no work left in the JVM."""
        tenant = self.path / _TENANTS / incarnation
        tenant.replace(tenant.with_suffix(_LEFT))

    def is_in(self, incarnation: str) -> bool:
        """Whether this driver may have work left in the JVM, if that still runs."""
        return (self.path / _TENANTS / incarnation).exists()

    def tenants(self) -> Iterator[Tenant]:
        """All drivers that have entered and may have work left."""
        for name, process in _noted_processes(self.path / _TENANTS):
            yield Tenant(name, process)

    def count_left(self) -> int:
        """The number of drivers that have left since the last call."""
        left = [path for path in (self.path / _TENANTS).iterdir() if path.suffix == _LEFT]
        for path in left:
            path.unlink()
        return len(left)

    # ------------------------------------------------------------------ its workers
    def keep(self) -> None:
        """Record that this process, a worker, keeps it running."""
        path = self.path / _KEEPERS / str(os.getpid())
        if not path.exists():
            _note_own_process(path)

    def release(self) -> None:
        """Record that this process no longer keeps it running."""
        (self.path / _KEEPERS / str(os.getpid())).unlink(missing_ok=True)

    def is_kept(self) -> bool:
        """Whether a live worker keeps it running."""
        return any(is_alive(process) for _, process in _noted_processes(self.path / _KEEPERS))


def _note_own_process(path: Path) -> None:
    process = identify(os.getpid())
    assert process is not None  # noqa: S101 - this process is alive
    # No fsync: after a power cut the JVM does not exist either.
    write_json(path, {"pid": process.pid, "start": process.start}, mode=None)


def _noted_processes(folder: Path) -> Iterator[tuple[str, ProcessId]]:
    for path in folder.iterdir():
        if not path.suffix:
            with contextlib.suppress(FileNotFoundError):  # it has just left
                found = read_json(path)
                yield path.name, ProcessId(found["pid"], found["start"], current_boot_id())
