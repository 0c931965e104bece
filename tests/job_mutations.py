"""Protections of jobs that can be taken out of a worker process, to show that the tests notice."""

from enum import StrEnum


class Protection(StrEnum):
    """What keeps the promises, one at a time."""

    SLOT = "slot"


def take_out(protection: Protection) -> None:
    """Take it out of this process."""
    assert protection
