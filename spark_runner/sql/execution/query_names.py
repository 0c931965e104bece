"""The streaming queries of a script: the folder of each, the INSERTs in it, and the names that people see."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from spark_runner.sql.execution.folder_names import SET_MARK, folder_name
from spark_runner.sql.grammar.statements import CatalogAction

_NO_PART_OF_OTHERS = frozenset({"insert", "begin_set", "end_set"})  # kinds of steps


def is_insert(step: Mapping[str, Any]) -> bool:
    """Whether a step adds rows to a table, of the script or of a catalog."""
    is_of_catalog = step["kind"] == "catalog" and step["action"] == CatalogAction.INSERT_INTO
    return bool(step["kind"] == "insert" or is_of_catalog)


class QueryNames:
    """The queries of the INSERTs and statement sets of a script in a mode that streams."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._steps = steps
        self._folders: dict[int, str] = {}  # by the id of the step of an INSERT or of the begin of a set
        self._shown: dict[int, str] = {}  # by the id of the step of an INSERT
        self._begins: dict[int, Mapping[str, Any]] = {}  # the step that begins its query, likewise
        self._targets: dict[str, Counter[str]] = {}  # by folder
        folders, shown, begun = Counter[str](), Counter[str](), None
        for step in steps:
            if step["kind"] in {"begin_set", "end_set"}:
                begun = step if step["kind"] == "begin_set" else None
            if not is_insert(step):
                continue
            self._begins[id(step)] = step if begun is None else begun
            table = folder_name(step["target"])
            shown[table] += 1
            self._shown[id(step)] = _numbered(_visible(step["target"]), ",", shown[table])
            if begun is None:
                folders[table] += 1
                self._folders[id(step)] = _numbered(table, ",", folders[table])
            elif id(begun) not in self._folders:
                folders[f"{table}{SET_MARK}"] += 1
                self._folders[id(begun)] = _numbered(table + SET_MARK, "", folders[f"{table}{SET_MARK}"])
            own = self._folders[id(step if begun is None else begun)]
            self._targets.setdefault(own, Counter())[table] += 1

    def folder(self, step: Mapping[str, Any]) -> str:
        """The name of the folder of the query that begins at a step, or to which an INSERT belongs."""
        return self._folders[id(self._begins.get(id(step), step))]

    def shown(self, step: Mapping[str, Any]) -> str:
        """The name that the progress of a job has for an INSERT."""
        return self._shown[id(step)]

    def mark(self, step: Mapping[str, Any]) -> str:
        """What tells the writer of an INSERT from those of others of its set; empty outside of a set.

        It stays when other INSERTs are added, removed or moved.
        """
        if id(step) in self._folders:
            return ""
        return f"x{hashlib.sha256(self._shown[id(step)].lower().encode()).hexdigest()[:16]}"

    def all_folders(self) -> dict[str, Counter[str]]:
        """The folders of all INSERTs and sets of the script, with their targets as names of folders."""
        return self._targets

    def meant(self, steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """These INSERTs, and the declarations and settings before the last of them."""
        own = {id(step) for step in steps}
        last = max(number for number, step in enumerate(self._steps) if id(step) in own)
        return [
            each
            for each in self._steps[: last + 1]
            if id(each) in own or not (each["kind"] in _NO_PART_OF_OTHERS or is_insert(each))
        ]


def _visible(table: str) -> str:
    return table.replace(",", "%2C")  # as in the name of the folder


def _numbered(name: str, mark: str, number: int) -> str:
    return name if number == 1 else f"{name}{mark}{number}"
