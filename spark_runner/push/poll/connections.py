"""The connections of a server, bounded in number: strangers cannot keep clients out by holding many."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

_MAX_CONNECTIONS = 64


@dataclass(slots=True, eq=False)
class Connection:
    """A connection: whether its client has shown the token, and whether a request is being answered.

    `is_begun`: its task has begun, and closes the socket at its end.
    """

    socket: socket.socket
    task: "asyncio.Task[Any] | None" = None
    is_begun: bool = False
    is_known: bool = False
    is_busy: bool = False
    is_ending: bool = False
    reader: asyncio.StreamReader | None = None

    @property
    def may_end(self) -> bool:
        """Whether another one may have its place: a stranger, or a client that has closed its end."""
        is_gone = self.reader is not None and (self.reader.at_eof() or self.reader.exception() is not None)
        return is_gone or not self.is_known


class Connections:
    """At most 64 connections. A further one ends the oldest that may end, or is refused without one.

    A client that has gone would keep its place until its wait for rows is over.
    """

    def __init__(self) -> None:
        self._open = dict[Connection, None]()  # the oldest first

    def add(
        self, accepted: socket.socket, serve: "Callable[[Connection], Coroutine[Any, Any, None]]"
    ) -> None:
        """Serve a connection in a task of its own, or close it if there is no place for it."""
        made = Connection(accepted)
        if not self._has_place():
            accepted.close()
            return
        self._open[made] = None
        made.task = asyncio.create_task(serve(made))
        made.task.add_done_callback(lambda _: self._ended(made))

    def _has_place(self) -> bool:
        if sum(not each.is_ending for each in self._open) >= _MAX_CONNECTIONS:
            found = next((each for each in self._open if each.may_end and not each.is_ending), None)
            if found is None:
                return False
            _end(found)
        return True

    def _ended(self, connection: Connection) -> None:
        del self._open[connection]
        if not connection.is_begun:  # a task that is cancelled so early runs no line
            connection.socket.close()

    def has_busy(self) -> bool:
        """Whether a request is being answered."""
        return any(each.is_busy for each in list(self._open))

    async def end(self, seconds: float) -> None:
        """End all connections: those with a request that is being answered within so many seconds."""
        await _ended([each for each in self._open if each.is_busy], seconds)
        left = list(self._open)
        for each in left:
            _end(each)
        await _ended(left, seconds)


def _end(connection: Connection) -> None:
    connection.is_ending = True
    if connection.task is not None:
        connection.task.cancel()


async def _ended(connections: list[Connection], seconds: float) -> None:
    if tasks := [each.task for each in connections if each.task is not None]:
        await asyncio.wait(tasks, timeout=seconds)
