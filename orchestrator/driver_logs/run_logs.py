"""Collects the logs of one run directory, from the first byte to the last one after the driver's end."""

import time
from collections.abc import Mapping
from pathlib import Path

from loguru import logger

from orchestrator.driver_logs.documents import Documents
from orchestrator.driver_logs.facts import Plan, own_fields, read_application, read_plan, read_secrets
from orchestrator.driver_logs.folders import LogFolder
from orchestrator.driver_logs.positions import Chunk, Positions
from orchestrator.driver_logs.read_times import ReadTimes
from orchestrator.driver_logs.stream import LogTail, ParsedChunk
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.spool.writer import Spool
from spark_runner.protocol.process import is_alive
from spark_runner.runners.run_directory import LOG_STREAMS, RunDirectory, log_owner

_NEWS_SECONDS = 0.5  # between reads while there is output
_QUIET_SECONDS = 1.0  # between reads while there is none
_STALE_SECONDS = 30.0  # between reads after an hour without output: its end may be unrecorded
_STALE_AFTER_SECONDS = 3600.0
_FULL_SECONDS = 5.0  # until the next attempt with a full spool or disk
_SETTLE_SECONDS = 10.0  # after an end that no shim has recorded: surviving processes may still write


class SpoolFull(Exception):
    """The spool is full; the rest stays in the log of the driver."""


class RunLogs:
    """Appends the output of one run to the spool; its `Positions` record the progress."""

    def __init__(
        self, folder: LogFolder, directory: Path, *, spool: Spool, days: Days, redactor: Redactor
    ) -> None:
        self.directory = directory
        self.due = 0.0  # monotonic
        self._folder, self._spool, self._days, self._redactor = folder, spool, days, redactor
        self._run_directory = RunDirectory(directory)
        self._positions, self._times = Positions(directory), ReadTimes(directory)
        self._streams = [
            LogTail(
                directory / f"{name}.log",
                name,
                self._positions.chunk(name),
                cut_at=self._cut_at,
                sliding=folder.sliding_bytes,
            )
            for name in LOG_STREAMS
        ]
        self._identity = f"{directory.parent.name}-{directory.name}-{folder.mark}"
        self._documents = dict[str, Documents]()
        self._fields = dict[str, str | int]()
        self._application = ""
        self._news_at = time.monotonic()

    @property
    def is_done(self) -> bool:
        """Whether the driver has ended and all its output is appended."""
        return self._positions.is_done

    def collect(self, *, flush: bool = False) -> bool:
        """Append new output; whether there is more. `flush`: do not wait for lines that may belong to it."""
        if self.is_done:
            return False
        try:
            return self._collect(flush=flush)
        except SpoolFull:
            self.due = time.monotonic() + _FULL_SECONDS
        except OSError as error:
            if not self.directory.exists():
                self._positions.is_done = True  # removed after the end of the job
                return False
            logger.warning("the logs in {} cannot be collected: {}", self.directory, error)
            self.due = time.monotonic() + _FULL_SECONDS
        except Exception:  # noqa: BLE001 - nothing that one driver writes may stop the logs of the others
            logger.exception("the logs in {} cannot be collected", self.directory)
            self.due = time.monotonic() + _FULL_SECONDS
        return False

    def _collect(self, *, flush: bool) -> bool:
        # Checked before the logs are read, so that all output before the end is read.
        ended = self._has_ended()
        more = news = False
        for stream in self._streams:
            found = self._take(stream, ended=ended, flush=flush)
            news |= found is not None
            more |= found is not None and found.is_full
        self._positions.save()
        now = time.monotonic()
        self._news_at = now if news else self._news_at
        if ended and not more and not any(stream.is_interrupted for stream in self._streams):
            self._spool.sync()  # the records must be durable before the mark
            self._positions.finish()
            return False
        self.due = now if more else now + self._pause(now - self._news_at)
        return more

    def _pause(self, quiet: float) -> float:
        if quiet < _QUIET_SECONDS:
            return _NEWS_SECONDS
        return _QUIET_SECONDS if quiet < _STALE_AFTER_SECONDS else _STALE_SECONDS

    def _take(self, stream: LogTail, *, ended: bool, flush: bool) -> ParsedChunk | None:
        """Append one chunk of a stream and return it; None if there is none."""
        if stream.is_interrupted:
            again = stream.interrupted(ended=ended)
            if again is None:
                return None
            self._append(stream, *again)
            return again[0]
        found = stream.next(ended=ended, flush=flush)
        if found is None:
            return None
        if found.lost_bytes:
            logger.warning(
                "{:,} bytes of {}.log in {} were cut before they were collected",
                found.lost_bytes,
                stream.name,
                self.directory,
            )
        now = time.time()
        try:
            self._positions.announce(stream.name, Chunk(found.offset, found.upto, now))
        except OSError:
            stream.rewind()
            raise
        if stream.name != "spark":  # its events have times
            self._times.note(stream.name, found.upto, now)
        self._append(stream, found, now)
        return found

    def _append(self, stream: LogTail, found: ParsedChunk, epoch: float) -> None:
        records = found.records
        appended = self._spool.append_many(self._documents_of(stream.name).build(records, epoch))
        if appended < len(records):
            rest = Chunk(records[appended].offset, found.upto, epoch)  # collected later, as after a crash
            stream.resume(rest)
            self._positions.announce(stream.name, rest)
            raise SpoolFull
        stream.at = found.upto
        self._positions.commit(stream.name, found.upto)

    def _cut_at(self, data: bytes, size: int) -> int:
        self._redactor.add_of_job(read_secrets(self._plan_directory))  # it may be the first record
        return self._redactor.cut_at(data, size)

    # ------------------------------------------------------------------ fields of its documents
    def _documents_of(self, stream: str) -> Documents:
        if not self._fields:
            plan = self._plan()
            self._redactor.add_of_job(read_secrets(self._plan_directory))
            is_submit = plan.is_handed_over and (self.directory / "shim.json").exists()
            _, executor = log_owner(self.directory.name)
            dataset = "spark.executor" if executor else "spark.submit" if is_submit else "spark.driver"
            self._fields = {**own_fields(dataset), "spark.executor_id": executor or "driver", **plan.fields}
            self._documents = {
                name: Documents(
                    self._days,
                    self._redactor,
                    name,
                    f"{self._identity}{name}",
                    self._fields,
                    is_mixed=self._folder.is_mixed,
                )
                for name in LOG_STREAMS
            }
        if not self._application and (found := read_application(self.directory)):
            self._application = found
            self._name({"spark.application_id": found})
        return self._documents[stream]

    @property
    def _plan_directory(self) -> Path:
        incarnation, _ = log_owner(self.directory.name)
        return self._folder.plans / self.directory.parent.name / incarnation

    def _plan(self) -> Plan:
        return read_plan(self._plan_directory, self.directory.parent.name)

    def _name(self, fields: Mapping[str, str | int]) -> None:
        self._fields |= fields
        for name, documents in self._documents.items():
            documents.name({"log.stream": name, **self._fields})

    # ------------------------------------------------------------------ end of the run
    def _has_ended(self) -> bool:
        """Whether no process writes these logs any more."""
        if not self._folder.has_ends:
            return False
        if (self.directory / "exit.json").exists():
            # A shim writes it after the last process has ended; a driver on a node just before its own end.
            return self._folder.has_shims or self._is_settled()
        return self._folder.has_shims and self._is_settled() and not self._may_run()

    def _is_settled(self) -> bool:
        return time.monotonic() - self._news_at > _SETTLE_SECONDS

    def _may_run(self) -> bool:
        try:
            record = self._run_directory.shim()
        except (OSError, ValueError, KeyError, TypeError):
            return True
        if record is None:  # it runs on a node of the master, and its first output may come late
            return self._run_directory.is_young() or self._plan().is_handed_over
        return record.shim.is_out_of_sight or is_alive(record.shim) or is_alive(record.driver)
