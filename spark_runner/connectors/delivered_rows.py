"""Passes over the rows of a partition that an earlier attempt of the job has delivered.

The position of a partition is the number of its rows so far, and a digest of their idempotency keys
and contents: where the rows are others, or in another order, none is passed over.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from spark_runner.connectors.errors import OtherRows

_DIGEST_BYTES = 16


class DeliveredRows:
    """Counts the rows of a partition; `position` is that up to which they were delivered."""

    def __init__(self, position: Any) -> None:
        count, digest = position if isinstance(position, list) and len(position) == 2 else (0, "")  # noqa: PLR2004 - see above
        self._most = count if isinstance(count, int) else 0
        self._expected = [self._most, digest]
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self._count = 0
        self.passed = 0
        """Rows that are passed over, and not counted yet."""

    @property
    def position(self) -> list[Any]:
        """The position after all rows so far; the given one, until they are known to be those before it.

        Until then they may be others, which nobody has sent: a further attempt must not pass over them.
        """
        return self._expected if self._count < self._most else self._reached()

    def pass_over(self, rows: Sequence[str]) -> int:
        """How many of the next rows, as texts, are delivered already; raises OtherRows."""
        passed = max(0, min(len(rows), self._most - self._count))
        self._add(rows[:passed])
        if passed and self._count == self._most:
            self._check()
        self._add(rows[passed:])
        return passed

    def end(self) -> None:
        """There are no more rows; raises OtherRows if more were delivered."""
        if self._count < self._most:
            self._check()

    def _add(self, rows: Sequence[str]) -> None:
        if rows:
            self._count += len(rows)
            self._digest.update("\n".join([*rows, ""]).encode())

    def _reached(self) -> list[Any]:
        return [self._count, self._digest.hexdigest()]

    def _check(self) -> None:
        if self._reached() != self._expected:
            raise OtherRows("the rows are not those of the earlier attempt")
