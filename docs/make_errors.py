"""Makes the tables of docs/errors.md: exit codes, and the error classes of all packages with theirs."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType

from docs.generated import FOLDER, Part, code, prose, table
from orchestrator.cli import exits
from spark_runner.protocol import exit_codes

_TREES = (
    ("orchestrator", "OrchestratorError"),
    ("queues", "QueueError"),
    ("spark_runner", "SparkRunnerError"),
    ("orchestrator", "LogsError"),
)
_CLASSES = """\
Programs that use the [Python API](python-api.md) catch these classes. A class is indented below its base. The
exit code is that of a command that fails with the error."""
_DERIVED = re.compile(r"^class \w+\(", re.MULTILINE)
_CODES = exits._CODES  # noqa: SLF001 - the one place that maps errors to codes


@dataclass(frozen=True, slots=True)
class _Error:
    package: str  # names are unique in a package, and errors have their bases in their own
    name: str
    bases: tuple[str, ...]
    doc: str


def made() -> str:
    """Exit codes of commands and drivers, then one table for each tree of errors."""
    errors = list(_read_all())
    parts = ["### Commands", table(("code", "name", "meaning"), _exits())]
    parts += ["### Drivers", table(("code", "name", "meaning"), _driver_exits())]
    parts += ["## Error classes", _CLASSES]
    for package, root in _TREES:
        known = {error.name: error for error in errors if error.package == package}
        rows = _tree(known[root], known, 0)
        parts += [f"### {root}", table(("error", "exit code", "meaning"), rows)]
    return "\n\n".join(part.strip() for part in parts)


def _exits() -> Iterator[tuple[str, str, str]]:
    words = _comments(exits)
    for each in exits.Exit:
        yield str(each.value), code(each.name), prose(words.get(each.name, ""))


def _driver_exits() -> Iterator[tuple[str, str, str]]:
    words = _comments(exit_codes)
    found = {
        name: value for name, value in vars(exit_codes).items() if isinstance(value, int) and name.isupper()
    }
    for name, value in sorted(found.items(), key=lambda item: item[1]):
        yield str(value), code(name), prose(words.get(name, ""))


def _comments(module: ModuleType) -> dict[str, str]:
    """The comment behind each assignment to a name in capitals."""
    lines = inspect.getsource(module).splitlines()
    found = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id.isupper()
        ):
            found[node.targets[0].id] = lines[node.lineno - 1].partition("  # ")[2]
    return found


def _read_all() -> Iterator[_Error]:
    """The classes of all modules, by their source: some modules can only be imported inside Spark."""
    for package in ("orchestrator", "queues", "spark_runner"):
        for path in sorted((FOLDER.parent / package).rglob("*.py")):
            source = path.read_text("utf-8")
            for node in ast.parse(source).body if _DERIVED.search(source) else ():
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    bases = tuple(map(ast.unparse, node.bases))
                    yield _Error(package, node.name, bases, ast.get_docstring(node) or "")


def _tree(error: _Error, known: dict[str, _Error], depth: int) -> Iterator[tuple[str, str, str]]:
    shown = f"{'&nbsp;&nbsp;' * depth}{code(error.name)}"
    yield shown, str(_exit_of(error, known).value), prose(error.doc.partition("\n\n")[0])
    for name in sorted(each.name for each in known.values() if error.name in each.bases):
        yield from _tree(known[name], known, depth + 1)


def _exit_of(error: _Error, known: dict[str, _Error]) -> IntEnum:
    """The first code whose classes contain the error or one of its bases, as a command finds it."""
    above = {error.name}
    while (more := above.union(*(known[name].bases for name in above if name in known))) != above:
        above = more
    return next(
        found
        for types, found in _CODES
        if any(
            each.__name__ in above and each.__module__.partition(".")[0] == error.package for each in types
        )
    )


PART = Part(__file__, "errors.md", "the errors of all packages", made)

if __name__ == "__main__":
    PART.write()
