"""Makes log records of the lines of one log: with the fields that the collector gives their documents."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from orchestrator.driver_logs.documents import LEVELS, level_in, naming_line
from orchestrator.driver_logs.read_times import TimesOfLines
from orchestrator.driver_logs.records import ParsedRecord, RecordKind
from orchestrator.logs.reading.origin import Origin
from orchestrator.logs.reading.query import LogQuery, LogRecord, levels_from
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.record.text import MAX_FIELD, MAX_MESSAGE, MAX_TRACE
from spark_runner.runners.base import LogFile
from spark_runner.runners.spark_log import SparkEvent, level_of_event, pieces, task_in

SUBMIT = "spark.submit"
PIECE_BYTES = 32 * 1024  # a longer line, or trace, becomes several records
_FIRST_TIME, _LAST_TIME = -62_135_596_800.0, 253_402_300_799.0  # of a calendar, epoch seconds
_UNLIMITED = 1 << 40  # the length is limited by PIECE_BYTES
_CUT_MARK = "… [the rest was cut]"


class Entry(NamedTuple):
    """A record and its place in the log; without a record, bytes that the query excludes."""

    begin: int
    end: int
    time: float  # epoch, seconds
    record: LogRecord | None


class LineRecords:
    """Makes records of one log; `query` tells which events of Spark need not be read.

    `is_submit`: it is the log of a program that submits a driver to a cluster.
    """

    def __init__(
        self,
        log: LogFile,
        run: str,
        times: TimesOfLines,
        query: LogQuery,
        redactor: Redactor,
        *,
        is_submit: bool,
    ) -> None:
        self._stream, self._times, self._redactor = log.stream, times, redactor
        self._identity = f"{run}-{log.incarnation}-{log.stream}"
        self._fields: dict[str, Any] = {
            "log.stream": log.stream,
            "spark.executor_id": log.executor or "driver",
        }
        if is_submit:
            self._fields["event.dataset"] = SUBMIT
        self._is_printed = log.stream == "stdout" and not log.is_mixed
        self._excluded = {name for name, (level, _) in LEVELS.items() if _is_excluded(query, level)}

    def build(self, parsed: Sequence[ParsedRecord], *, follows_cut: bool) -> Iterator[Entry]:
        """The entries of consecutive records. `follows_cut`: the beginning of the first one is missing."""
        text = b"".join(each.data for each in parsed).decode("utf-8", "surrogateescape")
        self._fit = self._redactor.fit_for(text)
        for each in parsed:
            end = each.offset + len(each.data)
            if follows_cut and self._is_end_of_event(each.data):
                yield Entry(each.offset, end, self._times.at(each.offset), None)
            elif self._is_printed:
                yield from self._of_text(each)
            elif level_of_event(each.data) in self._excluded:
                yield Entry(each.offset, end, self._times.at(each.offset), None)
            else:
                yield from self._of_line(each)
            follows_cut = False

    def notice(self, offset: int, count: int) -> Entry:
        """The entry that stands for bytes that are gone."""
        words = f"… {count:,} bytes before this line were cut, because the log was too long"
        time = self._times.at(offset)
        return Entry(offset, offset, time, self._record(offset, time, "warning", words))

    def _is_end_of_event(self, data: bytes) -> bool:
        is_event = bool(level_of_event(data))
        return not self._is_printed and not is_event and data.rstrip().endswith(b'"}')

    # ------------------------------------------------------------------ lines
    def _of_line(self, each: ParsedRecord) -> Iterator[Entry]:
        first, below, rest = (
            each.data.partition(b"\n") if each.kind is RecordKind.JAVA else (each.data, b"", b"")
        )
        found = list(pieces(first + below))
        if len(found) == 1 and isinstance(found[0][1], bytes):
            yield from self._of_text(each)
            return
        if not found:  # the first letters of an event
            yield Entry(each.offset, each.offset + len(each.data), self._times.at(each.offset), None)
        for number, (at, piece) in enumerate(found):
            begin = each.offset + at
            end = each.offset + (found[number + 1][0] if number + 1 < len(found) else len(first + below))
            if isinstance(piece, SparkEvent):
                yield self._of_event(begin, end, piece)
            else:
                yield from self._of_text(ParsedRecord(begin, piece, RecordKind.LINE))
        if rest:
            yield from self._of_text(ParsedRecord(each.offset + len(first + below), rest, RecordKind.LINE))

    def _of_event(self, begin: int, end: int, event: SparkEvent) -> Entry:
        level = LEVELS.get(event.level, LEVELS["INFO"])[0]
        time = event.time.timestamp() or self._times.at(begin)
        fit = self._redactor.fit  # the text of the line may hide a secret by its escapes
        message = fit(event.message, MAX_MESSAGE) + (_CUT_MARK if event.is_cut else "")
        more: dict[str, Any] = {
            "log.logger": fit(event.logger, MAX_FIELD),
            "process.thread.name": fit(event.thread, MAX_FIELD),
        }
        if event.stage is not None and event.task is not None:
            more |= {"spark.stage_id": event.stage, "spark.task_id": event.task}
        if event.trace:
            more["error.stack_trace"] = fit(event.trace, MAX_TRACE)
        return Entry(begin, end, time, self._record(begin, time, level, message, **more))

    def _of_text(self, each: ParsedRecord) -> Iterator[Entry]:
        begin, data = each.offset, each.data
        while len(data) > PIECE_BYTES:
            size = self._redactor.cut_at(data, PIECE_BYTES)
            yield self._of_piece(begin, data[:size], each.kind)
            begin, data = begin + size, data[size:]
        yield self._of_piece(begin, data, each.kind)

    def _of_piece(self, begin: int, data: bytes, kind: RecordKind) -> Entry:
        time = self._times.at(begin)
        text = self._fit(data.decode("utf-8", "surrogateescape"), _UNLIMITED)
        is_part = len(data) >= PIECE_BYTES // 2 and not data.endswith(b"\n")
        more: dict[str, Any] = {"log.part": True} if is_part else {}
        if kind is not RecordKind.LINE:
            level = "info" if self._is_printed else "error"
            lines = text.splitlines() or [""]
            line = lines[0] if kind is RecordKind.JAVA else naming_line(lines)
            record = self._record(begin, time, level, line, **more, **{"error.stack_trace": text})
            return Entry(begin, begin + len(data), time, record)
        text = text.rstrip("\r\n")
        level = "info" if self._is_printed else level_in(text)[0]
        if not self._is_printed and (task := task_in(text)):
            more |= {"spark.stage_id": task[0], "spark.task_id": task[1]}
        return Entry(begin, begin + len(data), time, self._record(begin, time, level, text, **more))

    def _record(self, offset: int, time: float, level: str, message: str, **more: Any) -> LogRecord:
        return LogRecord(
            f"{self._identity}-{offset}",
            {
                "@timestamp": _iso(time),
                "log.level": level,
                "message": message,
                **self._fields,
                "event.sequence": offset,
                **more,
            },
        )


def _is_excluded(query: LogQuery, level: str) -> bool:
    if query.origins and Origin.SPARK not in query.origins:
        return True
    return any(least and level not in levels_from(least) for least in (query.level, query.spark_level))


@lru_cache(maxsize=8)
def _iso(epoch: float) -> str:
    epoch = min(max(_FIRST_TIME, epoch), _LAST_TIME)  # a driver may write any number; NaN becomes the first
    return f"{datetime.fromtimestamp(epoch, UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
