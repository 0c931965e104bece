"""Masks the secrets of a plan, and text that looks like one, in everything that a driver reports.

The redaction module is loaded for the first report, so that it does not slow the start.
"""

from collections.abc import Iterable
from typing import Any

_known: list[str] = []


def add_secrets(secrets: Iterable[str]) -> None:
    """Mask these values of the plan from now on."""
    _known.extend(secrets)


def has_secrets() -> bool:
    """Whether this process knows values to mask."""
    return bool(_known)


def spellings(secrets: Iterable[str]) -> list[str]:
    """The secrets as text, URLs, JSON and SQL write them, the longest first; too short ones are left out."""
    from orchestrator.logs.record.redaction import spellings_of  # noqa: PLC0415 - see above

    return spellings_of(secrets)


def longest_secret() -> int:
    """The length of the longest spelling of the known secrets; 0 without any."""
    return max(map(len, spellings(_known)), default=0) if _known else 0


def spellings_within(texts: Iterable[str]) -> list[str]:
    """The `spellings` of those known secrets that one of the texts holds."""
    texts = list(texts)
    return spellings(secret for secret in _known if any(secret in text for text in texts))


def redacted(value: Any) -> Any:
    """A JSON value with the secrets in all its strings masked."""
    from orchestrator.logs.record.redaction import REDACTOR  # noqa: PLC0415 - see above

    REDACTOR.add(_known)
    return REDACTOR.document(value)
