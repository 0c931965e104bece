"""The bodies of requests, and the headers that describe them."""

import gzip
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

_JSON, _LINES = "application/json", "application/x-ndjson"
_EVENT, _EVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
_LEVEL = 1  # of gzip: bodies of rows become little smaller by higher ones
EVENTS = "cloudevents"
"""The format of batches in which each row is an event (CloudEvents 1.0, JSON, structured content mode)."""


class Row(NamedTuple):
    """A row, as `requests` makes it."""

    path: str | None
    body: str | None
    row: str
    key: str | None
    lane: str | None = None
    group: int | None = None


class Bodies:
    """Makes the body of a request of one row, or of several ones."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options, self._format = options, options["batch_format"]
        self._is_single = options["batch_size"] == 1
        self.are_there = options["method"] != "DELETE" or bool(options["body"])
        self._headers = dict[str, str]()
        if self.are_there and "headers.content-type" not in {name.lower() for name in options}:
            self._headers["content-type"] = self._kind()
        if self.are_there and options["compression"] == "gzip":
            self._headers["content-encoding"] = "gzip"
        if self._format == EVENTS:
            facts = {"specversion": "1.0", "type": options["event_type"], "source": options["event_source"]}
            self._event = json.dumps({**facts, "datacontenttype": _JSON})[:-1]

    def of(self, rows: Sequence[Row]) -> bytes | None:
        """The body; None for a method without one."""
        if not self.are_there:
            return None
        bodies = [self._one(row) for row in rows]
        if self._is_single:
            text = bodies[0]
        else:
            text = "\n".join([*bodies, ""]) if self._format == "ndjson" else f"[{','.join(bodies)}]"
        data = text.encode()
        # Without the time of its making, so that equal rows are equal requests.
        return gzip.compress(data, _LEVEL, mtime=0) if self._options["compression"] == "gzip" else data

    def headers(self, rows: Sequence[Row]) -> dict[str, str]:
        """The headers of such a request, with its idempotency key."""
        keys = [each.key for each in rows if each.key]
        if not keys:
            return self._headers
        key = keys[0] if len(keys) == 1 else sha256("\n".join(keys).encode()).hexdigest()
        return {**self._headers, self._options["idempotency_header"].lower(): key}

    def _one(self, row: Row) -> str:
        if self._format != EVENTS:
            return str(row.body)
        return f'{self._event}, "id": "{row.key}", "data": {row.body}}}'

    def _kind(self) -> str:
        if self._format == EVENTS:
            return _EVENT if self._is_single else _EVENTS
        return _LINES if self._format == "ndjson" and not self._is_single else _JSON
