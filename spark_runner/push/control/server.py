"""The driver's end of the channel."""

import asyncio
import contextlib
import hmac
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_runner.push.control.budget import Budget, Fenced, Grant, Share, TaskId
from spark_runner.push.control.messages import (
    MAX_BYTES,
    BadMessage,
    Join,
    Message,
    Orders,
    Received,
    Refused,
    Report,
    decode,
    encode,
)
from spark_runner.push.settings import Limits

_JOIN_S = 10.0  # from the connection to the first message
_TLS_S = 5.0  # to agree on TLS, or to end it
_SEND_S = 5.0  # in which a task must receive what is sent to it
_DISMISS_S, _END_S = 1.0, 2.0  # for tasks to leave, and for their connections to end
_LEAST_S, _LOOK_S = 0.01, 0.1  # between looks for tasks whose share changes, or whose lease is over
STALE_S = 5.0
"""A task whose last report is older has stale counts; it reports at least each two seconds."""
_MAX_CONNECTIONS = 10_000
_BACKLOG = 1024

Ended = tuple[TaskId, Mapping[str, Any]]
"""A task that has ended, and its last counts."""


@dataclass(slots=True)
class TaskState:
    """What the driver knows of a task that pushes: its last report, and when that came."""

    counts: Mapping[str, Any] = field(default_factory=dict)
    at: float = 0.0
    is_stale: bool = False


class ControlServer:
    """Receives reports of tasks, and sends them their orders. A thread of its own runs it.

    Only tasks with the token get an answer. Its methods may be called by any thread.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        host: str,
        token: str,
        lease: float,
        is_exclusive: bool,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self._limits, self._token = limits, token
        self._budget = Budget(limits, lease, is_exclusive=is_exclusive)
        self._rollbacks = 0
        self._host, self._port, self._tls = host, port, tls
        self._tasks = dict[TaskId, TaskState]()
        self._ended = list[Ended]()
        self._writers = dict[TaskId, asyncio.StreamWriter]()
        self._grants = dict[TaskId, Grant]()
        self._connected_writers = set[asyncio.StreamWriter]()
        self._lock = threading.Lock()  # of what other threads read
        self._loop = asyncio.new_event_loop()
        self._has_changed = False  # shares are to be distributed anew
        self._thread = threading.Thread(target=self._run, name="push-control", daemon=True)
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._ending, self._wanted = asyncio.Event(), asyncio.Event()  # the second one: of a look at once

    def start(self) -> int:
        """Listen; returns the port. Raises OSError."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        return self._port

    def dismiss(self) -> None:
        """Let tasks end that still push, as `close` does, and return at once."""
        self._call(self._end)

    def join(self, seconds: float) -> None:
        """Wait for the end after `dismiss`, at most so long."""
        self._thread.join(seconds)

    def close(self) -> None:
        """End; tasks that are there end with their last counts."""
        self.dismiss()
        self._thread.join()
        with self._lock:
            self._ended += [(task, state.counts) for task, state in self._tasks.items()]
            self._tasks.clear()

    def adjust(self, limits: Limits) -> None:
        """Change the limits, for all tasks together."""
        self._call(lambda: self._adjust(limits))

    def roll_back(self) -> None:
        """Let each task deliver again what is not acknowledged."""
        self._call(self._roll_back)

    def tasks(self) -> dict[TaskId, TaskState]:
        """The tasks that push, with what they have counted."""
        with self._lock:
            return dict(self._tasks)

    def take_ended(self) -> list[Ended]:
        """The last counts of tasks that have ended since the last call, or whose lease is over."""
        return self.take()[0]

    def take(self) -> tuple[list[Ended], dict[TaskId, TaskState]]:
        """Both at the same moment, so that no task is in both, or in none."""
        with self._lock:
            found, self._ended = self._ended, []
            return found, dict(self._tasks)

    def _call(self, function: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(function)

    # ------------------------------------------------------------------ in its thread
    def _end(self) -> None:
        self._ending.set()
        self._wanted.set()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 - `start` raises it
            self._failure = error
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        tls: dict[str, Any] = (
            {"ssl": self._tls, "ssl_handshake_timeout": _TLS_S, "ssl_shutdown_timeout": _TLS_S}
            if self._tls
            else {}
        )
        server = await asyncio.start_server(
            self._connected, self._host, self._port, limit=MAX_BYTES, backlog=_BACKLOG, **tls
        )
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        while not self._ending.is_set():
            self._wanted.clear()
            self._look()
            await asyncio.sleep(_LEAST_S)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), _LOOK_S)
        server.close()
        for writer in self._writers.values():
            writer.write(encode(Refused("the push has ended")))
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others and self._writers:
            await asyncio.wait(others, timeout=_DISMISS_S)  # a task may have clients to answer
        for writer in self._connected_writers:
            writer.transport.abort()  # its reader is at the end by that
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=_END_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connected_writers.add(writer)
        task: TaskId | None = None
        try:
            if len(self._connected_writers) <= _MAX_CONNECTIONS:
                task = await self._joined(reader, writer)
            while task is not None and await self._reported(task, reader, writer):
                pass
        except (BadMessage, ValueError, OSError, TimeoutError):
            pass  # a task that works connects again
        finally:
            self._connected_writers.discard(writer)
            if task is not None and self._writers.get(task) is writer:
                del self._writers[task]
            writer.close()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> TaskId | None:
        message = decode(await asyncio.wait_for(reader.readline(), _JOIN_S))
        if not isinstance(message, Join) or not hmac.compare_digest(
            message.token.encode(), self._token.encode()
        ):
            return None
        task = TaskId(message.partition, message.attempt)
        try:
            self._budget.join(task, message.nonce, time.monotonic())
        except Fenced as error:
            await _send(writer, Refused(str(error)))
            return None
        if before := self._writers.get(task):
            before.transport.abort()
        self._writers[task] = writer
        with self._lock:
            self._tasks.setdefault(task, TaskState(at=time.monotonic()))
        self._grants.setdefault(task, Grant(0, Share()))
        await _send(writer, self._orders(task))
        self._change()
        return task

    async def _reported(
        self, task: TaskId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Process the next report; False if there will be no further one."""
        line = await reader.readline()
        if not line or self._writers.get(task) is not writer:
            return False
        report = decode(line)
        if not isinstance(report, Report):
            raise BadMessage("it is no report")
        now = time.monotonic()
        try:
            if self._budget.confirm(task, report.version, now):
                self._change()
        except Fenced as error:
            await _send(writer, Refused(str(error)))
            return False
        with self._lock:
            self._tasks[task] = TaskState(report.counts, now)
        if report.is_last:
            self._forget(task)
        await _send(writer, Received(report.number))
        return not report.is_last

    def _forget(self, task: TaskId) -> None:
        """A task has ended, or its lease is over."""
        self._budget.leave(task)
        self._grants.pop(task, None)
        self._change()
        with self._lock:
            self._ended.append((task, self._tasks.pop(task).counts))

    def _change(self) -> None:
        """Let the shares be distributed anew, soon."""
        self._has_changed = True
        self._wanted.set()

    def _look(self) -> None:
        """Find tasks without contact, and those whose lease is over; distribute what has changed."""
        now = time.monotonic()
        for task in self._budget.expire(now):
            self._forget(task)
            if writer := self._writers.pop(task, None):
                writer.transport.abort()
        with self._lock:
            for state in self._tasks.values():
                state.is_stale = now - state.at > STALE_S
        if self._has_changed:
            self._has_changed = False
            self._distribute()

    def _distribute(self) -> None:
        for task, grant in self._budget.rebalance().items():
            self._grants[task] = grant
            self._order(task)

    def _adjust(self, limits: Limits) -> None:
        self._limits = limits
        self._budget.adjust(limits)
        self._change()
        self._order_all()  # lanes may be paused, whatever the shares

    def _roll_back(self) -> None:
        self._rollbacks += 1
        self._order_all()

    def _order_all(self) -> None:
        for task in list(self._grants):
            self._order(task)

    def _order(self, task: TaskId) -> None:
        writer = self._writers.get(task)
        if writer is None:
            return  # it gets them when it is there again
        if writer.transport.get_write_buffer_size() > MAX_BYTES:
            writer.transport.abort()  # it does not read
        else:
            writer.write(encode(self._orders(task)))

    def _orders(self, task: TaskId) -> Orders:
        version, share = self._grants[task]
        paused = sorted(name for name, lane in self._limits.lanes.items() if lane.is_paused)
        return Orders(version, *share, paused, self._rollbacks)


async def _send(writer: asyncio.StreamWriter, message: Message) -> None:
    writer.write(encode(message))
    await asyncio.wait_for(writer.drain(), _SEND_S)
