"""Sends rows by bulk requests, and reads the result of each row."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from spark_runner.connectors.elasticsearch.answers import Answer
from spark_runner.connectors.elasticsearch.client import LINES, MOST_BYTES, Client
from spark_runner.connectors.elasticsearch.results import NO_INDEX, Result, result_of
from spark_runner.connectors.elasticsearch.target import check_target
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.connectors.templates import columns_of

_RESULTS = "errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.failure_store"
_DIVERTED = b'"failure_store":"used"'
_WHOLE = {400, 413}  # statuses of a request, for which one of its rows may be the cause
_REPEATS = 5  # of a row that the server fails on, while it takes others
_MAX_UNCLEAR = 20  # rows in sequence without a clear error: the cause is in all of them
_TAKES = {Result.DONE, Result.REJECTED}  # results that show an index which takes documents
_MOST_BYTES = MOST_BYTES  # of the results of a request
_STORE = "the server put it into the failure store of the data stream"


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
        self._client, self._options = client, options
        self._keyed = keyed and not options["version_column"]  # whose order does not matter
        self._varies = bool(columns_of(options["index"]))
        pipeline = f"&pipeline={options['pipeline']}" if options["pipeline"] else ""
        self._path = f"/_bulk?filter_path={_RESULTS}{pipeline}"
        self._unclear = 0  # rows since the server took one
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
                self._count_unclear([answer.error()])
                rejected.append((self._client.words(answer), bytes(rows.data())))
                continue
            later, reason = self._later(rows, self._client.check(answer), rejected)
            if later:
                waiting.append(Lines.of(later))
                self._client.wait(f"{self._client.where} does not take rows: {reason}")
            else:
                self._client.succeeded()
        return rejected

    def _later(self, rows: Lines, answer: Answer, rejected: list[Rejected]) -> tuple[list[bytes], str]:
        """The rows that must be sent again, and why."""
        if answer.data.startswith(b'{"errors":false') and _DIVERTED not in answer.data:
            self._takes, self._unclear = True, 0
            return [], ""
        found, results = self._results(rows, answer)
        later, reason, waiting = list[bytes](), "", set[bytes]()
        for row, (_, each), result in zip(rows, found, results, strict=True):
            error, place = each.get("error") or {}, row.partition(b"\n")[0].partition(b":")[2]  # index and id
            is_again = self._is_again(row, result)
            # A row that replaces another one must follow it again.
            if is_again or (self._keyed and place in waiting):
                later.append(row)
                waiting.add(place)
                reason = self._client.words_of(error) if is_again else reason
            elif result is Result.REFUSED:
                words = f"{self._client.where} refused: {self._client.words_of(error)}"
                raise ConnectorError(f"{words}; the user needs more rights")
            elif result is Result.NOWHERE:
                raise self._refusal(error)
            elif result is not Result.DONE:
                is_diverted = each.get("failure_store") == "used"
                words = _STORE if is_diverted else self._client.words_of(error) or f"status {each['status']}"
                rejected.append((words, row))
        return later, reason

    def _results(
        self, rows: Lines, answer: Answer
    ) -> tuple[list[tuple[str, Mapping[str, Any]]], list[Result]]:
        """The action of each row with what the server says of it, and what that means."""
        items = answer.document().get("items")
        if not isinstance(items, list) or len(items) != len(rows):
            words = self._client.words(answer)
            raise Unreachable(f"{self._client.where} gave an answer of another request: {words}")
        found = [each for item in items for each in item.items()]
        results = [result_of(action, each, varies=self._varies) for action, each in found]
        self._takes |= Result.DONE in results
        pairs = zip(found, results, strict=True)
        unclear = [each.get("error") or {} for (_, each), result in pairs if result is Result.UNCLEAR]
        if not _TAKES.isdisjoint(results):
            self._unclear = 0
        elif unclear:
            if not self._unclear:  # the target may have changed since the write began
                check_target(self._client, self._options)
            self._count_unclear(unclear)
        return found, results

    def _is_again(self, row: bytes, result: Result) -> bool:
        """Whether a row must be sent again; its pipeline may fail on it each time."""
        if result is not Result.BROKEN:
            return result is Result.BUSY
        self._failures[row] += 1
        return not self._takes or self._failures[row] <= _REPEATS

    def _count_unclear(self, errors: Sequence[Mapping[str, Any]]) -> None:
        """Count rows of a request of which the server took none; raises ConnectorError if they are many."""
        self._unclear += len(errors)
        if self._unclear > _MAX_UNCLEAR:
            raise self._refusal(errors[0])

    def _refusal(self, error: Mapping[str, Any]) -> ConnectorError:
        kind = NothingThere if error.get("type") == NO_INDEX else ConnectorError
        return kind(f"{self._client.where} refused: {self._client.words_of(error)}")
