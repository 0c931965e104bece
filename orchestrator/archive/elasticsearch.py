"""The archive in one Elasticsearch index for all hosts; ids from run keys keep each job unique."""

import threading
from pathlib import Path
from typing import Any

from elastic_transport.client_utils import DEFAULT
from elasticsearch import ApiError, ConflictError, Elasticsearch, TransportError

from orchestrator.archive.base import ArchiveError, Document, DocumentRefused
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.shipping.bounded import BoundedNode

_REQUEST_SECONDS = 10.0
_BAD_DOCUMENT = {400, 413}  # it cannot be mapped, or it is too large
_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_TIME = {"type": "date", "ignore_malformed": True}

# Fields for searches are indexed. The rest is only stored, so that no field of a job can be rejected.
_MAPPINGS: dict[str, Any] = {
    "dynamic": False,
    "properties": {
        **dict.fromkeys(("run_key", "id", "name", "pool", "status", "host", "application_id"), _KEYWORD),
        **dict.fromkeys(("created", "updated", "started", "ended", "archived"), _TIME),
        "attempt": {"type": "integer"},
        "error": {
            "properties": {
                **dict.fromkeys(("error_class", "short_of", "type"), _KEYWORD),
                "message": {"type": "text"},
            },
        },
        "definition": {"type": "object", "enabled": False},
        "attempts": {"type": "object", "enabled": False},
    },
}


class ElasticsearchArchive:
    """Creates one document per job; a success means that the server has it on its disk."""

    def __init__(
        self, url: str, index: str, *, key_file: Path | None = None, ca_file: Path | None = None
    ) -> None:
        self._url, self._index = url, index
        self._key_file, self._ca_file = key_file, ca_file
        self._guard = threading.Lock()
        self._client: Elasticsearch | None = None
        self._has_index = False

    def owner(self) -> None:
        """None: all hosts share the index."""

    def position(self) -> str:
        """Empty: the index finds a document by its id."""
        return ""

    def write(self, document: Document, *, since: str = "") -> None:  # noqa: ARG002 - see `position`
        """Create the document unless it exists."""
        # A job that an operator retries comes to finish once more, and is archived once more.
        each = f"{document['run_key']}-{document.get('times', {}).get('finish', '')}"
        try:
            self._connected().create(index=self._index, id=each, document=document)
        except ConflictError:
            return  # written before, but the response or the writer was lost
        except ApiError as error:
            if error.status_code in _BAD_DOCUMENT:
                raise DocumentRefused(
                    f"job {document['id']!r} cannot be archived: {self._at(error)}"
                ) from error
            raise ArchiveError(self._at(error)) from error
        except (TransportError, RecursionError) as error:  # a response may be nested to any depth
            raise ArchiveError(self._at(error)) from error

    def close(self) -> None:
        """Close the connections."""
        with self._guard:
            if self._client is not None:
                self._client.close()
            self._client = None

    def _connected(self) -> Elasticsearch:
        """A client, once the index exists: if a document created it, its mappings would be guessed."""
        with self._guard:
            if self._client is None:
                self._client = self._open()
            client = self._client
        if not self._has_index:  # without the guard, so that no thread waits for the request of another
            if not client.indices.exists(index=self._index):
                self._create_index(client)
            self._has_index = True
        return client

    def _open(self) -> Elasticsearch:
        try:
            key = self._key_file.read_text("utf-8").strip() if self._key_file else None
            REDACTOR.add([key] if key else [])  # a server may quote its request
            if self._ca_file:
                self._ca_file.read_bytes()  # otherwise the client only reports that it cannot connect
            return Elasticsearch(
                self._url,
                api_key=key,
                node_class=BoundedNode,
                ca_certs=str(self._ca_file) if self._ca_file else DEFAULT,
                request_timeout=_REQUEST_SECONDS,
                max_retries=0,  # the job is retried later
            )
        except (OSError, ValueError) as error:
            raise ArchiveError(self._at(error)) from error

    def _create_index(self, client: Elasticsearch) -> None:
        try:
            client.indices.create(index=self._index, mappings=_MAPPINGS)
        except ApiError as error:
            if error.error != "resource_already_exists_exception":  # another worker was faster
                raise

    def _at(self, error: Exception) -> str:
        reason = f"{error}: {error.__cause__}" if isinstance(error, TransportError) else str(error)
        text = f"index {self._index} at {self._url}: {' '.join(reason.split())}"
        if isinstance(error, ApiError) and error.error == "security_exception":
            text += "; set archive.key_file to a key that may view and create this index and its documents"
        return text
