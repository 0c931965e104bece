"""Serves the rows of a buffer to clients that have the token, over HTTP/1.1."""

import asyncio
import contextlib
import ipaddress
import os
import socket
import threading
import time

from spark_runner.push.errors import SettingError
from spark_runner.push.poll.answers import Answer, of_error, of_head, of_page
from spark_runner.push.poll.buffer import Page, PollBuffer
from spark_runner.push.poll.connections import Connection, Connections
from spark_runner.push.poll.requests import MAX_HEAD_BYTES, PATH, PageRequest, read_request
from spark_runner.push.poll.settings import SEND_S, PollSettings

_HEAD_S = 10.0  # for TLS, and then for the first request of a connection
_IDLE_S = 75.0  # for a further request of a client
_LINGER_S = 5.0  # in which clients learn of the end, or of an error
_RECENT_S = 60.0  # a client that asked before that is not waited for
_CLOSE_S = 1.0  # for requests that are being answered at the end
_PAUSE_S = 0.1  # after a connection that could not be accepted, such as without a free descriptor
_CHUNK = 4096


class PollServer:
    """The server, in a thread of its own.

    At its end it waits a moment, until a client has learnt of the end, or of the error.
    """

    def __init__(self, buffer: PollBuffer, settings: PollSettings) -> None:
        self._buffer, self._settings, self._tls = buffer, settings, settings.tls()
        self._connections = Connections()
        self._changed, self._ending, self._told = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._has_told = threading.Event()  # as `_told`, for other threads
        self._asked: float | None = None  # when a client asked last
        self._thread = threading.Thread(target=self._run, name="poll-server", daemon=True)

    def start(self) -> str:
        """Listen; returns the URL of the rows. Raises OSError, SettingError."""
        self._listener = _listening(self._settings, is_secured=self._tls is not None)
        self._loop = asyncio.new_event_loop()
        self._buffer.listen(lambda: self._call(self._news))
        self._thread.start()
        return f"http{'s' if self._tls else ''}://{_shown(self._settings.host, self._listener)}{PATH}"

    def close(self) -> None:
        """End; clients learn of the end of the rows, or of the error, if they ask within a moment."""
        self._call(self._ending.set)
        self._thread.join()

    def answer_waiting(self, seconds: float) -> None:
        """Wait until clients that wait for rows have an answer, after an error of the buffer."""
        if self._connections.has_busy():
            self._has_told.wait(seconds)

    def _call(self, function: object) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(function)  # type: ignore[arg-type]  # it takes no argument

    # ------------------------------------------------------------------ in its thread
    def _news(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 - a thread must not end silently: the task fails
            self._buffer.fail(error)
        finally:
            self._listener.close()
            self._loop.close()

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait({accepting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if accepting.done():
            accepting.result()  # it does not end by itself
        if self._buffer.has_ended or (self._buffer.has_failed and self._has_a_client()):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), _LINGER_S)
        accepting.cancel()
        await self._connections.end(_CLOSE_S)

    def _has_a_client(self) -> bool:
        return self._asked is not None and time.monotonic() - self._asked < _RECENT_S

    async def _accept(self) -> None:
        while True:
            try:
                accepted, _ = await self._loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            self._connections.add(accepted, self._connected)
            await asyncio.sleep(0)  # many new connections must not end one before its request is read

    async def _connected(self, connection: Connection) -> None:
        connection.is_begun = True
        transport: asyncio.BaseTransport | None = None
        try:
            reader = connection.reader = asyncio.StreamReader(MAX_HEAD_BYTES, self._loop)
            protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol,
                connection.socket,
                ssl=self._tls,
                ssl_handshake_timeout=_HEAD_S if self._tls else None,
                ssl_shutdown_timeout=_CLOSE_S if self._tls else None,
            )
            assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101 - for mypy
            transport.set_write_buffer_limits(0)  # `drain` waits until the system has all
            writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
            while await self._exchange(connection, reader, writer):
                pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError, MemoryError):
            pass  # the client is away, too slow, or has lost its place; or its page has no room in memory
        finally:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()  # without one, asyncio has closed the socket

    async def _exchange(
        self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request; returns whether there may be a further one. Raises what ends the connection."""
        async with asyncio.timeout(_IDLE_S if connection.is_known else _HEAD_S):
            head = await _head(reader)
        connection.is_busy = True
        request = PageRequest(is_head=head.startswith(b"HEAD "), stays=False)  # of one that cannot be read
        try:
            request = read_request(head, self._settings.token)
            connection.is_known, self._asked = True, time.monotonic()
            answer = await self._answer(request)
        except Exception as error:  # noqa: BLE001 - each error has an answer; a bug must not stop the server
            answer = of_error(error)
        stays = request.stays and not answer.tells_end
        await self._send(answer, writer, is_head=request.is_head, stays=stays)
        if not stays:
            await self._end(answer, reader)
        connection.is_busy = False
        return stays

    async def _answer(self, request: PageRequest) -> Answer:
        if request.is_head:
            return of_head(has_failed=self._buffer.has_failed)
        until = self._loop.time() + request.wait
        while True:
            changed, page = self._changed, self._page(request)
            left = until - self._loop.time()
            if page.rows or page.is_end or left <= 0:
                return self._answer_of(page)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(left, page.pause or left))

    def _page(self, request: PageRequest) -> Page:
        most = min(request.limit or self._settings.page_records, self._settings.page_records)
        return self._buffer.page(request.after, most, self._settings.page_bytes)

    def _answer_of(self, page: Page) -> Answer:
        try:
            return of_page(page)
        except MemoryError:
            if page.rows:
                self._buffer.sent(is_received=False)
            raise

    async def _send(
        self, answer: Answer, writer: asyncio.StreamWriter, *, is_head: bool, stays: bool
    ) -> None:
        is_received = False
        try:
            writer.write(answer.encoded(is_head=is_head, stays=stays))
            async with asyncio.timeout(SEND_S):
                await writer.drain()
            is_received = True
        finally:
            if answer.has_rows:
                self._buffer.sent(is_received=is_received)

    async def _end(self, answer: Answer, reader: asyncio.StreamReader) -> None:
        """Wait until the client has closed the connection, which it does when it has the whole answer."""
        async with asyncio.timeout(_LINGER_S if answer.tells_end else _CLOSE_S):
            while await reader.read(_CHUNK):
                pass
        if answer.tells_end:
            self._told.set()
            self._has_told.set()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The request line and headers; what is read of them if they are too long, which is no request."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b""


def _listening(settings: PollSettings, *, is_secured: bool) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    if not (is_secured or ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback):
        raise SettingError(f"other hosts can reach {settings.host}, so its rows need a certificate and a key")
    listener = socket.create_server((str(address[0]), int(address[1])), family=family, backlog=128)
    listener.setblocking(False)
    return listener


def _shown(host: str, listener: socket.socket) -> str:
    """Host and port for clients; of a server at all interfaces, the name of this machine, or of its pod."""
    try:
        is_any = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        is_any = False
    if is_any:
        host = os.environ.get("SPARK_EXECUTOR_POD_IP") or socket.gethostname()
    return f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
