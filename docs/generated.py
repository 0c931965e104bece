"""What the scripts share that make parts of pages from the code: marks, tables, docstrings."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

FOLDER = Path(__file__).parent
_END = "<!-- end -->"
_PAGE = re.compile(r"\bdocs/((?:[a-z-]+/)?[a-z-]+\.md)")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a page between two marks, which a script makes.

    `page` is relative to this folder; `source` is what the part is made from.
    """

    script: str
    page: str
    source: str
    make: Callable[[], str]

    @property
    def path(self) -> Path:
        """The file of the page."""
        return FOLDER / self.page

    def render(self, page: str) -> str:
        """The page with this part made anew; raises ValueError if it has no mark for it."""
        begin = f"<!-- made by docs/{Path(self.script).name} from {self.source} -->\n"
        before, mark, rest = page.partition(begin)
        _, end, after = rest.partition(_END)
        if not (mark and end):
            message = f"docs/{self.page} needs a line {begin.strip()}, and a line {_END} behind it"
            raise ValueError(message)
        return f"{before}{begin}\n{self.make().strip()}\n\n{_END}{after}"

    def write(self) -> bool:
        """Make the part anew; returns whether the page has changed."""
        before = self.path.read_text("utf-8")
        after = self.render(before)
        if after != before:
            self.path.write_text(after, "utf-8")
        return after != before


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a script draws: a whole file."""

    script: str
    page: str
    make: Callable[[], str]

    @property
    def path(self) -> Path:
        """The file."""
        return FOLDER / self.page

    def render(self, page: str) -> str:  # noqa: ARG002 - as of a part: the file before is not kept
        """The picture made anew."""
        return self.make()

    def write(self) -> bool:
        """Draw the picture; returns whether it has changed."""
        before = self.path.read_text("utf-8") if self.path.exists() else ""
        self.path.write_text(after := self.make(), "utf-8")
        return after != before


def parts() -> Iterator[Part | Picture]:
    """What all scripts make."""
    for script in sorted(FOLDER.glob("make_*.py")):
        values = vars(import_module(f"docs.{script.stem}")).values()
        yield from (value for value in values if isinstance(value, Part | Picture))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; empty without rows."""
    lines = [_row(row) for row in rows]
    return "".join((_row(head), "|" + "---|" * len(head) + "\n", *lines)) if lines else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |\n"


def code(text: object) -> str:
    """The text as code; nothing for an empty one."""
    return f"`{text}`" if str(text) else ""


def prose(docstring: str | None) -> str:
    """A docstring in Markdown: pages that it names become links, and `<` outside of code stays itself."""
    parts = cleandoc(docstring or "").split("`")  # each second one is code
    parts[::2] = [
        _PAGE.sub(lambda found: f"[{found[1]}]({found[1]})", part.replace("<", "&lt;")) for part in parts[::2]
    ]
    return "`".join(parts)
