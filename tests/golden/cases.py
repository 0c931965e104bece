"""Reads and writes golden cases.

A case begins with `-- case: name`, perhaps followed by lines `-- set: name=value` for its variables. Its
text ends before the next case, without the last line break. `<U+000D>` stands for the character with that
number.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

GOLDEN = Path(__file__).parent
_CASE = "-- case: "
_SET = "-- set: "
_NUMBERED = re.compile(r"<U\+([0-9A-F]{4,6})>")


@dataclass(frozen=True)
class Case:
    """One script, with its variables."""

    name: str
    text: str
    variables: Mapping[str, str] = field(default_factory=dict)


def scripts(kind: str) -> list[Path]:
    """The files with cases of the splitter or the compiler."""
    return sorted((GOLDEN / kind).glob("*.sql"))


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each case; a blank line before the next case belongs to none."""
    for part in re.split(rf"^{re.escape(_CASE)}", text, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        yield name, rest.rstrip("\n")


def read(path: Path) -> list[Case]:
    """The cases of a `.sql` file."""
    return [_case(name, rest) for name, rest in sections(path.read_text("utf-8"))]


def _case(name: str, rest: str) -> Case:
    variables = dict[str, str]()
    while rest.startswith(_SET):
        line, _, rest = rest.partition("\n")
        key, _, value = line.removeprefix(_SET).partition("=")
        variables[key] = _characters(value)
    return Case(name, _characters(rest), variables)


def _characters(text: str) -> str:
    return _NUMBERED.sub(lambda match: chr(int(match[1], 16)), text)


def shown(text: str) -> str:
    """A text on one line, in which each character can be seen."""
    return "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in text)


def expected(path: Path) -> dict[str, str]:
    """The expectations in the `.txt` file beside a `.sql` file, by the names of the cases."""
    return dict(sections(path.with_suffix(".txt").read_text("utf-8")))


def write(path: Path, render: Callable[[Case], Iterable[str]]) -> None:
    """Write the expectations of a `.sql` file anew, by what comes out now."""
    parts = (f"{_CASE}{case.name}\n" + "".join(f"{line}\n" for line in render(case)) for case in read(path))
    path.with_suffix(".txt").write_text("\n".join(parts), "utf-8")
