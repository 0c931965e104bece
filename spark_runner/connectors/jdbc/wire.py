"""A connection to PostgreSQL for bytes of COPY, as the tasks of Spark need it.

Clients of the package index cannot travel with a job: they are compiled, or read the metadata of their own
installation. So this is the part of the protocol (version 3) for a login, a statement, and COPY both ways.
"""

import contextlib
import hashlib
import socket
import ssl
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from spark_runner.connectors.jdbc.address import parse
from spark_runner.connectors.jdbc.scram import MECHANISM, ScramClient, ScramError
from spark_runner.connectors.jdbc.sockets import CONNECT_SECONDS, keep_alive, tls_context

_CHUNK = 256 * 1024  # bytes of one message
_PROTOCOL, _TLS = 196_608, 80_877_103
_NOTHING_YET = (BlockingIOError, ssl.SSLWantReadError)
_SIZE, _MAX_MESSAGE = 4, 1 << 30  # bytes of the size itself, and of a message


class WireError(Exception):
    """The server refused a statement, or the connection broke; `state` is the SQLSTATE, empty without one."""

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state

    def __reduce__(self) -> tuple[type["WireError"], tuple[str, str]]:
        return type(self), (str(self), self.state)


@dataclass(frozen=True)
class Login:
    """Where and as whom to connect; `parameters` are those of the JDBC URL."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)

    KNOWN: ClassVar[frozenset[str]] = frozenset(
        {"sslmode", "ssl", "sslrootcert", "ApplicationName", "connectTimeout"}
    )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """That of the options of a table."""
        at, user, password = parse(str(options["url"])), str(options["username"]), str(options["password"])
        return cls(at.host, at.port, at.database, user, password, dict(at.parameters))

    @property
    def is_possible(self) -> bool:
        """Whether this client has all that the parameters of the URL ask for."""
        return bool(self.host) and self.parameters.keys() <= self.KNOWN

    @property
    def tls(self) -> str:
        """The mode of TLS, as `sslmode` of the driver."""
        asked = self.parameters.get("ssl", "false").lower() in {"", "true"}
        return self.parameters.get("sslmode", "verify-full" if asked else "prefer")


class Wire:
    """One connection; a context manager closes it."""

    def __init__(self, login: Login) -> None:
        seconds = float(login.parameters.get("connectTimeout") or CONNECT_SECONDS)
        self._has_failed = False  # the last statement; the server has not yet said that it takes another one
        self._ahead = b""  # what was read to see whether the server has sent something
        try:
            self._socket = socket.create_connection((login.host, login.port), timeout=seconds)
        except OSError as error:
            raise WireError(f"{login.host}:{login.port} cannot be reached: {error}", "08001") from error
        try:
            keep_alive(self._socket)
            self._encrypt(login)
            self._log_in(login)
            self._socket.settimeout(None)  # a server may work for as long as it needs
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._socket.sendall(_message(b"X", b""))
        except OSError:
            pass  # the server has closed it before
        finally:
            self._socket.close()

    # ------------------------------------------------------------------ login
    def _encrypt(self, login: Login) -> None:
        mode = login.tls
        if mode in {"disable", "allow"}:
            return
        self._send(struct.pack("!ii", 8, _TLS))
        if self._read(1) != b"S":
            if mode != "prefer":
                raise WireError(f"the server has no TLS, and sslmode is '{mode}'", "08P01")
            return
        context = tls_context(login.parameters.get("sslrootcert", ""))
        context.check_hostname = mode == "verify-full"
        if mode not in {"verify-ca", "verify-full"}:
            context.verify_mode = ssl.CERT_NONE
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=login.host)
        except (ssl.SSLError, OSError) as error:
            raise WireError(f"TLS with {login.host}:{login.port} failed: {error}", "08006") from error

    def _log_in(self, login: Login) -> None:
        given = {
            "user": login.user,
            "database": login.database or login.user,
            "client_encoding": "UTF8",
            "application_name": login.parameters.get("ApplicationName", "orchestrator"),
        }
        body = b"".join(part.encode() + b"\0" for pair in given.items() for part in pair)
        self._send(struct.pack("!ii", len(body) + 9, _PROTOCOL) + body + b"\0")
        scram = ScramClient(login.password)
        try:
            while (kind := self._receive())[0] != b"Z":
                if kind[0] == b"R":
                    self._authenticate(login, scram, kind[1])
        except (ScramError, UnicodeDecodeError) as error:
            raise WireError(f"the login failed: {error}", "28P01") from error

    def _authenticate(self, login: Login, scram: ScramClient, body: bytes) -> None:
        (way,), rest = struct.unpack_from("!i", body), body[4:]
        match way:
            case 0:
                if scram.is_open:
                    raise ScramError("the server does not prove that it knows the password")
            case 3:
                self._send(_message(b"p", login.password.encode() + b"\0"))
            case 5:
                inner = hashlib.md5((login.password + login.user).encode()).hexdigest()  # noqa: S324 - the server asks for it
                outer = hashlib.md5(inner.encode() + rest).hexdigest()  # noqa: S324 - likewise
                self._send(_message(b"p", f"md5{outer}".encode() + b"\0"))
            case 10 if MECHANISM.encode() in rest.split(b"\0"):
                first = scram.first()
                head = MECHANISM.encode() + b"\0" + struct.pack("!i", len(first))
                self._send(_message(b"p", head + first))
            case 11:
                self._send(_message(b"p", scram.final(rest)))
            case 12:
                scram.check(rest.split(b",")[0])
            case _:
                raise WireError("the server asks for a login that this client does not have", "28000")

    # ------------------------------------------------------------------ statements
    def run(self, statement: str) -> None:
        """Run a statement without rows."""
        self._ask(statement)
        self._finish()

    @contextlib.contextmanager
    def transaction(self, settings: str) -> Iterator[None]:
        """A transaction with settings of its own; an error leaves its end to that of the connection.

        Settings of a connection would be those of others: a pooler may give each transaction another server.
        """
        self.run(f"BEGIN; {settings}")
        yield
        self.run("COMMIT")

    def copy_in(self, statement: str, chunks: Iterable[bytes | memoryview]) -> None:
        """Run COPY ... FROM STDIN with these bytes; raises WireError, early if the server ends it."""
        self._ask(statement)
        self._await(b"G")
        try:
            for chunk in chunks:
                view = memoryview(chunk)
                for start in range(0, len(view), _CHUNK):
                    part = view[start : start + _CHUNK]
                    self._send(b"d" + struct.pack("!i", len(part) + 4))
                    self._send(part)
                    while self._has_answer():
                        self._read_during_copy()
        except WireError:
            raise
        except BaseException:
            self._send(_message(b"f", b"the rows ended with an error\0"))
            raise
        self._send(_message(b"c", b""))
        self._finish()

    def copy_out(self, statement: str) -> Iterator[bytes]:
        """Run COPY ... TO STDOUT; each of the bytes is a row."""
        self._ask(statement)
        self._await(b"H")
        while (found := self._receive())[0] != b"Z":
            if found[0] == b"d":
                yield found[1]

    # ------------------------------------------------------------------ messages
    def _ask(self, statement: str) -> None:
        if self._has_failed:
            self._finish()
        self._send(_message(b"Q", statement.encode() + b"\0"))

    def _await(self, code: bytes) -> None:
        while self._receive()[0] != code:
            pass

    def _finish(self) -> None:
        """Read to the end of a statement."""
        self._await(b"Z")

    def _has_answer(self) -> bool:
        """Whether the server has sent something; select would take records of TLS itself for that."""
        self._socket.settimeout(0)
        try:
            self._ahead = self._take(1)
        except _NOTHING_YET:
            return False
        finally:
            self._socket.settimeout(None)
        return True

    def _read_during_copy(self) -> None:
        """Read a message that the server sends while it takes rows: notices, changed settings, an error."""
        try:
            code, _ = self._receive()
        except WireError:
            with contextlib.suppress(WireError):
                self._finish()  # the server drops what was sent of the rows, and takes statements again
            raise
        if code not in {b"N", b"S"}:
            raise WireError("the server ended COPY early", "08006")

    def _receive(self) -> tuple[bytes, bytes]:
        """The next message; raises WireError for one of an error."""
        head = self._read(5)
        (size,) = struct.unpack_from("!i", head, 1)
        if not _SIZE <= size <= _MAX_MESSAGE:
            raise WireError("the server does not speak the protocol of PostgreSQL", "08P01")
        code, body = head[:1], self._read(size - _SIZE)
        self._has_failed = code == b"E" or (self._has_failed and code != b"Z")
        if code == b"E":
            raise _error(body)
        return code, body

    def _send(self, data: bytes | memoryview) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise WireError(f"the connection to the database broke: {error}", "08006") from error

    def _read(self, size: int) -> bytes:
        found, self._ahead = bytearray(self._ahead), b""
        while len(found) < size:
            found += self._take(size - len(found))
        return bytes(found)

    def _take(self, most: int) -> bytes:
        try:
            part = self._socket.recv(min(most, 1 << 20))
        except _NOTHING_YET:
            raise
        except OSError as error:
            raise WireError(f"the connection to the database broke: {error}", "08006") from error
        if not part:
            raise WireError("the database closed the connection", "08006")
        return part


def _message(code: bytes, body: bytes) -> bytes:
    return code + struct.pack("!i", len(body) + 4) + body


def _error(body: bytes) -> WireError:
    """The error of a message, with the detail and the place that the server adds."""
    parts = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    words = parts.get(b"M", "an error without words")
    more = "; ".join(parts[key] for key in (b"D", b"W") if key in parts)
    return WireError(f"{words} ({more})" if more else words, parts.get(b"C", ""))
