"""One HTTP POST with limits of time and size, no redirects, and trusted certificates only.

This module opens the socket, after it has checked all addresses of the host.
"""

import base64
import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote, urlsplit

import urllib3

from orchestrator.logs.http import (
    AnswerTooLarge,
    AnswerTooSlow,
    PlainConnection,
    SecureConnection,
    answer_within,
)
from orchestrator.model.errors import OrchestratorError
from orchestrator.policy.rules import Listed
from spark_runner.protocol.metadata_addresses import is_loopback, is_metadata

MAX_ANSWER_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}
_SAFE = "%/:=&?~#+!$,;'@()*[]"  # characters of a path and query that are quoted already


HostCheck = Callable[[str, int], Listed]
"""Returns how the operator lists a host and port; raises if they are not allowed."""


class PostError(OrchestratorError):
    """No response arrived; the message is short and contains no path, query, user or password."""


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """The answer: its HTTP status, and its body of at most `MAX_ANSWER_BYTES`."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    is_tls: bool
    host: str
    port: int
    path: str
    login: str | None


class Poster:
    """Sends POST requests, each on its own connection. Thread-safe."""

    def post(
        self,
        url: str,
        data: bytes,
        headers: Mapping[str, str],
        *,
        seconds: float,
        check: HostCheck = lambda _host, _port: Listed.OPEN,
    ) -> PostAnswer:
        """Send `data`; the whole call takes at most `seconds`, apart from the resolver's own limits.

        User and password of the URL are sent as a basic login. `check` is called with the host of the URL.
        Raises PostError, and the errors of `check`.
        """
        target = _target(url)
        listed = check(target.host, target.port)
        login = {} if target.login is None else {"Authorization": f"Basic {target.login}"}
        try:
            whole = {**headers, **login, "Connection": "close"}
            with answer_within(MAX_ANSWER_BYTES, seconds) as read:
                connection = self._connection(target, _Clock(seconds), listed)
                with contextlib.closing(connection):
                    connection.connect()
                    connection.request(
                        "POST",
                        target.path,
                        body=data,
                        headers=whole,
                        preload_content=False,
                        decode_content=False,
                        enforce_content_length=False,
                    )
                    response = connection.getresponse()
                    return PostAnswer(response.status, read(response))
        except AnswerTooLarge:
            reason = f"its answer is larger than {MAX_ANSWER_BYTES:,} bytes"
        except (TimeoutError, AnswerTooSlow):
            reason = f"no answer within {seconds:g} s"
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate is not trusted: {error.verify_message}"
        except ssl.SSLError as error:
            reason = f"no TLS with it: {error.reason or 'the connection broke off'}"
        except OSError as error:
            reason = error.strerror or type(error).__name__
        except (http.client.HTTPException, urllib3.exceptions.HTTPError) as error:
            reason = f"its answer is not HTTP ({type(error).__name__})"
        except ValueError:  # an impossible host name; the message would quote it
            reason = "its host is not a valid name"
        # Without the cause: some causes hold the URL.
        raise PostError(reason)

    def _connection(self, target: _Target, clock: "_Clock", listed: Listed) -> PlainConnection:
        def connect() -> socket.socket:
            return _connect(target, clock, listed)

        if target.is_tls:
            return SecureConnection(target.host, target.port, ssl_context=self._trust, connect=connect)
        return PlainConnection(target.host, target.port, connect=connect)

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        # Certificates and host names are verified; no setting disables that.
        return ssl.create_default_context()


class _Clock:
    """The remaining time of a call."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        """The remaining seconds; raises TimeoutError if none are left."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _target(url: str) -> _Target:
    # Control characters, and bytes of the environment that are not text, would get into the request.
    if not url.isprintable() or " " in url:
        raise PostError("its URL has characters that no URL may have")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise PostError("its URL cannot be read") from None
    if parts.scheme not in _PORTS or not host:
        raise PostError("its URL is not an http or https address")
    login = None
    if parts.username is not None:
        words = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = base64.b64encode(words.encode()).decode()
    path = quote(parts.path or "/", safe=_SAFE) + (
        f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    )
    return _Target(parts.scheme == "https", host, port or _PORTS[parts.scheme], path, login)


def _connect(target: _Target, clock: _Clock, listed: Listed) -> socket.socket:
    """A connection to the first address that accepts one; each gets its share of the remaining time.

    Raises PostError if the name has a forbidden address: a name server does not have the operator's rights.
    """
    addresses = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    for *_, address in addresses:
        _check_address(str(address[0]), listed)
    failure: OSError = TimeoutError()
    for tried, (*_, address) in enumerate(addresses):
        try:
            place = str(address[0]), int(address[1])
            sock = socket.create_connection(place, timeout=clock.left() / (len(addresses) - tried))
            sock.settimeout(clock.left())
        except OSError as error:
            failure = error
        else:
            return sock
    raise failure


def _check_address(address: str, listed: Listed) -> None:
    if listed is Listed.BY_NAME:
        return
    if is_metadata(address):
        kind = "link-local, or that of a cloud's metadata"
    elif listed is Listed.BY_PATTERN and is_loopback(address):
        kind = "the worker's own host"
    else:
        return
    raise PostError(f"its address is {kind}: an operator can list the host by name in policy.callback_hosts")
