"""Reads values that may have any type, because their writer is not trusted."""

from collections.abc import Mapping
from typing import Any

_MAX_NUMBER = 1e15


def number(value: object) -> float:
    """A number from 0 to below 1e15; 0 for all else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _MAX_NUMBER else 0.0  # type: ignore[arg-type,operator]  # it is a number


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for all else."""
    return value if isinstance(value, dict) else {}
