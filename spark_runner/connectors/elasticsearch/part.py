"""Rows of a bulk request: many rows, which are one record of the push."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Self


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows as lines of a request: between each two of the offsets is one."""

    buffer: memoryview
    offsets: Sequence[int]

    @classmethod
    def of(cls, rows: Sequence[bytes | memoryview]) -> Self:
        """Rows that are apart."""
        return cls(memoryview(b"".join(rows)), [0, *accumulate(map(len, rows))])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[bytes]:
        for index in range(len(self)):
            yield bytes(self.part(index, index + 1).data())

    def data(self) -> memoryview:
        """All rows, not copied."""
        return self.buffer[self.offsets[0] : self.offsets[-1]]

    def part(self, first: int, last: int) -> "Lines":
        """The rows from one to before another."""
        return Lines(self.buffer, self.offsets[first : last + 1])

    def batches(self, size: int) -> Iterator["Lines"]:
        """Parts with at most so many bytes; a larger row is a part of its own."""
        first = 0
        while first < len(self):
            last = bisect_right(self.offsets, self.offsets[first] + size, lo=first + 1) - 1
            yield self.part(first, max(last, first + 1))
            first = max(last, first + 1)


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are to be written, of which the next request has at most `most`.

    `failures` counts how often the server failed on a row, and `takes` is whether it took another one.
    """

    rows: Lines
    most: int
    failures: Mapping[bytes, int] = field(default_factory=dict)
    takes: bool = False

    @property
    def sent(self) -> Lines:
        """The rows of the next request."""
        return self.rows.part(0, min(self.most, len(self.rows)))

    @property
    def rest(self) -> Lines:
        """The rows behind them."""
        return self.rows.part(min(self.most, len(self.rows)), len(self.rows))
