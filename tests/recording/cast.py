"""Recordings of a terminal as asciicast v2: a JSON object, then a JSON array for each event, one a line."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = 2
_MOST_IDLE_S = 3  # players wait no longer, also where a busy machine did
CLEAR = "\x1b[2J\x1b[H"  # as rich writes it
LINE = "━" * 40  # between two terminals above each other
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ROW = re.compile(r"\x1b\[(\d+);1H(.*?)\x1b\[0m\x1b\[K", re.DOTALL)


@dataclass
class Recording:
    """What a terminal of this size shows; times are seconds since the first event."""

    columns: int
    rows: int
    title: str
    events: list[tuple[float, str, str]] = field(default_factory=list)
    _began: float = 0.0
    _shown: dict[int, str] = field(default_factory=dict)  # by row

    def draw(self, lines: Sequence[str], first: int) -> None:
        """The terminal shows lines from this row on; what has not changed takes no place in the recording."""
        if not self.events:
            self.output(f"\x1b[?25l{CLEAR}")
        changed = {
            row: line for row, line in enumerate(lines, first) if self._shown.setdefault(row, "") != line
        }
        self._shown |= changed
        if changed:
            self.output("".join(f"\x1b[{row};1H{line}\x1b[0m\x1b[K" for row, line in changed.items()))

    def output(self, text: str) -> None:
        """The terminal shows a text now."""
        self._add("o", text)

    def mark(self, label: str) -> None:
        """Players list this moment under its label."""
        self._add("m", label)

    def text(self) -> str:
        """The recording as a file has it."""
        header = {"version": VERSION, "width": self.columns, "height": self.rows, "title": self.title}
        header |= {"idle_time_limit": _MOST_IDLE_S}
        lines = [json.dumps(header), *(json.dumps(event, ensure_ascii=False) for event in self.events)]
        return "".join(f"{line}\n" for line in lines)

    def _add(self, kind: str, data: str) -> None:
        now = time.monotonic()
        self._began = self._began if self.events else now
        self.events.append((round(now - self._began, 3), kind, data))


def read(file: Path) -> Recording:
    """A recording from its file; raises ValueError if it is not an asciicast v2."""
    first, *lines = file.read_text("utf-8").splitlines()
    header: dict[str, Any] = json.loads(first)
    if header.get("version") != VERSION:
        raise ValueError(f"{file} is no asciicast of version {VERSION}")
    found = Recording(int(header["width"]), int(header["height"]), str(header.get("title", "")))
    for line in lines:
        at, kind, data = json.loads(line)
        if not (isinstance(at, int | float) and kind in {"o", "m"} and isinstance(data, str)):
            raise ValueError(f"{line[:100]} is no event")
        if found.events and at < found.events[-1][0]:
            raise ValueError(f"an event at {at} comes after a later one")
        found.events.append((float(at), kind, data))
    return found


def frames(recording: Recording) -> Iterator[tuple[str, str]]:
    """The upper terminal at each mark: the label, and the page as text."""
    rows = dict[int, str]()
    for _, kind, data in recording.events:
        if kind == "m":
            shown = plain("\n".join(rows.get(row, "") for row in range(1, recording.rows + 1)))
            yield data, shown.partition(LINE)[0].rstrip("\n")
        rows |= {int(row): line for row, line in _ROW.findall(data)}


def plain(text: str) -> str:
    """A text without colours and movements, and without spaces at the ends of its lines."""
    return "\n".join(line.rstrip() for line in _CONTROL.sub("", text).splitlines())


def push_part(page: str) -> str:
    """The part of a page of `job show` about the push: up to the next empty line."""
    return page[page.index("push into ") :].partition("\n\n")[0]


def excerpt(pages: Iterable[tuple[str, str]]) -> str:
    """Pages with their labels, as a part of a document."""
    return "".join(f"{label}\n\n```\n{push_part(page)}\n```\n\n" for label, page in pages)
