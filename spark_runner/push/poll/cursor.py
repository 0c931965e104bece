"""A place among the rows that one server serves. Clients get it as a text, and give it back as it is."""

import re
from typing import NamedTuple, Self

from spark_runner.push.errors import PushError

_FORM = re.compile(r"([0-9a-f]{16})-([0-9]{1,18})")
_SHOWN = 60  # characters of a text that is no cursor


class BadCursor(PushError):
    """The server has given no such cursor to a client."""


class CursorGone(PushError):
    """The cursor is of another attempt, or the rows after it are acknowledged already."""


class Cursor(NamedTuple):
    """The rows before `position`, of the server with this nonce."""

    nonce: str
    position: int

    @classmethod
    def of(cls, text: str) -> Self:
        """The cursor that a client sent; raises BadCursor."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise BadCursor(f"{text[:_SHOWN]!a} is no cursor; send the value of `next` as it is")
        return cls(found[1], int(found[2]))

    def __str__(self) -> str:
        """The text for clients."""
        return f"{self.nonce}-{self.position}"
