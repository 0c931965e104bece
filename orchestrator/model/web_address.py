"""Addresses of pages that a driver reports: checked before anybody sees them or follows them."""

import re
import urllib.parse
from collections.abc import Mapping
from typing import Any

from spark_runner.runners.base import SubmissionPlace, application_page

_MAX_CHARACTERS = 500
_VISIBLE = re.compile(r"[!-~]+")


def web_address(value: object) -> str | None:
    """The value, if it is an http(s) URL without a login, of visible ASCII and bounded; else None."""
    if not isinstance(value, str) or len(value) > _MAX_CHARACTERS or not _VISIBLE.fullmatch(value):
        return None
    try:
        parts = urllib.parse.urlsplit(value)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
        is_web = is_web and parts.port != 0
    except ValueError:  # of the port, or of an IPv6 address
        return None
    return value if is_web else None


def application_ui(
    place: SubmissionPlace, application_id: str | None, progress: Mapping[str, Any]
) -> str | None:
    """The page of an application at its master or ResourceManager, else that of its running driver.

    `progress` is what the driver reports; empty once it has ended.
    """
    return web_address(application_page(place, application_id)) or web_address(progress.get("ui"))
