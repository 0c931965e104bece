"""Sends the rows of one task: each batch of the push is a request."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from spark_runner.connectors.http.address import DOTS, split, statuses
from spark_runner.connectors.http.answers import Answer
from spark_runner.connectors.http.client import Client, Lost
from spark_runner.connectors.templates import columns_of
from spark_runner.connectors.written_rows import Rejected
from spark_runner.push.batch import Batch, Record
from spark_runner.push.errors import Overloaded, Permanent, Refused, Retryable, TimedOut

_TYPES = {"json": "application/json", "ndjson": "application/x-ndjson"}
_OF_ALL = {401, 403, 407, 405, 501, *range(300, 400)}  # no row would be taken
_MISSING = {404, 410}
_BUSY = {429, 503}
_OF_GATEWAYS = {502, 504}  # which got no answer of the server


class Row(NamedTuple):
    """A row, as `requests` makes it."""

    path: str | None
    body: str | None
    row: str
    key: str | None
    lane: str | None = None
    group: int | None = None


class Sender:
    """Sends batches of rows, in several threads at the same time, each on a connection of its own."""

    def __init__(self, options: Mapping[str, Any], secrets: tuple[str, ...] = ()) -> None:
        self._options, self._secrets = options, secrets
        self._clients = list[Client]()  # those that no thread uses
        self._success, self._retried = (
            statuses(options[name]) for name in ("success_status", "retry_status")
        )
        self._has_body = options["method"] != "DELETE" or bool(options["body"])
        self._of_all = _OF_ALL if columns_of(split(options["url"])[1]) else _OF_ALL | _MISSING
        given = {name.lower() for name in options}
        kind = _TYPES["json" if options["batch_size"] == 1 else options["batch_format"]]
        has_type = not self._has_body or "headers.content-type" in given
        self._headers = {} if has_type else {"content-type": kind}
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
        return "a column of its body is NULL" if row.body is None and self._has_body else ""

    def deliver(self, batch: Batch) -> None:
        """Send a batch in one request.

        Raises DeliveryError, and ConnectorError if the server refuses all.
        """
        client = self._clients.pop() if self._clients else Client(self._options, self._secrets)
        rows: Sequence[Row] = [record.value for record in batch.records]
        body = self._body(rows).encode() if self._has_body else None
        number = batch.numbers[0]
        try:
            path, headers = str(rows[0].path), self._headers | self._key(rows)
            answer = client.request(self._options["method"], path, body, headers)
        except Lost as error:
            if error.was_sent:
                self._unclear.add(number)
            raise (TimedOut if error.is_late else Refused)(str(error)) from error
        finally:
            self._clients.append(client)
        self._check(answer, client, number, is_repeated=batch.is_repeated)
        self._unclear.discard(number)

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
            if status in _BUSY:
                raise Overloaded(words, answer.retry_after())
            # It is of this row alone: others go on, so that its wait must not hold up the end of the write.
            raise Retryable(words, min(answer.retry_after(), self._options["retry_timeout"]))
        is_deleted = self._options["method"] == "DELETE" and status in _MISSING
        if is_deleted and (is_repeated or number in self._unclear):
            return  # by the request whose answer was lost, or discarded
        raise Permanent(f"HTTP {client.words(answer)}")

    def _body(self, rows: Sequence[Row]) -> str:
        bodies = [str(each.body) for each in rows]
        if self._options["batch_size"] == 1:
            return bodies[0]
        return (
            f"[{','.join(bodies)}]" if self._options["batch_format"] == "json" else "\n".join([*bodies, ""])
        )

    def _key(self, rows: Sequence[Row]) -> dict[str, str]:
        keys = [each.key for each in rows if each.key]
        if not keys:
            return {}
        key = keys[0] if len(keys) == 1 else sha256("\n".join(keys).encode()).hexdigest()
        return {self._options["idempotency_header"].lower(): key}


def _size(row: Row) -> int:
    """The bytes of a row in a request, and of the other texts that are kept for it."""
    body = 0 if row.body is None or row.body is row.row else _bytes(row.body)
    return body + _bytes(row.row)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
