"""Keeps a point in time while a task reads: its rows may be taken more slowly than the server waits."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from spark_runner.connectors.elasticsearch.client import Client
from spark_runner.connectors.errors import ConnectorError

# Without filter_path: with it, or with a part of `_source`, the server makes doubles of decimals.
SEARCH = "/_search?allow_partial_search_results=false"
_PER_LIFE = 4  # so that one may fail


class Renewals:
    """Searches without a result, from a thread of their own: they keep all slices. A context manager."""

    def __init__(self, options: Mapping[str, Any], secrets: Sequence[str], point: str) -> None:
        self._options, self._secrets = options, secrets
        self.pit = {"id": point, "keep_alive": f"{options['keep_alive']}s"}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="elasticsearch-renewals", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()  # a request that is under way ends by its own timeout

    def _renew(self) -> None:
        asked = {"pit": self.pit, "size": 0, "track_total_hits": False}
        with Client(self._options, self._secrets) as client:
            while not self._ended.wait(self._options["keep_alive"] / _PER_LIFE):
                with contextlib.suppress(ConnectorError):  # the next page says what is wrong
                    client.ask("POST", SEARCH, asked)
