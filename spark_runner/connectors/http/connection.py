"""The connection to the server of a table, with or without TLS."""

import http.client
import select
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.http.address import Server
from spark_runner.connectors.http.answers import Answer, FinalResponse
from spark_runner.connectors.timed_socket import TimedSocket
from spark_runner.protocol.metadata_addresses import is_metadata
from spark_runner.protocol.pem import load_chain

LOST = (OSError, http.client.HTTPException)
"""Errors of a connection that is lost, or was never open."""

_CHUNK = 256 * 1024
_LEAST_S = 0.001  # to agree on TLS; 0 would mean something else
# Alerts of TLS about a client; others are of a connection that broke, such as a damaged record.
_OF_CLIENT = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "HANDSHAKE_FAILURE", "DECRYPT_ERROR")


class Connection:
    """One connection, which each exchange uses; it opens again after a loss."""

    def __init__(self, server: Server, options: Mapping[str, Any]) -> None:
        self._server, self._options = server, options
        self._trust = _trust(options) if server.scheme == "https" else None
        self._http = http.client.HTTPConnection(server.host, server.port)
        self._http.auto_open = 0
        self._http.response_class = FinalResponse
        self._socket: TimedSocket | None = None

    def open(self) -> None:
        """Open the connection within `connect_timeout`, if it is not open; raises LOST, ConnectorError."""
        if self.is_idle():
            return
        self.close()
        deadline = time.monotonic() + self._options["connect_timeout"]
        found = socket.getaddrinfo(self._server.host, self._server.port, type=socket.SOCK_STREAM)
        if any(is_metadata(str(address[0])) for *_, address in found):
            words = "has an address that is link-local, or that of a cloud's metadata; no table may reach it"
            raise ConnectorError(f"{self._server} {words}")
        failure: OSError = TimeoutError("timed out")
        for place, (*_, address) in enumerate(found):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                where, share = (str(address[0]), int(address[1])), left / (len(found) - place)
                made = socket.create_connection(where, share)
                made.settimeout(max(_LEAST_S, deadline - time.monotonic()))
            except OSError as error:
                failure = error
            else:
                self._socket = TimedSocket(self._secured(made))
                self._http.sock = self._socket  # has all that http.client needs
                return
        raise failure

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> Answer:
        """The answer to one request on the open connection, of which `most` bytes are read.

        Raises LOST, and ConnectorError for wrong TLS.
        """
        assert self._socket is not None  # noqa: S101 - for mypy: it is open
        self._socket.set_deadline(self._options["timeout"])
        encoded = {name: value.encode() for name, value in headers.items()}
        try:
            self._http.request(method, path, body, encoded)
            response = self._http.getresponse()
        except ssl.SSLError as error:
            reason = str(error.reason)
            if "ALERT" in reason and any(each in reason for each in _OF_CLIENT):
                raise self._untrusted(error) from error  # TLS 1.3 asks for its certificate at last
            raise
        data = bytearray()
        while len(data) <= most and (chunk := response.read1(_CHUNK)):
            data += chunk
        response.close()
        if len(data) > most:
            self.close()
        elif response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return Answer(response.status, response.headers, bytes(data[:most]), len(data) <= most)

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._http.close()

    def is_idle(self) -> bool:
        """Whether the connection is open; it is not where the server closed it after its last answer."""
        if self._http.sock is None or self._socket is None or self._socket.pending():
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def _secured(self, plain: socket.socket) -> socket.socket:
        if self._trust is None:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return plain
        try:
            return self._trust.wrap_socket(plain, server_hostname=self._server.host)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            words = f"{self._server} is not trusted: {error.verify_message}; check option 'ssl_ca'"
            raise ConnectorError(words) from error
        except OSError as error:
            plain.close()
            if isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason):
                raise self._untrusted(error) from error
            raise

    def _untrusted(self, error: ssl.SSLError) -> ConnectorError:
        self.close()
        return ConnectorError(
            f"{self._server} refuses this client: {error.reason}; check 'ssl_certificate' and 'ssl_key'"
        )


def _trust(options: Mapping[str, Any]) -> ssl.SSLContext:
    try:
        trust = ssl.create_default_context(cadata=options["ssl_ca"] or None)
    except (ssl.SSLError, ValueError) as error:
        raise ConnectorError("option 'ssl_ca' has no certificates as PEM") from error
    if not options["ssl_certificate"]:
        return trust
    chain = f"{options['ssl_key']}\n{options['ssl_certificate']}"
    try:
        load_chain(trust, chain, str(options["ssl_key_password"]))
    except (OSError, ValueError) as error:
        words = "are no certificate and key as PEM that fit together"
        raise ConnectorError(
            f"options 'ssl_certificate', 'ssl_key' and 'ssl_key_password' {words}"
        ) from error
    return trust
