"""The results of single rows in the answer to a batch."""

import json
from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.http.address import statuses
from spark_runner.connectors.http.answers import Answer
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.json_path import value_at
from spark_runner.push.errors import DeliveryError, Overloaded, Permanent, Retryable

BUSY = {429, 503}
"""Statuses of a server, or a part of it, that takes fewer requests than it gets."""


class RowResults:
    """Reads the results at the path of option `results`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._path, self._status, self._error = (
            str(options[name]) for name in ("results", "result_status", "result_error")
        )
        self._success, self._retried = (
            statuses(options[name]) for name in ("success_status", "retry_status")
        )

    def __bool__(self) -> bool:
        """Whether answers have results of rows."""
        return bool(self._path)

    def of(self, answer: Answer, rows: int, client: Client) -> dict[int, DeliveryError]:
        """The errors of rows by their place in the batch; raises ConnectorError without results."""
        try:
            found = value_at(json.loads(answer.data), self._path) if answer.is_whole else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list) or len(found) != rows:
            words = f"has no array with {rows} results at '{self._path}'; check option 'results'"
            raise ConnectorError(f"an answer of {client.server} {words}")
        errors = ((place, self._error_of(each, client)) for place, each in enumerate(found))
        return {place: error for place, error in errors if error is not None}

    def _error_of(self, result: Any, client: Client) -> DeliveryError | None:
        status, error = value_at(result, self._status), value_at(result, self._error)
        is_status = isinstance(status, int) and not isinstance(status, bool)
        if (status in self._success) if is_status else not error:
            return None
        text = error if isinstance(error, str) else json.dumps(result if error is None else error)
        words = f"HTTP {status if is_status else ''} {client.shown(text)}".replace("  ", " ").strip()
        if is_status and status in self._retried:
            return (Overloaded if status in BUSY else Retryable)(words)
        return Permanent(words)
