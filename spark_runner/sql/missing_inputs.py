"""Files that a script reads and that do not exist on this host, found before any Spark starts.

Only what is certain is reported: a local path that the script does not write itself. A file that comes later,
and one that this process may not see, are left to Spark.
"""

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from spark_runner.connectors.files.patterns import is_pattern
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.locations import comparable, overlap
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import ScriptSource

_FORMATS = frozenset({"csv", "json", "orc", "parquet", "text"})
_MAX_ENTRIES = 20_000  # of folders that one pattern is compared with
_MAX_ALTERNATIVES = 64  # of one pattern
_NEIGHBOURS = 1_000  # names that are compared with a missing one
_BRACES = re.compile(r"\{([^{}]*)\}")
_SWAP = re.compile(r"\.orchestrator-.*\.old")  # of an INSERT OVERWRITE of another job


class _UncertainError(Exception):
    """A pattern cannot be judged here."""


def missing_inputs(plan: Mapping[str, Any], *, default_is_local: bool, where: str = "") -> list[SqlError]:
    """An error for each table of files whose path does not exist, in order of the script.

    `plan` has its text. `default_is_local`: paths without a scheme are those of this host. `where` is put
    behind the path in messages.
    """
    source, tables = ScriptSource(plan["file"], plan["source"]), [*_tables(plan)]
    written = [
        comparable(step["location"]) for step in tables if _is_written(step, plan) and step["location"]
    ]
    default_is_local = default_is_local and not any(_moves_default(step) for step in plan["steps"])
    found = list[SqlError]()
    for step in tables:
        path = _local_path(step, default_is_local=default_is_local)
        if not path or not _is_read(step, plan) or any(overlap(comparable(path), each) for each in written):
            continue
        if message := _missing(path, where, is_stream=bool(step.get("stream"))):
            line, column = step.get("path_at") or (step["line"], step["column"])
            found.append(source.error(message, source.offset(line, column)))
    return found


def _tables(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The tables up to the first statement that changes a catalog: its files may be anywhere."""
    for step in plan["steps"]:
        if step["kind"] == "table":
            yield step
        elif step["kind"] == "catalog":
            return


def _is_written(step: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    kept = (plan.get("bad_rows") or {}).get("table", "")
    return bool(step["written"] or step.get("explained")) or step["name"].lower() == str(kept).lower()


def _is_read(step: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    """Whether Spark lists the files of a table; it does so for those that no statement uses, too."""
    if step["connector"] not in _FORMATS or _is_written(step, plan):
        return False
    if step.get("stream") and step["columns"] is None:
        return False
    return bool(step["read"]) or not step.get("only_with_options")


def _moves_default(step: Mapping[str, Any]) -> bool:
    """Whether a setting may give paths without a scheme another file system."""
    return step["kind"] == "set" and str(step["key"]).startswith("fs.")


def _local_path(step: Mapping[str, Any], *, default_is_local: bool) -> str:
    """The path of a table on this host; empty if it may be elsewhere."""
    location = str(step["location"])
    if not location or has_mark(location) or "path" in (step.get("references") or ()):
        return ""
    if location.startswith("file:"):
        return "/" + location.removeprefix("file:").lstrip("/")
    return location if location.startswith("/") and (step.get("beside") or default_is_local) else ""


def _missing(path: str, where: str, *, is_stream: bool) -> str:
    """The message for a path that does not exist; empty if it does, or that is not certain."""
    if is_pattern(path):
        # A stream waits for files that match.
        if is_stream or _may_match(path):
            return ""
        return f"no file or folder matches '{path}'{where}"
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        folder, name = os.path.split(path.rstrip("/"))
        beside = _names(folder)
        if any(_SWAP.fullmatch(each) for each in beside):
            return ""
        return f"there is no file or folder '{path}'{where}{did_you_mean(name, beside)}"
    except (OSError, ValueError):
        return ""
    return ""


def _names(folder: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, _NEIGHBOURS)]
    return []


def _may_match(pattern: str) -> bool:
    """Whether anything matches a pattern of Hadoop, or that cannot be decided in a moment."""
    if "\\" in pattern:
        return True
    left = [_MAX_ENTRIES]
    try:
        return any(
            _matches("/", [part for part in each.split("/") if part], left)
            for each in _alternatives(pattern, _MAX_ALTERNATIVES)
        )
    except (OSError, ValueError, re.error, _UncertainError):
        return True


def _alternatives(pattern: str, most: int) -> list[str]:
    """The patterns without `{a,b}`."""
    found = _BRACES.search(pattern)
    if found is None:
        if "{" in pattern or "}" in pattern:
            raise _UncertainError
        return [pattern]
    given = found[1].split(",")
    if len(given) > most:
        raise _UncertainError
    before, behind = pattern[: found.start()], pattern[found.end() :]
    return [made for each in given for made in _alternatives(f"{before}{each}{behind}", most // len(given))]


def _matches(folder: str, parts: Sequence[str], left: list[int]) -> bool:
    if not parts:
        return True
    part, *others = parts
    if not is_pattern(part):
        path = os.path.join(folder, part)  # noqa: PTH118 - a path that Path would fold
        try:
            os.stat(path)  # noqa: PTH116 - as above
        except (FileNotFoundError, NotADirectoryError):
            return False
        return _matches(path, others, left)
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    # `[^a]` of Hadoop is `[!a]` here.
    wanted = re.compile(fnmatch.translate(part.replace("[^", "[!")))
    with entries:
        for entry in entries:
            left[0] -= 1
            if left[0] < 0:
                raise _UncertainError
            if wanted.match(entry.name) and _matches(entry.path, others, left):
                return True
    return False
