"""What a driver may let others read: without the secrets of its plan, and without what looks like one.

What masks is loaded when there is something to tell: a start goes without.
"""

from collections.abc import Iterable
from typing import Any

_known: list[str] = []


def know(secrets: Iterable[str]) -> None:
    """Mask these values from now on: the plan of a run names them."""
    _known.extend(secrets)


def redacted(value: Any) -> Any:
    """A JSON value with all texts in it masked."""
    from orchestrator.logs.record.redaction import REDACTOR  # noqa: PLC0415 - see above

    REDACTOR.add(_known)
    return REDACTOR.document(value)
