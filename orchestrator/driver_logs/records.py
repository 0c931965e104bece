"""From lines to records: a stack trace is one record, and so is a private key; any other line is by itself.

What a record is follows from its own lines and those behind it: who reads again from where a record began,
up to where one ended, finds the same ones.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from itertools import accumulate, repeat
from typing import NamedTuple


class RecordKind(Enum):
    """What a record is."""

    LINE = auto()  # of a private key several, which are masked as one
    JAVA = auto()  # a line and the trace below it
    PYTHON = auto()  # a traceback, those that it came from, and what Java says below it


class ParsedRecord(NamedTuple):
    """Some lines with their ends; `offset` of the first byte."""

    offset: int
    data: bytes
    kind: RecordKind


_BLANKS = (b" ", b"\t")
_TRACEBACK = re.compile(rb"(?P<group>  \+ Exception Group )?Traceback \(most recent call last\):\r?\n?\Z")
_JAVA = re.compile(
    rb"[ \t]+at [^\s(]+\(|[ \t]*(?:Caused by|Suppressed): |[ \t]+\.\.\. \d+ (?:more|common frames)"
)
# Most logs have none of them, and a look for words costs a fraction of one at each line.
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

    `whole`: nothing will come that belongs to them. Else the last ones are left out as long as that may be.
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
    """Behind which line each record ends, and what it is."""
    ends, start = list[tuple[int, RecordKind]](), 0
    while start < len(lines):
        kind, end = RecordKind.LINE, start + 1
        if _TRACEBACK.match(lines[start]):
            kind, end = RecordKind.PYTHON, _after_traceback(lines, start)
            while (
                end + 3 < len(lines) and _leads_on(lines[end : end + 3]) and _TRACEBACK.match(lines[end + 3])
            ):
                end = _after_traceback(lines, end + 3)
        if _KEY.match(lines[end - 1]) and _END_OF_KEY not in lines[end - 1]:  # also in the words of an error
            end = _after_key(lines, end)
        below = _after_java(lines, end, kind)
        ends.append((below, RecordKind.JAVA if kind is RecordKind.LINE and below > end else kind))
        start = below
    return ends


def _after_traceback(lines: Sequence[bytes], start: int) -> int:
    """Behind the line that names the exception, which is the first one that is not indented."""
    match = _TRACEBACK.match(lines[start])
    end = start + 1
    while end < len(lines) and lines[end].startswith(_BLANKS):
        end += 1
    is_group = match is not None and match["group"] is not None  # all lines of that are indented
    return end if is_group else min(end + 1, len(lines))


def _after_key(lines: Sequence[bytes], end: int) -> int:
    """Behind the end of a key, or where something else begins: a key may be cut off."""
    while end < len(lines) and _OF_KEY.match(lines[end]):
        end += 1
    return end + 1 if end < len(lines) and lines[end].startswith(_END_OF_KEY) else end


def _after_java(lines: Sequence[bytes], end: int, kind: RecordKind) -> int:
    if kind is RecordKind.PYTHON and end < len(lines) and lines[end].startswith(_OF_JAVA):
        end += 1
    while end < len(lines) and _JAVA.match(lines[end]):
        end += 1
    return end


def _leads_on(lines: Sequence[bytes]) -> bool:
    """Whether these are the lines between two tracebacks of one error, or the first of those."""
    wanted: tuple[tuple[bytes, ...], ...] = ((b"",), _CHAINED, (b"",))
    return all(line.strip() in words for line, words in zip(lines, wanted, strict=False))


def _settled(lines: Sequence[bytes], ends: Sequence[tuple[int, RecordKind]]) -> int:
    """How many records can have no further line: the last one can, and what may be between tracebacks."""
    count = len(ends) - 1
    for index in range(len(ends) - 1, max(-1, len(ends) - 5), -1):
        end, kind = ends[index]
        between = lines[end:]
        if kind is RecordKind.PYTHON and len(between) <= len(_CHAINED) + 1 and _leads_on(between):
            return index
    return max(0, count)
