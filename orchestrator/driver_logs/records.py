"""Groups lines into records: a stack trace or a private key is one record, as is each other line.

The bounds of a record depend only on its own lines and those after it: reading again from the start of a
record to the end of one finds the same records.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from itertools import accumulate, repeat
from typing import NamedTuple


class RecordKind(Enum):
    """The kind of a record."""

    LINE = auto()  # one line, or the lines of a private key, which are masked together
    JAVA = auto()  # a line and the trace below it
    PYTHON = auto()  # a traceback with those of its causes, and the Java trace below it


class ParsedRecord(NamedTuple):
    """Lines with their line ends; `offset` is that of the first byte."""

    offset: int
    data: bytes
    kind: RecordKind


_BLANKS = (b" ", b"\t")
_TRACEBACK = re.compile(rb"(?P<group>  \+ Exception Group )?Traceback \(most recent call last\):\r?\n?\Z")
_JAVA = re.compile(
    rb"[ \t]+at [^\s(]+\(|[ \t]*(?:Caused by|Suppressed): |[ \t]+\.\.\. \d+ (?:more|common frames)"
)
# Most logs contain none of them, and a search for them costs a fraction of matching each line.
_HINTS = (
    b"Traceback (most recent",
    b"\tat ",
    b"  at ",
    b"Caused by: ",
    b"Suppressed: ",
    b" more",
    b" common fra",
    b"PRIVATE KEY",
)
_KEY = re.compile(rb".*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_OF_KEY = re.compile(rb"[A-Za-z0-9+/=]{1,100}\r?\n?\Z|[A-Za-z-]{1,40}: [\w,. -]{1,200}\r?\n?\Z|\r?\n?\Z")
_END_OF_KEY = b"-----END "
_CHAINED = (
    b"During handling of the above exception, another exception occurred:",
    b"The above exception was the direct cause of the following exception:",
)
_OF_JAVA = b": "  # the second line of a Py4JJavaError: what was thrown in the JVM


def records(data: bytes, offset: int, *, whole: bool) -> list[ParsedRecord]:
    """The records of these bytes, which begin at `offset`.

    `whole`: no later line belongs to them. Else the last records are left out while later lines may do so.
    """
    lines = [line + b"\n" for line in data.split(b"\n")]
    rest = lines.pop()[:-1]
    if whole and rest:
        lines.append(rest)
    if not any(hint in data for hint in _HINTS):
        return _plain(lines if whole else lines[:-1], offset)
    ends = _grouped(lines)
    if not whole:
        ends = ends[: _settled(lines, ends)]
    found, start = list[ParsedRecord](), 0
    for end, kind in ends:
        text = lines[start] if end == start + 1 else b"".join(lines[start:end])
        found.append(ParsedRecord(offset, text, kind))
        offset += len(text)
        start = end
    return found


def _plain(lines: Sequence[bytes], offset: int) -> list[ParsedRecord]:
    offsets = accumulate(map(len, lines), initial=offset)
    return list(map(ParsedRecord, offsets, lines, repeat(RecordKind.LINE)))


def _grouped(lines: Sequence[bytes]) -> list[tuple[int, RecordKind]]:
    """The number of the line after each record, and its kind."""
    ends, start = list[tuple[int, RecordKind]](), 0
    while start < len(lines):
        kind, end = RecordKind.LINE, start + 1
        if _TRACEBACK.match(lines[start]):
            kind, end = RecordKind.PYTHON, _after_traceback(lines, start)
            while (
                end + 3 < len(lines)
                and _is_between_tracebacks(lines[end : end + 3])
                and _TRACEBACK.match(lines[end + 3])
            ):
                end = _after_traceback(lines, end + 3)
        # Also in the message of an error.
        if _KEY.match(lines[end - 1]) and _END_OF_KEY not in lines[end - 1]:
            end = _after_key(lines, end)
        below = _after_java(lines, end, kind)
        ends.append((below, RecordKind.JAVA if kind is RecordKind.LINE and below > end else kind))
        start = below
    return ends


def _after_traceback(lines: Sequence[bytes], start: int) -> int:
    """The number of the line after the one that names the exception, the first that is not indented."""
    match = _TRACEBACK.match(lines[start])
    end = start + 1
    while end < len(lines) and lines[end].startswith(_BLANKS):
        end += 1
    is_group = match is not None and match["group"] is not None  # all lines of a group are indented
    return end if is_group else min(end + 1, len(lines))


def _after_key(lines: Sequence[bytes], end: int) -> int:
    """The number of the line after a key, or of the first line of something else: a key may be truncated."""
    while end < len(lines) and _OF_KEY.match(lines[end]):
        end += 1
    return end + 1 if end < len(lines) and lines[end].startswith(_END_OF_KEY) else end


def _after_java(lines: Sequence[bytes], end: int, kind: RecordKind) -> int:
    if kind is RecordKind.PYTHON and end < len(lines) and lines[end].startswith(_OF_JAVA):
        end += 1
    while end < len(lines) and _JAVA.match(lines[end]):
        end += 1
    return end


def _is_between_tracebacks(lines: Sequence[bytes]) -> bool:
    """Whether these are the lines between two tracebacks of one error, or the first of these lines."""
    wanted: tuple[tuple[bytes, ...], ...] = ((b"",), _CHAINED, (b"",))
    return all(line.strip() in words for line, words in zip(lines, wanted, strict=False))


def _settled(lines: Sequence[bytes], ends: Sequence[tuple[int, RecordKind]]) -> int:
    """The number of records that later lines cannot extend: all but the last, or but a chained traceback."""
    count = len(ends) - 1
    for index in range(len(ends) - 1, max(-1, len(ends) - 5), -1):
        end, kind = ends[index]
        between = lines[end:]
        if (
            kind is RecordKind.PYTHON
            and len(between) <= len(_CHAINED) + 1
            and _is_between_tracebacks(between)
        ):
            return index
    return max(0, count)
