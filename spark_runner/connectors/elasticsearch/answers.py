"""Answers of a server, and what their errors mean for a further attempt."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OK = 300  # statuses below it
_BUSY, _BROKEN = 429, 500
_AWAY = {_BUSY, 502, 503, 504}
_SHOWN = 500  # characters of an error of the server
_NO_MEMORY = b"circuit_breaking_exception"  # perhaps inside of another error
CLOSED = "index_closed_exception"
# Errors of the cluster or of an index at this time, with a status as if the row or the request were wrong.
_OF_CLUSTER = {
    "cluster_block_exception",  # a full disk, or an operator's block
    "circuit_breaking_exception",
    "es_rejected_execution_exception",
    CLOSED,
    "validation_exception",  # the index cannot be created: the cluster has as many shards as it may have
    # A shard that moves, starts or ends.
    *("shard_not_found_exception", "illegal_index_shard_state_exception", "index_shard_closed_exception"),
    *("index_shard_not_started_exception", "index_shard_relocated_exception"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server; its error is empty if it has none.

    `is_large`: it has more bytes than asked for; then `data` is empty.
    """

    status: int
    data: bytes
    is_large: bool = False

    def document(self) -> dict[str, Any]:
        """The JSON object; empty if it is none."""
        try:
            found = json.loads(self.data)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def error(self) -> dict[str, Any]:
        """What is wrong, as the server describes it."""
        found = self.document().get("error")
        return found if isinstance(found, dict) else {"reason": found or self.data.decode("utf-8", "replace")}

    def may_change(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status >= _BROKEN or is_busy(self.status, self.error() if self.status >= OK else {})

    def lacks_memory(self) -> bool:
        """Whether the server has too little memory for the whole answer."""
        return self.status >= OK and _NO_MEMORY in self.data


def words_of(error: Mapping[str, Any], secrets: Sequence[str] = ()) -> str:
    """The type and the reason of an error, and of its root; the secrets are masked."""
    root = [each for each in error.get("root_cause") or () if isinstance(each, Mapping)][:1]
    texts = [
        ": ".join(str(each[name]) for name in ("type", "reason") if each.get(name))
        for each in (error, *root)  # of a search, the error itself only says that shards failed
    ]
    text = ": ".join(filter(None, dict.fromkeys(texts)))
    for secret in secrets:  # before the cut: a part of a secret would not be recognized
        text = text.replace(secret, "***")
    return " ".join(text.split())[:_SHOWN]


def is_busy(status: int, error: Mapping[str, Any]) -> bool:
    """Whether the cluster says so itself; another error of 500 and above may have its cause in one row."""
    return status in _AWAY or error.get("type") in _OF_CLUSTER
