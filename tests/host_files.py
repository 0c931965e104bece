"""A simulated host in files of the kernel: memory, pressure, control groups and drivers."""

import os
from pathlib import Path

from orchestrator.admission.host import Host
from spark_runner.protocol.process import INCARNATION_VARIABLE, MEMORY_VARIABLE, RUN_VARIABLE

MIB, GIB = 1 << 20, 1 << 30
_PAGE_BYTES, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_UPTIME = 10_000.0


class HostFiles:
    """/proc and the trees of control groups below a folder of the test."""

    def __init__(self, folder: Path, *, available: int = 64 * GIB) -> None:
        self.proc = folder / "proc"
        self._trees = folder / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "uptime").write_text(f"{_UPTIME} 1.00\n", "ascii")
        self._cgroup, self._mounts = list[str](), list[str]()
        self.has(available)

    @property
    def host(self) -> Host:
        """The reader of these files."""
        return Host(self.proc)

    def has(self, available: int) -> None:
        """Set the available bytes."""
        text = f"MemTotal: 99999999 kB\nMemFree: 5 kB\nMemAvailable:   {available // 1024} kB\n"
        (self.proc / "meminfo").write_text(text, "ascii")

    def waits(self, resource: str, percent: float, *, file: Path | None = None) -> None:
        """Set the pressure of a resource, on the host or in the file of a control group."""
        path = file or self.proc / "pressure" / resource
        path.parent.mkdir(exist_ok=True)
        averages = "avg60=0.00 avg300=0.00 total=1"
        path.write_text(f"some avg10={percent:.2f} {averages}\nfull avg10=0.00 {averages}\n", "ascii")

    # ------------------------------------------------------------------ control groups
    def tree(self, ours: str, *, controller: str = "", root: str = "/") -> Path:
        """Mount a tree, of the second version without a controller, with this process in `ours`."""
        mount = self._trees / (controller or "unified")
        mount.mkdir(parents=True)
        kind = f"cgroup cgroup rw,{controller}" if controller else "cgroup2 cgroup2 rw"
        self._mounts.append(f"31 23 0:28 {root} {mount} rw,relatime shared:1 - {kind}\n")
        self._cgroup.append(f"{len(self._cgroup)}:{controller}:{ours}\n")
        (self.proc / "self" / "mountinfo").write_text("".join(self._mounts), "utf-8")
        (self.proc / "self" / "cgroup").write_text("".join(self._cgroup), "utf-8")
        return mount

    # ------------------------------------------------------------------ processes
    def process(
        self,
        pid: int,
        run: str,
        *,
        declared: int | None = None,
        used: int = 0,
        age: float = 60.0,
        group: str = "/",
    ) -> None:
        """A process of a run, of one incarnation, with private memory in addition to that of files."""
        folder = self.proc / str(pid)
        folder.mkdir()
        given = {"PATH": "/bin", RUN_VARIABLE: run, INCARNATION_VARIABLE: "one"}
        if declared is not None:
            given[MEMORY_VARIABLE] = str(declared)
        environment = b"".join(f"{name}={value}\0".encode() for name, value in given.items())
        (folder / "environ").write_bytes(environment)
        shared = 50 * MIB // _PAGE_BYTES
        (folder / "statm").write_text(f"999999 {used // _PAGE_BYTES + shared} {shared} 1 0 5 0\n", "ascii")
        start = round((_UPTIME - age) * _TICKS)
        fields = ["S", "1", "1", "1", *["0"] * 15, str(start), "7", "8"]
        (folder / "stat").write_text(f"{pid} (a (b) c) {' '.join(fields)}\n", "ascii")
        (folder / "cgroup").write_text(f"0::{group}\n", "ascii")
        (folder / "cmdline").write_bytes(b"driver\0")


def limited(folder: Path, **files: object) -> Path:
    """A control group with these files; `__` in a name is a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n", "ascii")
    return folder


def memory_v2(folder: Path, limit: int | str, used: int, **stat: int) -> Path:
    """A control group of the second version with this limit and usage."""
    text = "".join(f"{name} {value}\n" for name, value in stat.items())
    return limited(folder, memory__max=limit, memory__current=used, memory__stat=text)


def memory_v1(folder: Path, limit: int, used: int, **stat: int) -> Path:
    """The same of the first version."""
    text = "".join(f"{name} {value}\n" for name, value in stat.items())
    return limited(folder, memory__limit_in_bytes=limit, memory__usage_in_bytes=used, memory__stat=text)
