"""One connection through the fault proxy: the client's end, the server's end, the frames between."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from tests.chaos.frames import FrameReader, NoFrame, multi_xid, reply_xid, was_applied


class Direction(StrEnum):
    """Direction of bytes."""

    UP = "up"  # client to server
    DOWN = "down"  # server to client


@dataclass(slots=True)
class Counters:
    """Counters of one proxy."""

    connections: int = 0  # accepted from the client
    refused: int = 0  # closed at once, by `refuse`
    unreachable: int = 0  # closed because no server was reachable
    cut: int = 0  # connections ended by the proxy
    replies_dropped: int = 0  # of multis that were applied
    held: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(Direction, 0))  # frames
    discarded: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(Direction, 0))  # frames


@dataclass(slots=True)
class Faults:
    """The active faults of all connections of one proxy."""

    replies_to_drop: int = 0
    refusing: bool = False
    silent: set[Direction] = field(default_factory=set)
    discarding: set[Direction] = field(default_factory=set)  # silent directions whose frames are dropped
    counters: Counters = field(default_factory=Counters)


class Link:
    """Forwards frames, subject to the active faults. Used only in the event loop's thread."""

    def __init__(
        self, faults: Faults, on_open: Callable[["Link"], None], on_gone: Callable[["Link"], None]
    ) -> None:
        self._faults = faults
        self._on_open = on_open
        self._on_gone = on_gone
        self.client = _End(self, Direction.UP)
        self.server = _End(self, Direction.DOWN)
        self._readers = {direction: FrameReader() for direction in Direction}
        self._handshaken = dict.fromkeys(Direction, False)
        # None is the end of the stream: it follows the frames, and is held back like them.
        self._on_the_way: dict[Direction, deque[bytes | None]] = {way: deque() for way in Direction}
        self._lost: set[Direction] = set()
        self._awaited_xid: int | None = None
        self._mangled = False
        self.aborted = False

    def cut(self) -> None:
        """End both connections as a fault: it is counted."""
        if not self.aborted:
            self._faults.counters.cut += 1
            self.abort()

    def abort(self) -> None:
        """End both connections now; frames in transit are lost."""
        if not self.aborted:
            self.aborted = True
            for end in (self.client, self.server):
                end.abort()
            self._on_gone(self)

    def silence_ended(self, direction: Direction) -> None:
        """Release the held frames; a connection that lost frames is cut."""
        if self._mangled:
            self.cut()
        else:
            self.flush(direction)

    def flush(self, direction: Direction) -> None:
        """Forward the frames that no fault holds back."""
        target = self.server if direction is Direction.UP else self.client
        waiting = self._on_the_way[direction]
        while waiting and target.is_there and direction not in self._faults.silent:
            target.send(waiting.popleft())

    # ------------------------------------------------------------------ called by the ends
    def opened(self, direction: Direction) -> None:
        if direction is Direction.UP:
            self._on_open(self)
        else:
            self.flush(Direction.UP)

    def arrived(self, direction: Direction, data: bytes) -> None:
        try:
            frames = self._readers[direction].feed(data)
        except NoFrame:
            self.abort()
            return
        for frame in frames:
            if self._swallows(direction, frame):
                self.cut()
            if self.aborted:
                return
            self._push(direction, frame)

    def lost(self, direction: Direction) -> None:
        self._lost.add(direction)
        if self.aborted:
            return
        # It receives nothing more; its last frames and its end are still forwarded.
        back = Direction.DOWN if direction is Direction.UP else Direction.UP
        self._on_the_way[back].clear()
        if len(self._lost) == len(Direction):
            self._on_gone(self)
        else:
            self._push(direction, None)

    def _push(self, direction: Direction, frame: bytes | None) -> None:
        counters = self._faults.counters
        if frame is not None and direction in self._faults.discarding:
            counters.discarded[direction] += 1
            self._mangled = True
            return
        if frame is not None and direction in self._faults.silent:
            counters.held[direction] += 1
        self._on_the_way[direction].append(frame)
        self.flush(direction)

    def _swallows(self, direction: Direction, frame: bytes) -> bool:
        """Whether this frame is the reply to discard."""
        if not self._handshaken[direction]:
            self._handshaken[direction] = True
            return False
        faults = self._faults
        if direction is Direction.UP:
            if faults.replies_to_drop and self._awaited_xid is None:
                self._awaited_xid = multi_xid(frame)
            return False
        if self._awaited_xid is None or reply_xid(frame) != self._awaited_xid:
            return False
        self._awaited_xid = None
        # A refused multi changed nothing: its reply is forwarded, and the fault applies to the next multi.
        if not faults.replies_to_drop or not was_applied(frame):
            return False
        faults.replies_to_drop -= 1
        faults.counters.replies_dropped += 1
        return True


class _End(asyncio.Protocol):
    """One of the two connections; `outgoing` is the direction of the bytes that arrive on it."""

    def __init__(self, link: Link, outgoing: Direction) -> None:
        self._link = link
        self._outgoing = outgoing
        self._transport: asyncio.Transport | None = None

    @property
    def is_there(self) -> bool:
        return self._transport is not None

    def send(self, frame: bytes | None) -> None:
        if self._transport is not None and not self._transport.is_closing():
            if frame is None:
                self._transport.close()
            else:
                self._transport.write(frame)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._link.aborted:
            self._transport.abort()
        else:
            self._link.opened(self._outgoing)

    def data_received(self, data: bytes) -> None:
        self._link.arrived(self._outgoing, data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why it ended does not matter
        self._link.lost(self._outgoing)
