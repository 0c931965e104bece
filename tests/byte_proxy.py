"""A TCP proxy before any server that delays, cuts or damages what passes, in the middle of a write.

`tests.chaos.proxy` reads frames of ZooKeeper, and `tests.log_proxy` requests of HTTP; this one reads bytes.
"""

import asyncio
import ssl
from contextlib import suppress
from enum import Enum, auto
from typing import Self

from tests.chaos.proxy import LOOPBACK, ProxyLoop

DELAY_S = 2.0
_LATE_ANSWERS = 2
_CHUNK = 64 * 1024
_DAMAGE = b"\x17\x03\x03\x00\x20" + bytes(range(32))
"""A record of TLS as long as it says, which no key has made."""


class Fault(Enum):
    """What happens once, on the first connection that has sent so many bytes."""

    DELAY = auto()  # its next answers come late
    CUT = auto()  # it ends within a request
    DAMAGED_ANSWER = auto()  # the client reads bytes that the server has not sent
    DAMAGED_REQUEST = auto()  # the server reads bytes that the client has not sent


class ByteProxy:
    """Listens on a port of loopback, and forwards connections to another one. A context manager.

    With `tls` it is the server of TLS for clients, and forwards plain bytes.
    """

    def __init__(
        self, proxies: ProxyLoop, server: int, *, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._proxies, self._server, self.port, self._tls = proxies, server, port, tls
        self._fault: Fault | None = None
        self._after = 0
        self._refusals = 0
        self._links = set[_Link]()
        self._listener: asyncio.Server | None = None
        self.faults = 0  # that have begun
        self.refused = 0  # connections

    def arm(self, fault: Fault, *, after: int = _CHUNK, refusals: int = 0) -> None:
        """Let a fault happen after so many bytes of requests; behind a cut, refuse some connections."""
        self._after, self._refusals, self._fault = after, refusals, fault

    def __enter__(self) -> Self:
        self._listener = self._proxies.wait_for(self._listen())
        self.port = int(self._listener.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._proxies.wait_for(self._close())

    # ------------------------------------------------------------------ in the loop's thread
    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, LOOPBACK, self.port, ssl=self._tls)

    async def _close(self) -> None:
        assert self._listener is not None
        self._listener.close()
        links = list(self._links)
        for link in links:
            link.abort()
        await asyncio.gather(*[link.task for link in links if link.task], return_exceptions=True)
        await asyncio.sleep(0)  # the transports close their sockets in the next iteration of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusals and self._fault is None:
            self._refusals -= 1
            self.refused += 1
            writer.transport.abort()
            return
        try:
            upper = await asyncio.open_connection(LOOPBACK, self._server)
        except OSError:
            writer.transport.abort()
            return
        link = _Link((reader, writer), upper)
        self._links.add(link)
        try:
            await self._forward(link)
        finally:
            self._links.discard(link)

    async def _forward(self, link: "_Link") -> None:
        """Forward both ways until one of the ends is gone."""
        ways = [asyncio.ensure_future(self._requests(link)), asyncio.ensure_future(self._answers(link))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for writer in (link.client[1], link.server[1]):
            writer.close()  # behind what is still to be sent
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self, link: "_Link") -> None:
        with suppress(OSError):
            while data := await link.client[0].read(_CHUNK):
                link.asked += len(data)
                if self._fault is not None and link.asked >= self._after:
                    fault, self._fault = self._fault, None
                    data = self._begin(fault, link, data)
                link.server[1].write(data)
                await link.server[1].drain()
                if link.is_cut:
                    link.abort()

    def _begin(self, fault: Fault, link: "_Link", data: bytes) -> bytes:
        """Begin a fault; returns the bytes for the server."""
        self.faults += 1
        if fault is Fault.DELAY:
            link.late = _LATE_ANSWERS
            return data
        if fault is Fault.DAMAGED_REQUEST:
            return _DAMAGE + data
        if fault is Fault.DAMAGED_ANSWER:
            link.client[1].write(_DAMAGE)
            return data
        link.is_cut = True
        return data[: len(data) // 2]

    async def _answers(self, link: "_Link") -> None:
        with suppress(OSError):
            while data := await link.server[0].read(_CHUNK):
                if link.late:
                    link.late -= 1
                    await asyncio.sleep(DELAY_S)
                link.client[1].write(data)
                await link.client[1].drain()


class _Link:
    """One connection of a client, and the one of the proxy to the server."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.client, self.server = client, server
        self.task = asyncio.current_task()
        self.asked = 0  # bytes of requests
        self.late = 0  # answers
        self.is_cut = False

    def abort(self) -> None:
        for _, writer in (self.client, self.server):
            writer.transport.abort()
