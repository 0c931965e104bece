"""Types and checks of settings: paths, URLs of servers, names of indices."""

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
    """Return a valid URL of a server, or an empty value; raises ValueError."""
    if "@" in value:
        message = "a URL must not contain a login; put an API key in a file and name it in key_file"
        raise ValueError(message)
    if value and not _URL.fullmatch(value):
        message = f"{value!r} is not a URL such as https://search:9200"
        raise ValueError(message)
    return value


def checked_index(value: str, what: str) -> str:
    """Return a valid name or prefix of an index; raises ValueError, with its purpose `what`."""
    if not _INDEX.fullmatch(value):
        message = f"{value!r} cannot name {what}: expected lowercase letters, digits, '.', '_' and '-'"
        raise ValueError(message)
    return value
