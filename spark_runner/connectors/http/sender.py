"""Sends the requests of one task, and sorts out rows that the server refuses."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from spark_runner.connectors.http.address import DOTS, statuses
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.templates import columns_of

_TYPES = {"json": "application/json", "ndjson": "application/x-ndjson"}
_OF_ALL = {401, 403, 407, 405, 501, *range(300, 400)}  # no row would be taken
_MISSING = {404, 410}


class Row(NamedTuple):
    """A row, as `requests` makes it."""

    path: str | None
    body: str | None
    row: str
    key: str | None


class Sender:
    """Sends rows by one client."""

    def __init__(self, client: Client, options: Mapping[str, Any]) -> None:
        self._client, self._options = client, options
        self._success = statuses(options["success_status"])
        self._has_body = options["method"] != "DELETE" or bool(options["body"])
        self._of_all = _OF_ALL if columns_of(client.path) else _OF_ALL | _MISSING
        given = {name.lower() for name in options}
        kind = _TYPES["json" if options["batch_size"] == 1 else options["batch_format"]]
        has_type = not self._has_body or "headers.content-type" in given
        self._headers = {} if has_type else {"content-type": kind}

    def write(self, rows: Iterable[Row]) -> list[tuple[str, str]]:
        """Send rows; returns reason and row of those that are refused.

        Raises ConnectorError if the server refuses all, and Unreachable.
        """
        refused, fine = list[tuple[str, str]](), list[Row]()
        for each in rows:
            reason = self._fault(each)
            if reason:
                refused.append((reason, each.row))
            else:
                fine.append(each)
        size = self._options["batch_size"]
        for start in range(0, len(fine), size):
            refused += self._sent(fine[start : start + size])
        return refused

    def _fault(self, row: Row) -> str:
        if row.path is None:
            return "a column of its URL is NULL or empty"
        if DOTS.search(row.path):
            return "its URL has a segment '.' or '..'"
        return "a column of its body is NULL" if row.body is None and self._has_body else ""

    def _sent(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        body = self._body(rows).encode() if self._has_body else None
        answer = self._client.ask(
            self._options["method"], str(rows[0].path), body, self._headers | self._key(rows)
        )
        if answer.status in self._success:
            return []
        if answer.status in self._of_all:
            raise self._client.refusal(answer)
        if answer.is_repeat and answer.status in _MISSING and self._options["method"] == "DELETE":
            return []  # the request whose answer was lost has deleted it
        if len(rows) == 1:
            return [(f"HTTP {self._client.words(answer)}", rows[0].row)]
        middle = len(rows) // 2  # to find the rows that it does not take
        return self._sent(rows[:middle]) + self._sent(rows[middle:])

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
