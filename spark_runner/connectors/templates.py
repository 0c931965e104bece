"""Texts with columns in braces, such as `clicks:{page}`; `{{` and `}}` mean single braces."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PIECE = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]+)\}|(?P<stray>[{}])|[^{}]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or the name of a column whose value stands in its place."""

    text: str
    is_column: bool = False


def pieces(template: str) -> list[Piece]:
    """The pieces of a template; raises ValueError for a brace without its counterpart."""
    found = list[Piece]()
    for match in _PIECE.finditer(template):
        if match["stray"]:
            raise ValueError(
                f"'{match['stray']}' has no counterpart; write '{match['stray'] * 2}' for a brace"
            )
        if match["name"]:
            found.append(Piece(match["name"], is_column=True))
        else:
            found.append(Piece(match[0][0] if match[0] in {"{{", "}}"} else match[0]))
    return found


def columns_of(template: str) -> list[str]:
    """The names of the columns in a template."""
    return [piece.text for piece in pieces(template) if piece.is_column]


def unknown_column(template: str, columns: Sequence[str]) -> str | None:
    """The first name in a template that is none of the columns, without regard to case."""
    known = {name.lower() for name in columns}
    return next((name for name in columns_of(template) if name.lower() not in known), None)
