"""A file system of Hadoop whose user dies before its n-th change, by an exception or by `kill -9`."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_runner.connectors.files import folders, hadoop, targets

_CHANGES = {"rename", "delete", "create", "mkdirs", "setPermission"}
KINDS = ("exchange", "renames", "objects")
"""How a folder is replaced: in one step, by two renames, or object by object."""


class Died(BaseException):
    """Takes the place of a death by `kill -9`: from then on no change is made."""


def die() -> None:
    raise Died


def arm(patch: pytest.MonkeyPatch, kind: str, changes: int, death: Callable[[], None] = die) -> list[str]:
    """Let the user of targets die when it has made so many changes; returns their names."""
    done = list[str]()
    find, real_exchange = hadoop.file_system_at, folders.exchange

    def count(name: str) -> None:
        if len(done) >= changes:
            death()
        done.append(name)

    def exchange(one: str, other: str) -> bool:
        if kind != "exchange":
            return False
        count("exchange")
        return real_exchange(one, other)

    class Files:
        def __init__(self, files: Any) -> None:
            self._files = files

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._files, name)
            if name not in _CHANGES:
                return found

            def change(*arguments: Any) -> Any:
                count(name)
                return found(*arguments)

            return change

    def found(session: Any, location: str) -> tuple[Any, Any]:
        files, path = find(session, location)
        return Files(files), path

    patch.setattr(targets, "file_system_at", found)
    patch.setattr(targets, "exchange", exchange)
    as_objects(patch, kind)
    return done


def as_objects(patch: pytest.MonkeyPatch, kind: str) -> None:
    """Of `objects`, let local folders be replaced as in an object store."""
    if kind == "objects":
        patch.setattr(targets, "FOLDERS_RENAME", targets.FOLDERS_RENAME - {"file"})
