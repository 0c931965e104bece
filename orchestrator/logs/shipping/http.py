"""HTTP to a log target, over the transport of the Elasticsearch client: kept connections, verified TLS."""

import base64
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from elastic_transport import (
    JsonSerializer,
    NdjsonSerializer,
    SerializationError,
    TlsError,
    Transport,
    TransportApiResponse,
    TransportError,
)
from elastic_transport.client_utils import url_to_node_config

from orchestrator.logs.errors import TargetRefuses, TargetUnreachable
from orchestrator.logs.http import plain_words
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.bounded import BoundedNode

JSON = "application/json"
NDJSON = "application/x-ndjson"
CONNECT_SECONDS = 3.0
BULK_SECONDS = 120.0  # a cluster under load takes this long, and a repeated request costs it more
_SHORT_SECONDS = 10.0
_LOCAL = {"localhost", "127.0.0.1", "::1"}
_MAX_WORDS = 300
_MAX_DELAY_SECONDS = 60.0  # maximum that a server may ask for


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: Any  # JSON, else text

    def words(self) -> str:
        """The reason for a refusal, as text."""
        error = self.body.get("error", self.body) if isinstance(self.body, dict) else self.body
        if isinstance(error, dict):
            error = f"{error.get('type', '')}: {error.get('reason', '')}"
        return f"{self.status} {' '.join(str(error).split())[:_MAX_WORDS]}"

    def document(self, what: str) -> dict[str, Any]:
        """The answer as a JSON object; raises TargetUnreachable, TargetRefuses, which name `what`."""
        if self.status == HTTPStatus.TOO_MANY_REQUESTS or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise TargetUnreachable(f"{what}: {self.words()}")
        if self.status != HTTPStatus.OK or not isinstance(self.body, dict):
            raise TargetRefuses(f"{what}: {self.words()}")
        return self.body

    def delay(self) -> float:
        """The Retry-After of the server in seconds; 0 without one."""
        try:
            return min(_MAX_DELAY_SECONDS, max(0.0, float(self.headers.get("retry-after", "0"))))
        except ValueError:  # a date: the delay of the shipper's own pace is good enough
            return 0.0


class _Ready(NdjsonSerializer):
    """Passes on bodies, which are serialized already: this saves two copies of five megabytes."""

    def dumps(self, data: Any) -> bytes:
        """The body as it is."""
        return bytes(data)


class _Lenient(JsonSerializer):
    """Reads invalid JSON as text, because the status of its answer is still valid."""

    def loads(self, data: bytes) -> Any:
        """The value of a JSON text; the text itself if it is not JSON."""
        try:
            return super().loads(data)
        except (SerializationError, RecursionError):
            return data.decode("utf-8", "replace")


class Http:
    """Requests to one of several servers of a cluster. Thread-safe.

    `key_file` holds an API key, or `user:password`; it is read at each start. `headers` are added to each
    request. Bodies to other hosts are compressed.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        key_file: Path | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: Path | None = None,
        connections: int = 4,
    ) -> None:
        self._urls = ", ".join(urls)
        logging.getLogger("elastic_transport").setLevel(logging.ERROR)  # the caller reports failures
        all_headers = {"accept": JSON, **(headers or {})}
        try:
            if key_file is not None:
                key = key_file.read_text("utf-8").strip()
                REDACTOR.add([key, key.partition(":")[2]])
                all_headers["authorization"] = basic_login(key) if ":" in key else f"ApiKey {key}"
            if ca_file is not None:
                ca_file.read_bytes()  # the transport would report only that it cannot connect
            nodes = [
                url_to_node_config(url, use_default_ports_for_scheme=True).replace(
                    connections_per_node=connections,
                    http_compress=urlsplit(url).hostname not in _LOCAL,
                    **({} if ca_file is None else {"ca_certs": str(ca_file)}),
                )
                for url in urls
            ]
            self._transport = Transport(
                nodes,
                node_class=BoundedNode,
                max_retries=0,
                meta_header=False,
                serializers={NDJSON: _Ready(), JSON: _Lenient()},
            )
        except (OSError, ValueError) as error:
            raise TargetRefuses(f"{self._urls}: {error}") from error
        self._headers = all_headers

    def request(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = JSON
    ) -> Answer:
        """Send a request once; raises TargetUnreachable, and TargetRefuses for an untrusted certificate."""
        seconds = BULK_SECONDS if body is not None and content_type == NDJSON else _SHORT_SECONDS
        headers = self._headers if body is None else {**self._headers, "content-type": content_type}
        try:
            found: TransportApiResponse = self._transport.perform_request(
                method,
                path,
                body=body,
                headers=headers,
                # The annotation allows seconds only; the node passes the value to urllib3 unchanged.
                request_timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds),  # type: ignore[arg-type]
            )
        except TlsError as error:
            raise TargetRefuses(f"{self._urls}: {_cause(error)}; see logs.ca_file") from error
        except TransportError as error:
            raise TargetUnreachable(f"{self._urls}: {_cause(error)}") from error
        return Answer(found.meta.status, found.meta.headers, found.body)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


def _cause(error: TransportError) -> str:
    """The innermost reason, in one line: the outer errors add no facts."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    return " ".join(plain_words(str(inner)).split())[:_MAX_WORDS] or type(inner).__name__


def as_json(document: Mapping[str, Any]) -> bytes:
    """The body of a request."""
    return json.dumps(document).encode()


def basic_login(user_and_password: str) -> str:
    """The header of a login by name and password (RFC 7617)."""
    return f"Basic {base64.b64encode(user_and_password.encode()).decode()}"


def http_of(settings: LogSettings) -> Http:
    """A client for the servers of the settings; raises TargetRefuses if a key or CA file cannot be read."""
    return Http(settings.urls, key_file=settings.key_file, ca_file=settings.ca_file)
