"""Reports that xdist can send: a failure with half a surrogate in its text would end the whole run."""

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Replace what UTF-8 cannot encode."""
    return _encodable((yield))


def _encodable(value: object) -> object:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_encodable(key): _encodable(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_encodable(each) for each in value)
        case _:
            return value
