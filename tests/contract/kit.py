"""What a connector provides to be tested by the suite: tables on its real server, and faults of it."""

from collections.abc import Sequence
from enum import Flag, auto
from typing import Any, Protocol


class Can(Flag):
    """What a connector declares; the suite runs the tests of these abilities alone."""

    READ = auto()
    STREAM = auto()  # new rows in micro-batches
    APPEND = auto()
    UPSERT = auto()  # rows replace each other by the PRIMARY KEY
    DELETE = auto()  # by a column that marks rows
    PROBE = auto()  # a check of a target without a write


ROWS = [(1, 'ä;"quoted"', 1.5), (2, None, -0.25), (3, "three\nlines\t", None)]
"""Rows of `COLUMNS` that each connector keeps as they are."""

COLUMNS = "id BIGINT, name STRING, amount DOUBLE"


class Kit(Protocol):
    """One connector on its server.

    A target is a name that `create` has made: a topic, a table. `table` declares it in a script.
    """

    can: Can

    def create(self) -> str:
        """Make an empty target for rows with `COLUMNS`; returns its name."""

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:
        """The CREATE TABLE of the table `name` for a target, with the semicolon.

        `key`: with `PRIMARY KEY (id) NOT ENFORCED`. `deletes`: with a column `gone BOOLEAN`, true deletes.
        """

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows to a target, past the connector."""

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        """All rows of a target, read past the connector; of rows with one key only the last."""

    def unreachable(self, name: str) -> tuple[str, str]:
        """A declared table on a server that does not answer, and words that its error has."""

    def missing(self, name: str) -> tuple[str, str]:
        """A declared table whose target does not exist, and words that its error has."""
