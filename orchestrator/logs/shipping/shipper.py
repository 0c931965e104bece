"""Ships spools to a target: batches in several threads, and checkpoints after acknowledged batches."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.logs.errors import LogsError
from orchestrator.logs.files import write_json
from orchestrator.logs.shipping.delivery import DeadLetters, InFlightBatch, Sender, SpoolStream
from orchestrator.logs.shipping.pace import Pace
from orchestrator.logs.shipping.target import Counts, LogTarget, ShipperOptions
from orchestrator.logs.spool.folder import DEAD_LETTERS, STATUS, orphans
from orchestrator.logs.spool.writer import Spool

_POLL_SECONDS = 0.1
_STOP_SECONDS = 1.0  # for threads that wait for a response; another process sends their batch again


class Shipper:
    """Ships the spool of this process and those of processes of this host that have ended.

    Without `spool` it only drains those of others. `report` receives one message when shipping fails and one
    when it works again.
    """

    def __init__(
        self,
        root: Path,
        target: LogTarget,
        *,
        spool: Spool | None = None,
        options: ShipperOptions | None = None,
        report: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self._root = root
        self._target = target
        self._spool = spool
        self._options = options or ShipperOptions()
        self._report = report
        self.counts = Counts()
        name = spool.folder.producer if spool is not None else f"drain-{os.getpid()}"
        self._pace = Pace(self._options.in_flight)
        self._sender = Sender(target, self._pace, self.counts, DeadLetters(root.parent / DEAD_LETTERS, name))
        self._streams = [SpoolStream(spool.folder, spool)] if spool is not None else []
        self._guard = threading.Lock()  # of the streams
        self._idle_since = time.monotonic()
        self._closing = threading.Event()
        self._drained = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"log-shipper-{number}", daemon=True)
            for number in range(self._options.in_flight)
        ]
        self._housekeeper = threading.Thread(target=self._run_housekeeping, name="log-shipper", daemon=True)
        self._reported = ""
        self._disk_trouble = ""  # why a spool cannot be read; empty if it can
        self._has_adopted = False  # spools of others, at least once
        self._pid = os.getpid()

    def start(self) -> None:
        """Start the threads."""
        self._housekeeper.start()
        for thread in self._threads:
            thread.start()

    def close(self, timeout: float | None = None) -> bool:
        """Ship the records that exist now; False if some are left after `timeout` seconds.

        Another process ships the rest. Does nothing in a forked child, which has none of the threads.
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
        """Why logs stay in a spool; empty if they do not."""
        return self._pace.trouble or self._disk_trouble

    def status(self) -> dict[str, Any]:
        """The state for status files: trouble, counters, spooled and dropped records."""
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

    # ------------------------------------------------------------------ sending threads
    def _work(self) -> None:
        if not self._sender.prepare():
            return
        while (taken := self._next()) is not None:
            stream, batch = taken
            if not self._sender.deliver(batch.content.records):
                return
            with self._guard:
                stream.done(batch)

    def _next(self) -> tuple[SpoolStream, InFlightBatch] | None:
        while not self._drained.is_set():
            with self._guard:
                taken = self._take()
                if taken is not None:
                    return taken
                if (
                    self._closing.is_set()
                    and self._has_adopted
                    and all(stream.is_empty() for stream in self._streams)
                ):
                    self._drained.set()
                    return None
            self._closing.wait(_POLL_SECONDS)
            if self._closing.is_set():
                self._drained.wait(_POLL_SECONDS / 10)
        return None

    def _take(self) -> tuple[SpoolStream, InFlightBatch] | None:
        now, options = time.monotonic(), self._options
        partial = self._closing.is_set() or now - self._idle_since >= options.max_seconds
        trouble = ""
        for stream in self._streams:
            try:
                batch = stream.take(options.max_actions, options.max_bytes, partial=partial)
            except Exception as error:  # noqa: BLE001 - the other spools are shipped; this one is retried
                trouble = f"{stream.folder.path} cannot be read: {error}"
                continue
            if batch is not None:
                self._streams.append(self._streams.pop(self._streams.index(stream)))  # round robin
                # Only our own spool counts: a backlog of others would delay our incomplete batches.
                if stream.folder.path == self._own() and len(batch.content.records) < options.max_actions:
                    self._idle_since = now
                return stream, batch
        self._disk_trouble = trouble
        return None

    # ------------------------------------------------------------------ housekeeping thread
    def _run_housekeeping(self) -> None:
        adopted = -self._options.adopt_seconds
        while not self._drained.is_set():
            try:
                is_due = time.monotonic() - adopted >= self._options.adopt_seconds
                if not self._has_adopted or (is_due and not self._closing.is_set()):
                    adopted = time.monotonic()
                    self.adopt()
                self._save()
                self._report_changes()
            except OSError:  # a full disk: shipping continues; after a crash records are sent twice
                pass
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                self._disk_trouble = f"internal error: {type(error).__name__}: {error}"
            self._drained.wait(self._options.status_seconds)

    def adopt(self) -> None:
        """Adopt the spools of processes that have ended; the housekeeping thread does so periodically."""
        held = {stream.folder.path for stream in self._streams}
        if self._spool is not None:
            held.add(self._spool.folder.path)
        try:
            for folder in orphans(self._root, held):
                with self._guard:
                    self._streams.append(SpoolStream(folder))
        finally:
            self._has_adopted = True

    def _save(self) -> None:
        with self._guard:
            for stream in list(self._streams):
                with contextlib.suppress(OSError):  # a full disk: after a crash its records are sent twice
                    stream.save()
                if stream.folder.path != self._own() and stream.is_empty():
                    self._streams.remove(stream)
                    stream.folder.remove()

    def _own(self) -> Path | None:
        return None if self._spool is None else self._spool.folder.path

    def _report_changes(self) -> None:
        trouble = self.trouble
        if bool(trouble) != bool(self._reported):
            with contextlib.suppress(LogsError):
                self._report(f"logs stay in the spool: {trouble}" if trouble else "logs are shipped again")
        self._reported = trouble
        if self._spool is not None:
            write_json(self._spool.folder.path / STATUS, self.status())
