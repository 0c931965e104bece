"""What settings may say of an Elasticsearch: where it is, and what indices are called."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

_URL = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")


def _absolute(value: Path) -> Path:
    return value.expanduser().absolute()


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


def checked_url(value: str) -> str:
    """The URL of a server, or nothing at all; raises ValueError."""
    if "@" in value:
        message = "a password does not belong in it; put an API key in the file that key_file names"
        raise ValueError(message)
    if value and not _URL.fullmatch(value):
        message = f"{value!r} is not a URL such as https://search:9200"
        raise ValueError(message)
    return value


def checked_index(value: str, what: str) -> str:
    """A name of an index, or the beginning of one; raises ValueError, which says what it cannot name."""
    if not _INDEX.fullmatch(value):
        message = f"{value!r} cannot name {what}: small letters, digits, '.', '_' and '-'"
        raise ValueError(message)
    return value
