"""Reads the logs of one run page by page, in the order of time, with secrets masked.

A page depends on the files and on the cursor alone, so a reader may continue where another one has ended.
"""

import heapq
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from orchestrator.driver_logs.facts import Plan, own_fields, read_application, read_plan, read_secrets
from orchestrator.driver_logs.line_records import Entry, LineRecords
from orchestrator.driver_logs.read_times import TimesOfLines
from orchestrator.driver_logs.records import ParsedRecord, records
from orchestrator.driver_logs.stream import CHUNK_BYTES, CutLog, LogSlice
from orchestrator.logs.reading.query import ALL, DRIVER, LogQuery, LogRecord
from orchestrator.logs.record.redaction import CUT_BEYOND_BYTES, REDACTOR
from spark_runner.protocol.log_limit import OLDER
from spark_runner.runners.base import LogFile
from spark_runner.runners.run_directory import run_directory

_MAX_SCANNED_BYTES = 16 << 20  # for one page, also if nothing matches
_LEAST_CHUNK_BYTES = 64 * 1024  # of one log of many, which are in memory together
_RECORD_BYTES = 200  # of a record besides its text
_HOLD_SECONDS = 0.4  # later lines may belong to the last one, such as a trace
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "
_MAX_KEY_BYTES = 20_000  # the maximum length that the pattern of the redactor matches

Cursor = Mapping[str, int]
"""The position behind the last byte that was read, of each log by its key."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some records, and the position behind them. `fields` are those that all records share."""

    records: Sequence[LogRecord] = ()
    cursor: Cursor = field(default_factory=dict)
    is_full: bool = False  # there may be more to read at once
    fields: Mapping[str, Any] = field(default_factory=dict)


class RunReader:
    """Reads `logs`: those of the driver, of one executor, or all. `state_dir` has the plan of the run."""

    def __init__(self, run: str, logs: Sequence[LogFile], state_dir: Path) -> None:
        self._run = run
        self._logs = {_key(log): replace(log, path=_present(log.path)) for log in logs}
        plans = [run_directory(state_dir, run, log.incarnation).path for log in logs]
        for folder in dict.fromkeys((*plans, *(log.path.parent for log in logs))):
            REDACTOR.add_of_job(read_secrets(folder))
        self._plans = plans
        directory = next((path for path in reversed(plans) if (path / "plan.json").exists()), None)
        plan = Plan({}, is_handed_over=False) if directory is None else _plan_of(directory, run)
        self._is_handed_over = plan.is_handed_over
        dataset = "spark.executor" if logs and logs[-1].executor else "spark.driver"
        self._fields = {**own_fields(dataset), **plan.fields}
        if directory is not None and (application := read_application(directory)):
            self._fields["spark.application_id"] = application

    def page(self, cursor: Cursor, query: LogQuery, *, flush: bool, max_bytes: int) -> LogPage:
        """The next records that match, about `max_bytes` of text.

        `flush`: no more output is expected, so the last lines are complete. Without it, they are held while
        later lines may belong to them.
        """
        size = max(_LEAST_CHUNK_BYTES, min(CHUNK_BYTES, _MAX_SCANNED_BYTES // max(1, len(self._logs))))
        open_log = partial(
            _OpenLog, run=self._run, query=query, flush=flush, chunk_bytes=size, budget=_Budget()
        )
        logs = [
            open_log(log, cursor.get(key, 0), is_submit=self._is_submit(log))
            for key, log in self._logs.items()
        ]
        found, size, is_full = list[LogRecord](), 0, False
        try:
            for _, _, end, record, log in heapq.merge(
                *(log.entries(index) for index, log in enumerate(logs))
            ):
                if size >= max_bytes:
                    is_full = True
                    break
                found.append(record)
                size += _size_of(record)
                log.at = max(log.at, end)
        except _Spent:
            is_full = True
        positions = {key: log.at for key, log in zip(self._logs, logs, strict=True)}
        return LogPage(found, {**cursor, **positions}, is_full, self._fields)

    def _is_submit(self, log: LogFile) -> bool:
        """Whether this is a log of the program that submits the driver to a cluster."""
        return (
            self._is_handed_over
            and log.path.parent in self._plans
            and (log.path.parent / "shim.json").exists()
        )


class _Spent(Exception):
    """A page has looked at all the bytes that it may look at."""


class _Budget:
    def __init__(self) -> None:
        self._left = _MAX_SCANNED_BYTES

    def spend(self, size: int, *, is_first: bool) -> None:
        """Count bytes of a log. Its first ones may always be read: a page without progress never ends."""
        if self._left <= 0 and not is_first:
            raise _Spent
        self._left -= size


class _OpenLog:
    """One log while a page of it is read; `at` is where the next page begins."""

    def __init__(
        self,
        log: LogFile,
        at: int,
        *,
        is_submit: bool,
        run: str,
        query: LogQuery,
        flush: bool,
        chunk_bytes: int,
        budget: _Budget,
    ) -> None:
        self.at = at
        self._chunk_bytes = chunk_bytes
        self._log, self._query, self._flush, self._budget = CutLog(log.path), query, flush, budget
        self._is_quiet, changed = _is_quiet(log.path)
        times = TimesOfLines(log.path.parent, log.stream, changed)
        self._records = LineRecords(log, run, times, query, REDACTOR, is_submit=is_submit)
        self._latest = 0.0  # the order of a log is kept, whatever its times are

    def entries(self, index: int) -> "Iterator[tuple[float, int, int, LogRecord, _OpenLog]]":
        """The matching records, each with its end, and with what orders it among those of other logs."""
        for entry in self._all():
            if entry.record is not None and self._query.matches_rest(entry.record):
                self._latest = max(self._latest, entry.time)
                yield self._latest, index, entry.end, entry.record, self
            self.at = max(self.at, entry.end)

    def _all(self) -> Iterator[Entry]:
        offset, size, is_first = self.at, self._chunk_bytes, True
        while True:
            part = self._log.read(offset, size, ended=self._flush)
            if part is None:  # it is being cut
                return
            begin, end = self._log.bounds()
            if not part.data and end < offset:  # a copy that was made again
                self.at = offset = begin
                continue
            is_full = len(part.data) >= size
            found = self._parsed(part, is_full=is_full)
            if not found and is_full and size < CHUNK_BYTES:
                size = CHUNK_BYTES
                continue
            is_torn = part.offset > offset
            if is_torn and part.data:
                yield self._records.notice(part.offset, part.offset - offset)
            if not found:
                return
            self._budget.spend(len(part.data), is_first=is_first)
            yield from self._records.build(found, follows_cut=is_torn)
            offset, size, is_first = found[-1].offset + len(found[-1].data), self._chunk_bytes, False

    def _parsed(self, part: LogSlice, *, is_full: bool) -> list[ParsedRecord]:
        if part.is_torn or (self._flush and not is_full):
            return records(part.data, part.offset, whole=True)
        if self._is_quiet and not is_full:
            end = _open_key(part.data)
            lines = part.data[: part.data.rfind(b"\n") + 1 if end is None else end]
            return records(lines, part.offset, whole=True)
        found = records(part.data, part.offset, whole=False)
        if found or len(part.data) < CHUNK_BYTES:
            return found
        # A longer record becomes several.
        cut = REDACTOR.cut_at(part.data, len(part.data) - CUT_BEYOND_BYTES)
        return records(part.data[:cut], part.offset, whole=True)


def of_executor(logs: Iterable[LogFile], executor: str) -> list[LogFile]:
    """The logs of one executor, of the driver, or all."""
    wanted = "" if executor == DRIVER else executor
    return [log for log in logs if executor == ALL or log.executor == wanted]


def _key(log: LogFile) -> str:
    """The key of a log in a cursor; the older part of a log is the same one.

    The log of a program that submits a driver, and the copy of the driver's log, are in different folders.
    """
    return f"{log.path.parents[2].name}/{log.incarnation}/{log.executor}/{log.stream}"


@lru_cache(maxsize=64)
def _plan_of(directory: Path, run: str) -> Plan:
    """The plan of a run, which is written once: a script in it may be long."""
    return read_plan(directory, run)


def _present(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(OLDER))


def _is_quiet(path: Path) -> tuple[bool, float]:
    try:
        changed = path.stat().st_mtime
    except OSError:
        return True, time.time()
    return abs(time.time() - changed) >= _HOLD_SECONDS, changed


def _size_of(record: LogRecord) -> int:
    return _RECORD_BYTES + len(record.message) + len(record.text("error.stack_trace"))


def _open_key(data: bytes) -> int | None:
    """The start of the line in which an unfinished private key begins: a key is masked as a whole."""
    begin, whole = data.rfind(_KEY_BEGINS), data.rfind(b"\n")
    if begin < 0 or len(data) - begin > _MAX_KEY_BYTES or data.find(_KEY_ENDS, begin, whole) >= 0:
        return None
    line = data[begin:].partition(b"\n")[0]
    return data.rfind(b"\n", 0, begin) + 1 if b"PRIVATE KEY" in line else None
