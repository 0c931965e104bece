"""The source and the target of a new job: their formats and paths, as a script writes them."""

import re
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.new.columns import CsvColumns, read_csv_columns
from orchestrator.model.errors import DefinitionError
from spark_runner.protocol.text import did_you_mean

FILE_FORMATS = ("csv", "json", "parquet", "orc", "text")
PRINT = "print"
# Text has none: a file of lines may be of any kind.
_SUFFIXES = {
    ".csv": "csv",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".parquet": "parquet",
    ".orc": "orc",
}
_LINES = CsvColumns(",", (("value", "STRING"),))
"""The columns of text."""

_COMPRESSED = (".gz", ".bz2", ".zst", ".deflate")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_WORD_BEFORE_COLON = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?!/)")
_HOW = f"write FORMAT:PATH, with one of the formats {', '.join(FILE_FORMATS)}"
_LOOKED_AT = 1_000  # files of a folder


@dataclass(frozen=True, slots=True)
class Source:
    """Files to read; `columns` where they could be found in the first rows."""

    file_format: str
    path: str
    columns: CsvColumns | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A folder to write, or standard output."""

    connector: str
    path: str = ""


def parse_source(text: str, folder: Path) -> Source:
    """The source that a user names; its path is for a script in `folder`. Raises DefinitionError."""
    file_format, path = _divided(text)
    lines = _LINES if file_format == "text" else None
    if _REMOTE.match(path):
        return Source(file_format or _format_of(path), _checked(path), lines)
    found = Path(path).expanduser()
    if not found.exists():
        raise DefinitionError(f"source {text!r}: there is no file or folder {found}")
    if not (found.is_dir() or found.is_file()):  # its first rows might never come
        raise DefinitionError(f"source {text!r}: {found} is neither a file nor a folder")
    sample = _first_file(found) if found.is_dir() else found
    if sample is None and not file_format:
        raise DefinitionError(f"source {text!r}: the folder has no files whose format is known; {_HOW}")
    file_format = file_format or _format_of(str(sample))
    is_plain = sample is not None and sample.suffix.lower() not in _COMPRESSED
    columns = read_csv_columns(sample) if sample and is_plain and file_format == "csv" else lines
    return Source(file_format, _seen_from(found, folder), columns)


def parse_target(text: str, folder: Path, source: Source) -> Target:
    """The target that a user names, in the format of the source unless the text has another.

    Raises DefinitionError.
    """
    if text == PRINT:
        return Target(PRINT)
    given, path = _divided(text)
    known = given or _SUFFIXES.get(Path(path).suffix.lower()) or source.file_format
    if known == "text" != source.file_format:
        raise DefinitionError(
            f"target {text!r}: lines of text are written from 'text' alone; choose csv or json"
        )
    if _REMOTE.match(path):
        return Target(known, _checked(path))
    found = Path(path).expanduser()
    if found.is_file():
        raise DefinitionError(f"target {text!r}: it is a file, and a target is a folder")
    return Target(known, _seen_from(found, folder))


def _divided(text: str) -> tuple[str, str]:
    """The format before a colon, if there is one, and the path."""
    head, colon, path = text.partition(":")
    if colon and head.lower() in FILE_FORMATS:
        return head.lower(), _given(path, text)
    if unknown := _WORD_BEFORE_COLON.match(text):
        near = did_you_mean(unknown[1].lower(), FILE_FORMATS) or f"; {_HOW}"
        raise DefinitionError(f"{text!r}: the format {unknown[1]!r} is not known{near}")
    return "", _given(text, text)


def _given(path: str, text: str) -> str:
    if not path.strip():
        raise DefinitionError(f"{text!r} names no path; {_HOW}")
    return path


def _format_of(path: str) -> str:
    name = Path(path)
    while name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    if (found := _SUFFIXES.get(name.suffix.lower())) is None:
        raise DefinitionError(f"the format of {path!r} is not known by its name; {_HOW}")
    return found


def _first_file(folder: Path) -> Path | None:
    """A file of a known format in a folder or one of its partitions, the same at each call."""
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if number >= _LOOKED_AT:
            return None
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        plain = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
        if not hidden and plain.suffix.lower() in _SUFFIXES and path.is_file():
            return path
    return None


def _seen_from(path: Path, folder: Path) -> str:
    """The path for a script in `folder`: relative if it is below that, else absolute."""
    full = path.absolute()
    return _checked(str(full.relative_to(folder) if full.is_relative_to(folder) else full))


def _checked(path: str) -> str:
    if "${" in path or not path.isprintable():
        raise DefinitionError(f"the path {path!r} holds characters that a script cannot name")
    return path
