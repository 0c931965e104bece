"""Looks up functions in the Python files of a job, as text: no code of the job is imported or run."""

import ast
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.python_modules import ARCHIVES

_MAX_BYTES = 4 * 1024 * 1024  # of all modules that are parsed; further ones are not looked into
_MAX_ARCHIVE_BYTES = 256 * 1024 * 1024
_MAX_MEMBERS, _MAX_DEPTH = 50_000, 20  # of an archive
_ELSEWHERE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*:|.*[*?\[{#]", re.IGNORECASE)  # URLs, patterns
_INIT = "__init__"


class NotThere(Exception):
    """The Python files hold no such function; the message is for users."""


@dataclass
class PythonFiles:
    """The Python files of a definition, as far as this host can read them."""

    files: Sequence[str]
    directory: str = ""
    _modules: dict[str, "_Module | None"] | None = None  # None: the module has no file of its own
    _all_known: bool = True
    _parsed: dict[str, "_Names | None"] = field(default_factory=dict)
    _left: int = _MAX_BYTES

    def check(self, module: str, attribute: str, *, has_type: bool) -> None:
        """Raise NotThere unless the function may be there.

        `has_type`: the script names the type of the result. Nothing is known of files elsewhere, nor without
        any files: those may be in the settings of the pool.
        """
        modules = self._found()
        if module not in modules:
            if self._all_known and self.files:
                known = ", ".join(self.files)
                hint = did_you_mean(module, modules) or f"; the Python files of the job are {known}"
                message = f"there is no module '{module}'{hint}"
                raise NotThere(message)
            return
        names = self._names(module)
        if names is None:
            return
        if attribute in names.wrong:
            message = f"'{attribute}' of module '{module}' is {names.wrong[attribute]}, not a function"
            raise NotThere(message)
        if attribute not in names.known and not names.may_have_others:
            hint = did_you_mean(attribute, names.known)
            message = f"module '{module}' has no function '{attribute}'{hint}"
            raise NotThere(message)
        if attribute in names.untyped and not has_type:
            message = f"'{attribute}' of module '{module}' does not say what it returns; add RETURNS type"
            raise NotThere(message)

    def _found(self) -> Mapping[str, "_Module | None"]:
        if self._modules is None:
            self._modules = {}
            for file in self.files:
                path = Path(self.directory or "/", file.removeprefix("file:"))
                try:
                    if _ELSEWHERE.match(file) or not path.is_file():  # a pipe would keep its reader waiting
                        self._all_known = False
                    elif path.suffix.lower() in ARCHIVES:
                        self._modules |= _in_archive(path)
                    elif path.suffix == ".py":
                        self._modules[path.stem] = _Module(path, "")
                    else:
                        self._all_known = False
                except (OSError, ValueError, zipfile.BadZipFile):
                    self._all_known = False
        return self._modules

    def _names(self, module: str) -> "_Names | None":
        """The names at the top of a module; None if they cannot be known. Raises NotThere at its syntax."""
        if module not in self._parsed:
            self._parsed[module] = None
            source = (self._modules or {}).get(module)
            if source is None:
                return None
            try:
                text = source.read(self._left)
                self._left -= len(text)
                self._parsed[module] = _Names.of(ast.parse(text))
            except SyntaxError as error:
                message = f"{source.name}, line {error.lineno}: {error.msg}"
                raise NotThere(message) from error
            except (OSError, ValueError, RecursionError, MemoryError, zipfile.BadZipFile, KeyError):
                return None
        return self._parsed[module]


@dataclass(frozen=True)
class _Module:
    path: Path
    member: str  # of an archive; empty for a file of its own

    @property
    def name(self) -> str:
        return f"{self.path.name}/{self.member}" if self.member else self.path.name

    def read(self, limit: int) -> bytes:
        """The text; raises ValueError if it is longer than `limit`."""
        if not self.member:
            with self.path.open("rb") as file:
                text = file.read(limit + 1)
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as member:
                text = member.read(limit + 1)
        if len(text) > limit:
            message = "the modules are too large to be checked"
            raise ValueError(message)
        return text


def _in_archive(path: Path) -> dict[str, _Module | None]:
    """The modules in an archive; folders are packages, too."""
    found = dict[str, _Module | None]()
    if path.stat().st_size > _MAX_ARCHIVE_BYTES:
        message = "the archive is too large to be checked"
        raise ValueError(message)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if len(names) > _MAX_MEMBERS:
        message = "the archive has too many files to be checked"
        raise ValueError(message)
    for name in names:
        *folders, last = name.split("/", _MAX_DEPTH)
        for depth in range(1, len(folders) + 1):
            found.setdefault(".".join(folders[:depth]), None)
        stem = last.removesuffix(".py")
        if stem != last:
            found[".".join(folders if stem == _INIT else [*folders, stem])] = _Module(path, name)
    return found


@dataclass
class _Names:
    """The names at the top of a module."""

    known: set[str] = field(default_factory=set)
    wrong: dict[str, str] = field(default_factory=dict)  # names that are no functions, with what they are
    untyped: set[str] = field(default_factory=set)  # functions without the type of their result
    may_have_others: bool = False  # it imports all names of another module, or makes names when asked

    @classmethod
    def of(cls, tree: ast.Module) -> "_Names":
        found = cls()
        for statement in _statements(tree.body):
            found._add(statement)
        found.may_have_others |= "__getattr__" in found.known
        return found

    def _add(self, statement: ast.stmt) -> None:
        match statement:
            case ast.FunctionDef(name=name):
                self._set(name)
                returns = statement.returns
                is_none = isinstance(returns, ast.Constant) and returns.value is None
                if not statement.decorator_list and (returns is None or is_none):
                    self.untyped.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                what = "a class" if isinstance(statement, ast.ClassDef) else "async"
                self._set(name, "" if statement.decorator_list else what)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    self.may_have_others |= alias.name == "*"
                    self._set(alias.asname or alias.name.partition(".")[0])
            case _:
                self._add_assigned(statement)

    def _add_assigned(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._set(node.id)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                self.may_have_others |= node.func.id in {"globals", "exec", "setattr", "vars"}

    def _set(self, name: str, what_else: str = "") -> None:
        """Give a name its last meaning."""
        self.known.add(name)
        self.untyped.discard(name)
        self.wrong.pop(name, None)
        if what_else:
            self.wrong[name] = what_else


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, also those below `if`, `try`, `with` and loops; not those of functions."""
    waiting = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        inner = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt)]
        handlers = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.ExceptHandler)]
        inner += [node for handler in handlers for node in handler.body]
        waiting += reversed(inner)
