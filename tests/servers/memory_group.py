"""A control group with a memory limit: the kernel kills a process in it that exceeds the limit."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_FIRST, _SECOND = _ROOT / "memory", _ROOT
"""Paths of groups in the first and in the second version of the kernel's interface."""


@contextmanager
def memory_group(mib: int) -> Iterator[Path | None]:
    """Yield the file to which a process writes its id to enter the group; None if no group can be made."""
    first = _FIRST.is_dir()
    group = (_FIRST if first else _SECOND) / f"orchestrator-test-{uuid.uuid4().hex}"
    bound = group / ("memory.limit_in_bytes" if first else "memory.max")
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        usable = _bind(bound, mib)
        yield group / "cgroup.procs" if usable else None
    finally:
        os.rmdir(group)  # noqa: PTH106 - a folder of the kernel, whose files cannot be removed


def _bind(bound: Path, mib: int) -> bool:
    try:
        bound.write_text(str(mib * 1024 * 1024), "ascii")
    except OSError:  # no controller for memory, or no permission
        return False
    return True
