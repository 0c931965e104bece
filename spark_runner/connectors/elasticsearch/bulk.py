"""Sends rows by bulk requests, and reads the result of each row."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from spark_runner.connectors.elasticsearch.answers import Answer, is_busy
from spark_runner.connectors.elasticsearch.client import LINES, MOST_BYTES, Client
from spark_runner.connectors.errors import ConnectorError, Unreachable

_RESULTS = "errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.failure_store"
_DIVERTED = b'"failure_store":"used"'
_OK, _BAD, _FORBIDDEN, _MISSING, _CONFLICT, _TOO_LARGE, _BROKEN = 300, 400, 403, 404, 409, 413, 500
_REFUSED = {401, _FORBIDDEN}
_WHOLE = {_BAD, _TOO_LARGE}  # statuses of a request, for which one of its rows may be the cause
_REPEATS = 5  # of a row that the server fails on, while it takes others
_MOST_BYTES = MOST_BYTES  # of the results of a request
_MAX_ALONE = 20  # rows in sequence that fail even alone: the cause is in all of them


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows as lines of a request: between each two of the offsets is one."""

    buffer: memoryview
    offsets: Sequence[int]

    @classmethod
    def of(cls, rows: Sequence[bytes]) -> "Lines":
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


Rejected = tuple[str, bytes]
"""A reason, and the lines of a row."""


class Bulk:
    """The requests of one task; `keyed`: a row replaces earlier rows with its id."""

    def __init__(self, client: Client, options: Mapping[str, Any], *, keyed: bool) -> None:
        self._client = client
        self._keyed = keyed and not options["version_column"]  # whose order does not matter
        pipeline = f"&pipeline={options['pipeline']}" if options["pipeline"] else ""
        self._path = f"/_bulk?filter_path={_RESULTS}{pipeline}"
        self._alone = 0
        self._failures, self._takes = Counter[bytes](), False

    def write(self, rows: Lines) -> list[Rejected]:
        """Send rows until each has a result; returns those that are rejected.

        Raises Unreachable when the time for that is over, and ConnectorError where the server refuses all.
        """
        rejected, waiting = list[Rejected](), [rows]
        self._failures, self._takes = Counter(), False
        while waiting:
            rows = waiting.pop()
            answer = self._client.insist("POST", self._path, rows.data(), LINES, most=_MOST_BYTES)
            if len(rows) > 1 and (answer.is_large or answer.status in _WHOLE):
                half = len(rows) // 2
                waiting += [rows.part(half, len(rows)), rows.part(0, half)]
                continue
            if answer.status in _WHOLE:
                self._alone += 1
                if self._alone > _MAX_ALONE:
                    self._client.check(answer)
                rejected.append((self._client.words(answer), bytes(rows.data())))
                continue
            later, reason = self._later(rows, self._client.check(answer), rejected)
            self._alone = 0
            if later:
                waiting.append(Lines.of(later))
                self._client.wait(f"{self._client.where} does not take rows: {reason}")
            else:
                self._client.succeeded()
        return rejected

    def _later(self, rows: Lines, answer: Answer, rejected: list[Rejected]) -> tuple[list[bytes], str]:
        """The rows that must be sent again, and why."""
        if answer.data.startswith(b'{"errors":false') and _DIVERTED not in answer.data:
            self._takes = True
            return [], ""
        items = answer.document().get("items")
        if not isinstance(items, list) or len(items) != len(rows):
            words = self._client.words(answer)
            raise Unreachable(f"{self._client.where} gave an answer of another request: {words}")
        self._takes |= any(
            _is_done(name, int(each["status"])) for item in items for name, each in item.items()
        )
        later, reason, waiting = list[bytes](), "", set[bytes]()
        for row, item in zip(rows, items, strict=True):
            ((action, found),) = item.items()
            status, error = int(found["status"]), found.get("error") or {}
            place = row.partition(b"\n")[0].partition(b":")[2]  # behind the action: index and id
            is_again = is_busy(status, error) or (status == _CONFLICT and action == "update")
            if status >= _BROKEN and not is_again:  # its pipeline may fail on it each time
                self._failures[row] += 1
                is_again = not self._takes or self._failures[row] <= _REPEATS
            # A row that replaces another one must follow it again.
            if is_again or (self._keyed and place in waiting):
                later.append(row)
                waiting.add(place)
                reason = self._client.words_of(error) if is_again else reason
            elif status in _REFUSED:
                words = f"{self._client.where} refused: {self._client.words_of(error)}"
                raise ConnectorError(f"{words}; the user needs more rights")
            elif found.get("failure_store") == "used":
                rejected.append(("the server put it into the failure store of the data stream", row))
            elif not _is_done(action, status):
                rejected.append((self._client.words_of(error) or f"status {status}", row))
        return later, reason


def _is_done(action: str, status: int) -> bool:
    """Whether a row is in its index, or a newer one, or the same one of an earlier request."""
    return status < _OK or status == _CONFLICT or (action == "delete" and status == _MISSING)
