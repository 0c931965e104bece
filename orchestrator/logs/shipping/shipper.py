"""Brings spools to a target: batches in several threads, checkpoints behind what was acknowledged."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.logs.errors import LogsError
from orchestrator.logs.files import write_json
from orchestrator.logs.shipping.counts import Counts
from orchestrator.logs.shipping.dead_letters import DeadLetters
from orchestrator.logs.shipping.delivery import Courier
from orchestrator.logs.shipping.options import ShipperOptions
from orchestrator.logs.shipping.pace import Pace
from orchestrator.logs.shipping.stream import Delivery, Stream
from orchestrator.logs.shipping.target import Target
from orchestrator.logs.spool.folder import orphans
from orchestrator.logs.spool.inventory import DEAD_LETTERS, STATUS
from orchestrator.logs.spool.writer import Spool

_POLL_SECONDS = 0.1
_STOP_SECONDS = 1.0  # for threads in the middle of a request; what they send is sent again next time


class Shipper:
    """Ships the spool of this process, and those of processes of this host that have ended.

    Without a spool of its own it only drains what others left. `say` gets one sentence when trouble begins
    and one when it is over.
    """

    def __init__(
        self,
        root: Path,
        target: Target,
        *,
        spool: Spool | None = None,
        options: ShipperOptions | None = None,
        say: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self._root = root
        self._target = target
        self._spool = spool
        self._options = options or ShipperOptions()
        self._say = say
        self.counts = Counts()
        name = spool.folder.producer if spool is not None else f"drain-{os.getpid()}"
        self._pace = Pace(self._options.in_flight)
        self._courier = Courier(
            target, self._pace, self.counts, DeadLetters(root.parent / DEAD_LETTERS, name)
        )
        self._streams = [Stream(spool.folder, spool)] if spool is not None else []
        self._guard = threading.Lock()  # of the streams
        self._idle_since = time.monotonic()
        self._closing = threading.Event()
        self._drained = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"log-shipper-{number}", daemon=True)
            for number in range(self._options.in_flight)
        ]
        self._housekeeper = threading.Thread(target=self._keep_house, name="log-shipper", daemon=True)
        self._told = ""
        self._disk_trouble = ""  # why a spool cannot be read
        self._has_looked = False  # for what others left
        self._pid = os.getpid()

    def start(self) -> None:
        """Begin to ship; returns at once."""
        self._housekeeper.start()
        for thread in self._threads:
            thread.start()

    def close(self, timeout: float | None = None) -> bool:
        """Ship what is there by now; False when some is left after `timeout` seconds, for the next time.

        In a forked child, which has none of the threads: nothing at all.
        """
        if os.getpid() != self._pid:
            return False
        deadline = time.monotonic() + (self._options.flush_seconds if timeout is None else timeout)
        self._closing.set()
        self._pace.hurry()
        drained = self._drained.wait(max(0.0, deadline - time.monotonic()))
        self._pace.stop()
        self._drained.set()
        limit = time.monotonic() + _STOP_SECONDS
        for thread in (*self._threads, self._housekeeper):
            thread.join(max(0.0, limit - time.monotonic()))
        self._save()
        for stream in self._streams:
            stream.close()
        self._target.close()
        return drained

    @property
    def trouble(self) -> str:
        """Why logs stay in a spool; empty while they do not."""
        return self._pace.trouble or self._disk_trouble

    def status(self) -> dict[str, Any]:
        """What others may know: trouble, counts, and how far behind it is."""
        return {
            "pid": os.getpid(),
            "time": time.time(),
            "trouble": self.trouble,
            "paused": self._pace.is_paused,
            **self.counts.document(),
            "spooled": 0 if self._spool is None else self._spool.spooled,
            "dropped": 0 if self._spool is None else self._spool.dropped,
            "damaged_bytes": sum(stream.damaged_bytes for stream in self._streams),
        }

    # ------------------------------------------------------------------ threads that send
    def _work(self) -> None:
        if not self._courier.prepare():
            return
        while (taken := self._next()) is not None:
            stream, delivery = taken
            if not self._courier.deliver(delivery.batch.records):
                return
            with self._guard:
                stream.done(delivery)

    def _next(self) -> tuple[Stream, Delivery] | None:
        while not self._drained.is_set():
            with self._guard:
                taken = self._take()
                if taken is not None:
                    return taken
                if (
                    self._closing.is_set()
                    and self._has_looked
                    and all(stream.is_empty() for stream in self._streams)
                ):
                    self._drained.set()
                    return None
            self._closing.wait(_POLL_SECONDS)
            if self._closing.is_set():
                self._drained.wait(_POLL_SECONDS / 10)
        return None

    def _take(self) -> tuple[Stream, Delivery] | None:
        now, options = time.monotonic(), self._options
        partial = self._closing.is_set() or now - self._idle_since >= options.max_seconds
        trouble = ""
        for stream in self._streams:
            try:
                delivery = stream.take(options.max_actions, options.max_bytes, partial=partial)
            except Exception as error:  # noqa: BLE001 - the others go on, and this one when it can be read again
                trouble = f"{stream.folder.path} cannot be read: {error}"
                continue
            if delivery is not None:
                self._streams.append(self._streams.pop(self._streams.index(stream)))  # each in its turn
                # What others left says nothing of ours: it would have it wait for as long as that takes.
                if stream.folder.path == self._own() and len(delivery.batch.records) < options.max_actions:
                    self._idle_since = now
                return stream, delivery
        self._disk_trouble = trouble
        return None

    # ------------------------------------------------------------------ the thread that keeps house
    def _keep_house(self) -> None:
        adopted = -self._options.adopt_seconds
        while not self._drained.is_set():
            try:
                is_due = time.monotonic() - adopted >= self._options.adopt_seconds
                if not self._has_looked or (is_due and not self._closing.is_set()):
                    adopted = time.monotonic()
                    self.adopt()
                self._save()
                self._tell()
            except OSError:  # a full disk: everything goes on, and is sent twice after a crash
                pass
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round may work
                self._disk_trouble = f"a fault of the program: {type(error).__name__}: {error}"
            self._drained.wait(self._options.status_seconds)

    def adopt(self) -> None:
        """Take over the spools of processes that have ended, as is done every now and then anyway."""
        held = {stream.folder.path for stream in self._streams}
        if self._spool is not None:
            held.add(self._spool.folder.path)
        try:
            for folder in orphans(self._root, held):
                with self._guard:
                    self._streams.append(Stream(folder))
        finally:
            self._has_looked = True

    def _save(self) -> None:
        with self._guard:
            for stream in list(self._streams):
                with contextlib.suppress(OSError):  # a full disk: this one is sent again after a crash
                    stream.save()
                if stream.folder.path != self._own() and stream.is_empty():
                    self._streams.remove(stream)
                    stream.folder.remove()

    def _own(self) -> Path | None:
        return None if self._spool is None else self._spool.folder.path

    def _tell(self) -> None:
        trouble = self.trouble
        if bool(trouble) != bool(self._told):
            with contextlib.suppress(LogsError):
                self._say(f"logs stay in the spool: {trouble}" if trouble else "logs are shipped again")
        self._told = trouble
        if self._spool is not None:
            write_json(self._spool.folder.path / STATUS, self.status())
