"""`${env:NAME}` and `${secret:scope/key}`: names of values that only the process that uses them reads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import shortened

SCOPE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
"""Pattern of the name of a scope, which is a name in the settings of the operator."""

_NAMES = {
    "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}"),
    "secret": re.compile(rf"{SCOPE}/[A-Za-z0-9_][A-Za-z0-9._-]{{0,252}}"),  # 253 is the limit of Kubernetes
}
_FORMS = {"env": "${env:NAME}", "secret": "${secret:scope/key}"}
_REFERENCE = re.compile(r"\$\{([^}\n]*)(\})?")
_SHOWN = 80


class InvalidReference(SparkRunnerError):
    """A text begins like a reference but is not a valid one."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference; `name` is the name of a variable, or scope/key."""

    kind: Literal["env", "secret"]
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"

    @property
    def scope(self) -> str:
        """The scope of a secret; empty for a variable."""
        return self.name.partition("/")[0] if self.kind == "secret" else ""

    def to_json(self) -> dict[str, str]:
        """The form in a plan; its keys do not look like the name of a secret, whose value logs mask."""
        return {"kind": self.kind, "name": self.name}


Pieces = Sequence[str | Reference]
"""A text, cut at its references."""


def is_reference(inner: str) -> bool:
    """Whether a text between `${` and `}` is meant as a reference."""
    return inner.startswith(("env:", "secret:"))


def parse_reference(inner: str) -> Reference:
    """The reference in a text between `${` and `}`; raises InvalidReference."""
    kind, _, name = inner.partition(":")
    if kind in _NAMES and _NAMES[kind].fullmatch(name):
        return Reference("env" if kind == "env" else "secret", name)
    expected = _FORMS.get(kind) or " or ".join(_FORMS.values())
    shown = shortened(inner, _SHOWN)
    raise InvalidReference(f"'${{{shown}}}' is not a reference: write {expected}, without a default")


def parse_pieces(text: str) -> list[str | Reference]:
    """The pieces of a text in which `${` always begins a reference; raises InvalidReference."""
    pieces, done = list[str | Reference](), 0
    for match in _REFERENCE.finditer(text):
        if match[2] is None:
            raise InvalidReference("a '${' has no closing '}'")
        pieces += [text[done : match.start()], parse_reference(match[1])]
        done = match.end()
    return [piece for piece in (*pieces, text[done:]) if piece != ""]


def references_in(pieces: Pieces) -> list[Reference]:
    """The references among the pieces."""
    return [piece for piece in pieces if isinstance(piece, Reference)]


def to_json(pieces: Pieces) -> list[str | dict[str, str]]:
    """The form of pieces in a plan."""
    return [piece if isinstance(piece, str) else piece.to_json() for piece in pieces]


def from_json(document: object) -> list[str | Reference]:
    """Read that form, which another program may have written; raises InvalidReference."""
    if not isinstance(document, list):
        raise InvalidReference("the references of the plan are damaged; submit the job again")
    return [_piece(item) for item in document]


def _piece(item: Any) -> str | Reference:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and item.keys() == {"kind", "name"}:
        return parse_reference(f"{item['kind']}:{item['name']}")
    raise InvalidReference("the references of the plan are damaged; submit the job again")
