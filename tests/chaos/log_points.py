"""Points at which a process that logs kills itself by SIGKILL, at its nth pass."""

import os
import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, assert_never

from orchestrator.logs.shipping import delivery
from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.fsync_thread import FsyncThread
from orchestrator.logs.spool.segments import HEADER


class Point(StrEnum):
    """Points in the life cycle of a spool."""

    CREATING = "before a folder has its name"
    TORN = "half of a record is written"
    SEALING = "a new segment exists and is not yet used"
    COMPRESSING = "a segment is compressed and not yet renamed"
    COMPRESSED = "a segment exists twice"
    SHIPPING = "a request is accepted and its reply not read"
    CHECKPOINT = "before a checkpoint"
    CHECKPOINTED = "behind a checkpoint"
    REMOVING = "a delivered folder is half removed"


def die_at(point: Point, times: int) -> None:
    """Make this process kill itself at its nth pass of the point."""
    left = [times]

    def is_time() -> bool:
        left[0] -= 1
        return left[0] == 0

    match point:
        case Point.CREATING:
            _before(Path, "rename", is_time)
        case Point.TORN:
            _tear(is_time)
        case Point.SEALING:
            _before(FsyncThread, "seal", is_time)
        case Point.COMPRESSING | Point.COMPRESSED:
            _compress(is_time, behind=point is Point.COMPRESSED)
        case Point.SHIPPING:
            _behind(ElasticsearchTarget, "send", is_time)
        case Point.CHECKPOINT:
            _before(delivery, "write_checkpoint", is_time)
        case Point.CHECKPOINTED:
            _behind(delivery, "write_checkpoint", is_time)
        case Point.REMOVING:
            SpoolFolder.remove = _remove_half  # type: ignore[method-assign,assignment]  # the process ends inside
        case _:
            assert_never(point)


def _tear(is_time: Callable[[], bool]) -> None:
    write = os.write

    def torn(file: int, data: bytes) -> int:
        if data[HEADER.size :].startswith(b'{"create":') and is_time():
            write(file, data[: len(data) // 2])
            _die()
        return write(file, data)

    os.write = torn  # type: ignore[assignment]  # called with these arguments only


def _compress(is_time: Callable[[], bool], *, behind: bool) -> None:
    replace = Path.replace

    def replaced(path: Path, target: Path) -> Path:
        is_here = target.suffix == ".gz" and is_time()
        if is_here and not behind:
            _die()
        done = replace(path, target)
        if is_here:
            _die()
        return done

    Path.replace = replaced  # type: ignore[method-assign,assignment]  # likewise


def _remove_half(folder: SpoolFolder) -> None:
    paths = sorted(folder.path.iterdir())
    for path in paths[: len(paths) // 2]:
        path.unlink()
    _die()


def _before(owner: Any, name: str, is_time: Callable[[], bool]) -> None:
    act = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> Any:
        if is_time():
            _die()
        return act(*arguments, **named)

    setattr(owner, name, dying)


def _behind(owner: Any, name: str, is_time: Callable[[], bool]) -> None:
    act = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> Any:
        done = act(*arguments, **named)
        if is_time():
            _die()
        return done

    setattr(owner, name, dying)


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL has no effect")
