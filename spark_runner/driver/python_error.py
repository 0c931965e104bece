"""An exception of a Python program as its user sees it: the line that failed, and a traceback from there.

The traceback leaves out the frames of this driver, of PySpark and of Py4J; in the log of the driver it begins
with the first frame of the program, too, and is complete from there. An exception that a task of Spark raised
on an executor comes as text, in the message of another exception.
"""

import linecache
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType

import py4j  # type: ignore[import-untyped]  # py4j publishes no types
import pyspark
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # as above
from pyspark.errors import PySparkException

import spark_runner
from spark_runner.driver.missing_module import remedy
from spark_runner.protocol.redacted import redacted
from spark_runner.protocol.text import shortened

_MAX_LINE = 160  # characters of a line of the program
_MAX_TEXT = 100_000  # characters of a message that are looked at
_MAX_SAID = 3_000  # characters of a message beside the line that failed
_MAX_WORDS = 1_000  # characters of a message in a traceback, beside its frames
_MAX_FRAMES = 20  # of each end of a traceback
_MAX_LINKS = 5  # exceptions that caused one another

_PACKAGES = Path(spark_runner.__file__).parent.parent
_PLUMBING = (
    *(f"{_PACKAGES / name}{os.sep}" for name in ("spark_runner", "orchestrator", "queues")),
    *(f"{Path(str(each.__file__)).parent}{os.sep}" for each in (pyspark, py4j)),
)
_FROZEN = re.compile(r"<frozen [\w.]+>$")
_ELSEWHERE = re.compile(  # of an executor
    r"/(site-packages|dist-packages|python)/(pyspark|py4j)/|/(pyspark|py4j-[\d.]+-src)\.zip/"
    r"|\.zip/(spark_runner|orchestrator|queues)/"
)
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = f"{Path(os.__file__).parent}{os.sep}"

_REMOTE = re.compile(r"^\s*Traceback \(most recent call last\):$", re.MULTILINE)
_REMOTE_FRAME = re.compile(r'^ *File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]*)$')
_REMOTE_ERROR = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_JAVA_TRACE = re.compile(
    r"^\s*(at [\w.$/]+\(|\.\.\. \d+ more|JVM stacktrace:)|^Driver stacktrace:|^Caused by: "
)
_PLAN = re.compile(r";\n'?[A-Z]\w*(?: |$)|\n\+- |\n\s*at [\w.$/]+\(|\nJVM stacktrace:")
_CALL = re.compile(r"An error occurred while calling [\w.:$]+\.\n: ")
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
_ACTION = "\nA task of Spark raised it, for this action of the program:\n\n"


@dataclass(frozen=True)
class UserCode:
    """The Python files of a job: the program, the folder of its definition, and the names of other files."""

    file: str  # of the program, as the definition names it
    text: str
    directory: str
    script: str = ""  # the path that the program got as its own
    py_files: Mapping[str, str] = field(default_factory=dict)  # by their names: the paths in the definition

    def is_own(self, path: str) -> bool:
        """Whether a file is one of the job."""
        if path == self.script:
            return True
        if _is_plumbing(path) or _INSTALLED.intersection(PurePosixPath(path).parts):
            return False
        if path.startswith(_STANDARD):
            return False
        below = bool(self.directory) and path.startswith(f"{self.directory.rstrip('/')}/")
        return below or PurePosixPath(path).name in self.py_files or self._beside(path)

    def _beside(self, path: str) -> bool:
        """Whether a file is one of those that travelled with a program whose folder is elsewhere."""
        return bool(self.script) and PurePosixPath(path).parent == PurePosixPath(self.script).parent

    def known_as(self, path: str) -> str:
        """The path of a file as its user knows it."""
        if path == self.script:
            return str(PurePosixPath(self.directory, PurePosixPath(self.file).name))
        name = PurePosixPath(path).name
        if path.startswith(f"{self.directory.rstrip('/')}/") or name not in self.py_files:
            return path
        return str(PurePosixPath(self.directory, self.py_files[name]))

    def short(self, path: str) -> str:
        """The name of a file at the beginning of a message."""
        if path == self.script:
            return self.file
        known = self.known_as(path)
        below = f"{self.directory.rstrip('/')}/"
        return known.removeprefix(below) if self.directory else known

    def line(self, path: str, number: int) -> str:
        """A line of a file without the space around it; empty if it cannot be read."""
        if path == self.script:
            lines = self.text.split("\n", number)[:number]
            found = lines[number - 1] if 0 < number <= len(lines) else ""
        else:
            found = linecache.getline(path, number)
        return shortened(str(redacted(_readable(found[:_MAX_TEXT].strip()))), _MAX_LINE)


@dataclass(frozen=True)
class _Frame:
    """One line of a traceback."""

    path: str
    line: int
    function: str


@dataclass(frozen=True)
class PythonError:
    """The class of the exception, its message with the line that failed, and the traceback."""

    type: str
    message: str
    stack: str


def described(error: BaseException, code: UserCode) -> PythonError | None:
    """The exception as its user sees it; None for one that no line of the program has raised."""
    frames = _shown(_frames(error.__traceback__), code)
    words = text_of(error)
    remote = _remote(words, code) if isinstance(error, PySparkException | Py4JJavaError) else None
    if remote is not None:
        kind, said, there = remote
        stack = _block(there, _last_line(kind, said), code)
        # PySpark adds frames of the task to those of this process.
        if action := [frame for frame in frames if frame not in there]:
            stack += _ACTION + _block(action, "", code)
        return PythonError(kind, _message(kind, said, there, code, module=_missing(words)), stack)
    if isinstance(error, SyntaxError) and error.filename and code.is_own(error.filename):
        kind = type(error).__name__
        place = [_Frame(error.filename, error.lineno or 1, "")]
        return PythonError(kind, _message(kind, error.msg, place, code), _chain(error, code))
    if not any(code.is_own(frame.path) for frame in frames):
        return None
    kind = type(error).__name__
    module = error.name if isinstance(error, ModuleNotFoundError) else None
    return PythonError(
        kind, _message(kind, _brief(error, words), frames, code, module=module), _chain(error, code)
    )


def from_program(error: BaseException, code: UserCode) -> TracebackType | None:
    """The traceback from the first frame of the program on; the whole one without such a frame."""
    found = error.__traceback__
    while found is not None and not code.is_own(found.tb_frame.f_code.co_filename):
        found = found.tb_next
    if found is not None:
        return found
    own = isinstance(error, SyntaxError) and isinstance(error.filename, str) and code.is_own(error.filename)
    return None if own else error.__traceback__  # a syntax error has its place itself


def text_of(error: BaseException) -> str:
    """The message of an exception, of which no more is kept than anyone reads; its own code may fail, too."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - the program wrote it
        return "(its message cannot be read)"
    return str(
        redacted(_readable(shortened(words, _MAX_TEXT)))
    )  # before it is cut: half a secret is not known


def _message(
    kind: str, words: str, frames: list[_Frame], code: UserCode, *, module: str | None = None
) -> str:
    at = next((frame for frame in reversed(frames) if code.is_own(frame.path)), None)
    head = f"{kind}: {shortened(words, _MAX_SAID)}" if words else kind
    if at is not None:
        line = code.line(at.path, at.line)
        head = f"{code.short(at.path)}:{at.line}: {head}" + (f"\n    {line}" if line else "")
    return f"{head}\n{remedy(module, code.directory)}" if module else head


def _brief(error: BaseException, words: str) -> str:
    """The message; that of Spark without the call before it, and without plan and Java frames behind it."""
    if not isinstance(error, PySparkException | Py4JJavaError):
        return words
    if found := _CALL.match(words):
        words = words[found.end() :]
    found = _PLAN.search(words)
    return (words[: found.start()] if found else words).strip()


def _missing(words: str) -> str | None:
    found = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", words)
    return found[1] if found else None


def _chain(error: BaseException, code: UserCode) -> str:
    """The tracebacks of an exception and of those that caused it, the first one first."""
    links, seen = list[str](), set[int]()
    found: BaseException | None = error
    while found is not None and id(found) not in seen and len(seen) < _MAX_LINKS:
        seen.add(id(found))
        last = "".join(_last_lines(found, code))
        links.append(_block(_shown(_frames(found.__traceback__), code), last.rstrip("\n"), code))
        if found.__cause__ is not None:
            links.append(_CAUSE)
            found = found.__cause__
        elif found.__context__ is not None and not found.__suppress_context__:
            links.append(_CONTEXT)
            found = found.__context__
        else:
            break
    if links[-1] in (_CAUSE, _CONTEXT):
        links.pop()
    return "".join(reversed(links))


def _last_lines(error: BaseException, code: UserCode) -> Iterator[str]:
    if isinstance(error, SyntaxError) and error.filename:
        yield f'  File "{code.known_as(error.filename)}", line {error.lineno}\n'
        if line := code.line(error.filename, error.lineno or 0):
            yield f"    {line}\n"
        yield f"{type(error).__name__}: {error.msg}\n"
        return
    yield _last_line(type(error).__qualname__, _brief(error, text_of(error)))


def _last_line(kind: str, words: str) -> str:
    return f"{kind}: {shortened(words, _MAX_WORDS)}" if words else kind


def _block(frames: Iterable[_Frame], last: str, code: UserCode) -> str:
    lines = list[str]()
    for frame in frames:
        if not frame.line:
            lines.append(f"  {frame.function}")
            continue
        lines.append(f'  File "{code.known_as(frame.path)}", line {frame.line}, in {frame.function}')
        if line := code.line(frame.path, frame.line):
            lines.append(f"    {line}")
    if lines:
        lines.insert(0, "Traceback (most recent call last):")
    return "\n".join((*lines, last, "")) if last else "\n".join((*lines, ""))


def _frames(found: TracebackType | None) -> Iterator[_Frame]:
    while found is not None:
        code = found.tb_frame.f_code
        yield _Frame(code.co_filename, found.tb_lineno, code.co_name)
        found = found.tb_next


def _shown(frames: Iterable[_Frame], code: UserCode) -> list[_Frame]:
    """The frames from the first one of the program on, without plumbing; of very many, those at both ends."""
    first, last, left_out, begun = list[_Frame](), list[_Frame](), 0, False
    for frame in frames:
        begun = begun or code.is_own(frame.path)
        if not begun or (_is_plumbing(frame.path) and not code.is_own(frame.path)):
            continue
        if len(first) < _MAX_FRAMES:
            first.append(frame)
            continue
        last.append(frame)
        if len(last) > _MAX_FRAMES:
            last.pop(0)
            left_out += 1
    gap = [_Frame("", 0, f"[{left_out:,} more frames]")] if left_out else []
    return [*first, *gap, *last]


def _is_plumbing(path: str) -> bool:
    return (
        path.startswith(_PLUMBING) or _FROZEN.match(path) is not None or _ELSEWHERE.search(path) is not None
    )


def _remote(words: str, code: UserCode) -> tuple[str, str, list[_Frame]] | None:
    """The class, the message and the frames of the exception that a task raised; None without one."""
    begins = list(_REMOTE.finditer(words))
    if not begins:
        return None
    frames, behind = list[_Frame](), list[str]()
    for line in words[begins[-1].end() :].split("\n")[1:]:
        if _JAVA_TRACE.match(line):
            break
        if found := _REMOTE_FRAME.match(line):
            frames.append(_Frame(found["file"], int(found["line"]), found["function"]))
            behind.clear()
        elif line.strip() or behind:
            behind.append(line)
    error = next(
        (index for index, line in enumerate(behind) if line[:1].strip() and _REMOTE_ERROR.match(line)), None
    )
    if error is None:
        return None
    found = _REMOTE_ERROR.match(behind[error])
    said = "\n".join((found["message"] or "", *behind[error + 1 :])) if found else ""
    shown = _shown(frames, code)
    return (found["type"].rpartition(".")[2], said.strip(), shown) if found and shown else None


def _readable(text: str) -> str:
    # File names that are not UTF-8 hold lone surrogates, which no log and no node can store.
    return text.encode("utf-8", "replace").decode()
