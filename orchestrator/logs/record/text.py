"""JSON text from string parts, in a tenth of the time that dumping a dictionary takes."""

from json.encoder import encode_basestring as quoted  # a JSON string; no wrapper: it is called for each field
from typing import Any

__all__ = ["MAX_FIELD", "MAX_MESSAGE", "MAX_TRACE", "cut", "encoded", "plain", "quoted"]

MAX_MESSAGE = 32_768  # characters
MAX_TRACE = 65_536
MAX_FIELD = 1_024  # `ignore_above` of the template: longer values would not be indexed


def cut(text: str, limit: int) -> str:
    """The text; if it is too long, its beginning and the number of missing characters."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit:,} more characters]"


def encoded(text: str) -> bytes:
    """The text as UTF-8, with lone surrogates as question marks."""
    return text.encode("utf-8", "replace")


def plain(value: Any) -> str:
    """A user's value as text; if its conversion fails, the name of the error."""
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - the conversion is the user's code
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
