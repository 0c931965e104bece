"""Sends rows by bulk requests, and reads the result of each row."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from spark_runner.connectors.elasticsearch.answers import Answer
from spark_runner.connectors.elasticsearch.client import LINES, MOST_BYTES, Client
from spark_runner.connectors.elasticsearch.part import Lines, Part
from spark_runner.connectors.elasticsearch.results import NO_INDEX, Result, result_of
from spark_runner.connectors.elasticsearch.target import check_target
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.connectors.templates import columns_of
from spark_runner.push.batch import Batch, Record
from spark_runner.push.errors import Overloaded, Partial, Retryable
from spark_runner.push.retry import Results

_RESULTS = "errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.failure_store"
_DIVERTED, _STATUS = b'"failure_store":"used"', b'"status":'  # the second one of each row
_WHOLE = {400, 413}  # statuses of a request, for which one of its rows may be the cause
_REPEATS = 5  # of a row that the server fails on, while it takes others
_MAX_UNCLEAR = 20  # rows in sequence without a clear error: the cause is in all of them
_TAKES = {Result.DONE, Result.REJECTED}  # results that show an index which takes documents
_MOST_BYTES = MOST_BYTES  # of the results of a request
_STORE = "the server put it into the failure store of the data stream"


Rejected = tuple[str, bytes]
"""A reason, and the lines of a row."""


class WrongAnswer(Retryable):
    """An answer does not have the results of each row."""


class Bulk:
    """The requests of one task, in several threads at the same time, each on a connection of its own.

    `keyed`: a row replaces earlier rows with its id.
    """

    def __init__(
        self, options: Mapping[str, Any], secrets: Sequence[str] | None = None, *, keyed: bool
    ) -> None:
        self._options, self._secrets = options, secrets
        self._clients = list[Client]()  # those that no thread uses
        self._keyed = keyed
        self._varies = bool(columns_of(options["index"]))
        pipeline = f"&pipeline={options['pipeline']}" if options["pipeline"] else ""
        self._path = f"/_bulk?filter_path={_RESULTS}{pipeline}"
        self._unclear = 0  # rows since the server took one

    def close(self) -> None:
        """Close all connections; no thread sends any more."""
        for client in self._clients:
            client.close()

    def records(self, rows: Lines) -> list[Record]:
        """The rows as records of the push, each of them a request."""
        return [_record(Part(each, len(each))) for each in rows.batches(self._options["max_batch_bytes"])]

    def deliver(self, batch: Batch) -> Results:
        """Send the rows of a record, or the first of them; returns those that are rejected, and those left.

        Raises DeliveryError, and ConnectorError where the server refuses all.
        """
        (record,) = batch.records
        try:
            client = self._clients.pop()
        except IndexError:
            client = Client(self._options, self._secrets)
        is_usable = True
        try:
            found = self._delivered(client, record.value)
        except WrongAnswer:
            is_usable = False  # its next answer may be that of this request
            raise
        finally:
            if is_usable:
                self._clients.append(client)
            else:
                client.close()
        return {0: found} if found.rejected or found.left else None

    def _delivered(self, client: Client, part: Part) -> Partial:
        rows, unsent = part.sent, len(part.rest)
        answer = client.attempt("POST", self._path, rows.data(), LINES, _MOST_BYTES)
        if answer.is_large or answer.status in _WHOLE:
            if len(rows) > 1:
                return Partial(left=_record(replace(part, most=len(rows) // 2)), unsent=unsent)
            if not answer.is_large:
                self._count_unclear(client, [answer.error()])
                rejected = [(client.words(answer), bytes(rows.data()))]
                return Partial(rejected, _left([], part), unsent=unsent)
        return self._settled(client, part, client.check(answer))

    def _settled(self, client: Client, part: Part, answer: Answer) -> Partial:
        """What the results of rows mean for each."""
        unsent = len(part.rest)
        if (
            answer.data.startswith(b'{"errors":false')
            and _DIVERTED not in answer.data
            and answer.data.count(_STATUS) == len(part.sent)
        ):
            self._unclear = 0
            return Partial(left=_left([], replace(part, takes=True)), unsent=unsent)
        found, results = self._results(client, part.sent, answer)
        takes, failures = part.takes or Result.DONE in results, Counter(part.failures)
        rejected, later, waiting = list[Rejected](), list[bytes](), set[bytes]()
        error: Retryable | None = None
        for row, (_, each), result in zip(part.sent, found, results, strict=True):
            words = client.words_of(each.get("error") or {})
            place = row.partition(b"\n")[0].partition(b":")[2]  # index and id
            is_again = result is Result.BUSY
            if result is Result.BROKEN:  # its pipeline may fail on it each time
                failures[row] += 1
                is_again = not takes or failures[row] <= _REPEATS
            # A row that replaces another one must follow it again.
            if is_again or (self._keyed and place in waiting):
                later.append(row)
                waiting.add(place)
                if is_again:
                    words = f"{client.where} does not take rows: {words}"
                    error = (Overloaded if result is Result.BUSY else Retryable)(words)
            elif result is Result.REFUSED:
                raise ConnectorError(f"{client.where} refused: {words}; the user needs more rights")
            elif result is Result.NOWHERE:
                raise self._refusal(client, each.get("error") or {})
            elif result is not Result.DONE:
                is_diverted = each.get("failure_store") == "used"
                words = _STORE if is_diverted else words or f"status {each['status']}"
                rejected.append((words, row))
        left = _left(later, replace(part, failures=failures, takes=takes))
        return Partial(rejected, left, error, unsent=unsent)

    def _results(
        self, client: Client, rows: Lines, answer: Answer
    ) -> tuple[list[tuple[str, Mapping[str, Any]]], list[Result]]:
        """The action of each row with what the server says of it, and what that means."""
        found, results = list[tuple[str, Mapping[str, Any]]](), list[Result]()
        with suppress(AttributeError, TypeError, KeyError, ValueError, OverflowError):  # it is none of a bulk
            found = [each for item in answer.document()["items"] for each in item.items()]
            results = [result_of(action, each, varies=self._varies) for action, each in found]
        if len(results) != len(rows):
            words = client.words(answer)
            raise WrongAnswer(f"{client.where} gave an answer of another request, or a part of one: {words}")
        pairs = zip(found, results, strict=True)
        unclear = [each.get("error") or {} for (_, each), result in pairs if result is Result.UNCLEAR]
        if not _TAKES.isdisjoint(results):
            self._unclear = 0
        elif unclear:
            if not self._unclear:  # the target may have changed since the write began
                self._check_target(client)
            self._count_unclear(client, unclear)
        return found, results

    def _check_target(self, client: Client) -> None:
        try:
            check_target(client, self._options)
        except Unreachable as error:  # for now
            raise Retryable(str(error)) from error

    def _count_unclear(self, client: Client, errors: Sequence[Mapping[str, Any]]) -> None:
        """Count rows of a request of which the server took none; raises ConnectorError if they are many."""
        self._unclear += len(errors)
        if self._unclear > _MAX_UNCLEAR:
            raise self._refusal(client, errors[0])

    def _refusal(self, client: Client, error: Mapping[str, Any]) -> ConnectorError:
        kind = NothingThere if error.get("type") == NO_INDEX else ConnectorError
        return kind(f"{client.where} refused: {client.words_of(error)}")


def _record(part: Part) -> Record:
    return Record(part, len(part.rows.data()), rows=len(part.rows))


def _left(later: Sequence[bytes], part: Part) -> Record | None:
    """The rows of a part that come again, before those that were not sent yet; None without any."""
    if not later and not len(part.rest):
        return None
    rows = Lines.of([*later, *part.rest]) if later else part.rest
    # Twice as many as the server took: those that it refuses as a whole may be behind.
    return _record(replace(part, rows=rows, most=max(2 * len(part.sent), len(later))))
