"""A TCP proxy between one actor and ZooKeeper that injects faults on command."""

import asyncio
import copy
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from tests.chaos.link import Counters, Direction, Faults, Link

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
_COMMAND_TIMEOUT_S = 10  # commands are immediate: a loop that takes longer is stuck


class ProxyLoop:
    """The thread in which the event loop of all proxies runs. A context manager."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="fault-proxies", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def do(self, act: Callable[[], T]) -> T:
        """Call `act` in the loop's thread and return what it returns."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(act())
            except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
                done.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return done.result(_COMMAND_TIMEOUT_S)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_COMMAND_TIMEOUT_S)


class FaultProxy:
    """Listens for one actor and forwards its connections to the servers of `upstream` in turn.

    `upstream` is a connection string, `host:port,host:port`. Commands are thread-safe and have
    taken effect when they return. A context manager.
    """

    def __init__(self, proxies: ProxyLoop, upstream: str) -> None:
        self._proxies = proxies
        self._servers = _addresses(upstream)
        self._turn = 0
        self._faults = Faults()
        self._links: set[Link] = set()
        self._dials: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._listener: asyncio.Server | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self._listener = self._proxies.wait_for(self._listen())
        self._port = int(self._listener.sockets[0].getsockname()[1])
        self._turn = self._port  # actors start with different servers
        return self

    def __exit__(self, *_: object) -> None:
        self._proxies.wait_for(self._close())

    @property
    def address(self) -> str:
        """The connection string for the actor."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def counters(self) -> Counters:
        """A copy of the counters."""
        return self._proxies.do(lambda: copy.deepcopy(self._faults.counters))

    # ------------------------------------------------------------------ commands
    def drop_next_multi_reply(self) -> None:
        """Discard the reply of the next multi that the server applies, and cut its connection."""

        def arm() -> None:
            self._faults.replies_to_drop += 1

        self._proxies.do(arm)

    def refuse(self, seconds: float) -> None:
        """Cut all connections now and each new one at once, for `seconds`."""

        def begin() -> None:
            self._faults.refusing = True
            self._cut()
            self._end_later("refuse", seconds, self._stop_refusing)

        self._proxies.do(begin)

    def cut_upstream(self, seconds: float, *, discard: bool = False) -> None:
        """Hold back the frames to the server for `seconds`; its own frames pass, and TCP stays up.

        Afterwards the frames are delivered, even if the client is gone, as a network does. With `discard`
        they are lost, and afterwards the connections that lost frames are cut.
        """
        self._silence(Direction.UP, seconds, discard=discard)

    def cut_downstream(self, seconds: float, *, discard: bool = False) -> None:
        """Hold back the frames to the client for `seconds`; else as `cut_upstream`."""
        self._silence(Direction.DOWN, seconds, discard=discard)

    def cut(self) -> None:
        """End all connections now; the client may reconnect at once."""
        self._proxies.do(self._cut)

    def retarget(self, upstream: str) -> None:
        """Cut all connections; later ones go to these servers."""

        def change() -> None:
            self._servers, self._turn = _addresses(upstream), 0
            self._cut()

        self._proxies.do(change)

    def heal(self) -> None:
        """End every fault now."""

        def end() -> None:
            self._faults.replies_to_drop = 0
            self._stop_refusing()
            for direction in Direction:
                self._end_silence(direction)

        self._proxies.do(end)

    # ------------------------------------------------------------------ in the loop's thread
    async def _listen(self) -> asyncio.Server:
        return await self._proxies.loop.create_server(self._accept, LOOPBACK, 0)

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for end in self._ends.values():
            end.cancel()
        dials = list(self._dials)
        for dial in dials:
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)
        self._cut()
        await asyncio.sleep(0)  # the transports close their sockets in the next iteration of the loop

    def _accept(self) -> asyncio.Protocol:
        return Link(self._faults, self._opened, self._links.discard).client

    def _opened(self, link: Link) -> None:
        if self._faults.refusing:
            self._faults.counters.refused += 1
            link.abort()
            return
        self._faults.counters.connections += 1
        self._links.add(link)
        dial = self._proxies.loop.create_task(self._dial(link))
        self._dials.add(dial)
        dial.add_done_callback(self._dials.discard)

    async def _dial(self, link: Link) -> None:
        for _ in self._servers:
            host, port = self._servers[self._turn % len(self._servers)]
            self._turn += 1
            try:
                await self._proxies.loop.create_connection(lambda: link.server, host, port)
            except OSError:
                continue
            return
        self._faults.counters.unreachable += 1
        link.abort()

    def _cut(self) -> None:
        for link in list(self._links):
            link.cut()

    def _stop_refusing(self) -> None:
        self._faults.refusing = False

    def _silence(self, direction: Direction, seconds: float, *, discard: bool) -> None:
        def begin() -> None:
            self._faults.silent.add(direction)
            if discard:
                self._faults.discarding.add(direction)
            self._end_later(direction, seconds, lambda: self._end_silence(direction))

        self._proxies.do(begin)

    def _end_silence(self, direction: Direction) -> None:
        self._faults.silent.discard(direction)
        self._faults.discarding.discard(direction)
        for link in list(self._links):
            link.silence_ended(direction)

    def _end_later(self, fault: str, seconds: float, end: Callable[[], None]) -> None:
        # A repeated fault restarts its time.
        if (before := self._ends.pop(fault, None)) is not None:
            before.cancel()
        self._ends[fault] = self._proxies.loop.call_later(seconds, end)


def _addresses(upstream: str) -> list[tuple[str, int]]:
    addresses = []
    for address in upstream.split(","):
        host, _, port = address.strip().rpartition(":")
        addresses.append((host, int(port)))
    return addresses
