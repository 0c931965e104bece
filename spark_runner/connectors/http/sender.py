"""Sends the rows of one task: each batch of the push is a request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_runner.connectors.http.address import DOTS, split, statuses
from spark_runner.connectors.http.answers import Answer
from spark_runner.connectors.http.bodies import Bodies, Row
from spark_runner.connectors.http.client import SHOWN_BYTES, Client, Lost
from spark_runner.connectors.http.results import BUSY, RowResults
from spark_runner.connectors.templates import columns_of
from spark_runner.connectors.written_rows import Rejected
from spark_runner.push.batch import Batch, Record
from spark_runner.push.errors import Overloaded, Permanent, Refused, Retryable, TimedOut
from spark_runner.push.retry import Results

_OF_ALL = {401, 403, 407, 405, 501, *range(300, 400)}  # no row would be taken
_MISSING = {404, 410}
_OF_GATEWAYS = {502, 504}  # which got no answer of the server
_RESULTS_BYTES = 64 * 1024 * 1024  # of an answer with the results of rows


class Sender:
    """Sends batches of rows, in several threads at the same time, each on a connection of its own."""

    def __init__(self, options: Mapping[str, Any], secrets: tuple[str, ...] = ()) -> None:
        self._options, self._secrets = options, secrets
        self._clients = list[Client]()  # those that no thread uses
        self._success, self._retried = (
            statuses(options[name]) for name in ("success_status", "retry_status")
        )
        self._bodies, self._results = Bodies(options), RowResults(options)
        self._of_all = _OF_ALL if columns_of(split(options["url"])[1]) else _OF_ALL | _MISSING
        self._unclear = set[int]()  # numbers of rows whose request the server may have carried out

    def close(self) -> None:
        """Close all connections; no thread sends any more."""
        for client in self._clients:
            client.close()

    def records(self, rows: Iterable[Row], refused: list[Rejected]) -> list[Record]:
        """The rows as records of the push; those that cannot be sent are added to `refused`."""
        found = list[Record]()
        for row in rows:
            if reason := self._fault(row):
                refused.append((reason, row.row))
            else:
                found.append(Record(row, _size(row), row.lane or "", row.group))
        return found

    def _fault(self, row: Row) -> str:
        if row.path is None:
            return "a column of its URL is NULL or empty"
        if DOTS.search(row.path):
            return "its URL has a segment '.' or '..'"
        return "a column of its body is NULL" if row.body is None and self._bodies.are_there else ""

    def deliver(self, batch: Batch) -> Results:
        """Send a batch in one request; returns the errors of its rows, where an answer has them.

        Raises DeliveryError, and ConnectorError if the server refuses all.
        """
        try:
            client = self._clients.pop()
        except IndexError:
            client = Client(self._options, self._secrets)
        rows: Sequence[Row] = [record.value for record in batch.records]
        path, body, headers = str(rows[0].path), self._bodies.of(rows), self._bodies.headers(rows)
        number, most = batch.numbers[0], _RESULTS_BYTES if self._results else SHOWN_BYTES
        try:
            answer = client.request(self._options["method"], path, body, headers, most)
        except Lost as error:
            if error.was_sent:
                self._unclear.add(number)
            raise (TimedOut if error.is_late else Refused)(str(error)) from error
        finally:
            self._clients.append(client)
        self._check(answer, client, number, is_repeated=batch.is_repeated)
        self._unclear.discard(number)
        has_results = self._results and answer.status in self._success
        return self._results.of(answer, len(rows), client) if has_results else None

    def _check(self, answer: Answer, client: Client, number: int, *, is_repeated: bool) -> None:
        status = answer.status
        if status in self._success:
            return
        if status in self._of_all:
            raise client.refusal(answer)
        if status in self._retried:
            if status in _OF_GATEWAYS:
                self._unclear.add(number)
            words = f"{client.server} answers {client.words(answer)}"
            if status in BUSY:
                raise Overloaded(words, answer.retry_after())
            # It is of this row alone: others go on, so that its wait must not hold up the end of the write.
            raise Retryable(words, min(answer.retry_after(), self._options["retry_timeout"]))
        is_deleted = self._options["method"] == "DELETE" and status in _MISSING
        if is_deleted and (is_repeated or number in self._unclear):
            return  # by the request whose answer was lost, or discarded
        raise Permanent(f"HTTP {client.words(answer)}")


def _size(row: Row) -> int:
    """The bytes of a row in a request, and of the other texts that are kept for it."""
    body = 0 if row.body is None or row.body is row.row else _bytes(row.body)
    return body + _bytes(row.row)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
