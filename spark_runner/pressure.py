"""How much work has had to wait lately, as the kernel measures it: PSI, Documentation/accounting/psi.rst."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from spark_runner.control_groups import UNIFIED, ControlGroup, own_groups
from spark_runner.proc import PROC, read

Resource = Literal["cpu", "memory"]


def waited_percent(resource: Resource, proc: Path = PROC) -> float | None:
    """Share of the last ten seconds in which some task of ours waited for a resource; None when unknown.

    It is that of the nearest control group that limits the resource, as a limit is shared by all below it and
    by nobody else; without a limit, or where groups have no pressure (version 1), that of the host. A kernel
    without PSI, or with `psi=0`, says nothing.
    """
    for file in _files(resource, proc):
        try:
            first = read(file).splitlines()[0]  # some avg10=1.23 avg60=...
            return float(first.split()[1].removeprefix("avg10="))
        except (OSError, IndexError, ValueError):
            continue
    return None


def _files(resource: Resource, proc: Path) -> Iterator[Path]:
    for group in own_groups(UNIFIED, proc / "self"):
        if _limits(group, resource):
            yield group.folder / f"{resource}.pressure"
            break
    yield proc / "pressure" / resource


def _limits(group: ControlGroup, resource: Resource) -> bool:
    return (group.processor_limit if resource == "cpu" else group.memory_limit) is not None
