"""Builds documents from records: ECS with dotted names, like those of the orchestrator's own logs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator.driver_logs.records import ParsedRecord, RecordKind
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.record.text import MAX_FIELD, MAX_MESSAGE, MAX_TRACE, cut, encoded, quoted
from orchestrator.logs.spool.segments import create_line
from spark_runner.runners.spark_log import SparkEvent, spark_event, task_in

LEVELS = {  # names in output: our name, and the number for the spool
    "TRACE": ("trace", 5),
    "DEBUG": ("debug", 10),
    "INFO": ("info", 20),
    "WARN": ("warning", 30),
    "WARNING": ("warning", 30),
    "ERROR": ("error", 40),
    "SEVERE": ("error", 40),
    "FATAL": ("critical", 50),
    "CRITICAL": ("critical", 50),
}
_INFO, _ERROR = LEVELS["INFO"], LEVELS["ERROR"]
_LEVEL_NAME = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL)\b")
_MAX_AWAY_SECONDS = 31 * 86_400.0  # of an event: each day has an index, and calendars end
_LEVEL_WITHIN = 80  # characters: after a time and a name, before the message
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.$]*)(?:: (?P<message>.*))?")
_THREAD = re.compile(r'Exception in thread "[^"]*" ')


class Documents:
    """Builds the documents of one stream of one run, in the format of the spool.

    `identity` and the offset of a record are the id of its document.
    `is_mixed`: printed output and Spark's log are one stream, as in the log of a pod.
    """

    def __init__(
        self,
        days: Days,
        redactor: Redactor,
        stream: str,
        identity: str,
        fields: Mapping[str, str | int],
        *,
        is_mixed: bool = False,
    ) -> None:
        self._days, self._redactor, self._stream = days, redactor, stream
        self._identity = identity
        # In other streams a line may be an event of Spark, or name a level.
        self._is_printed = stream == "stdout" and not is_mixed
        self._fit: Callable[[str, int], str] = redactor.fit
        self._epoch, self._head, self._day = -1.0, "", ""
        self.name({"log.stream": stream, **fields})

    def name(self, fields: Mapping[str, str | int]) -> None:
        """Set the fields of all following documents."""
        self._tail = "".join(_field(name, value) for name, value in fields.items() if value != "") + "}\n"

    def build(self, records: Sequence[ParsedRecord], epoch: float) -> Iterator[tuple[bytes, int]]:
        """Yield documents with levels. `epoch`, the time when they were read, selects the daily index."""
        # In an event of Spark a secret may contain characters that JSON has escaped.
        redactor = self._redactor
        self._fit = redactor.fit_for(_text_of(records)) if self._is_printed else redactor.fit
        for record in records:
            yield self._built(record, epoch)

    def _built(self, record: ParsedRecord, epoch: float) -> tuple[bytes, int]:
        if not self._is_printed and (event := spark_event(record.data)) is not None:
            return self._of_event(record.offset, event, epoch)
        text = record.data.decode("utf-8", "replace")
        if record.kind is RecordKind.LINE:
            text = text.rstrip("\r\n")
            if self._is_printed:
                return self._document(record.offset, epoch, _INFO, text, "")
            return self._document(record.offset, epoch, level_in(text), text, _task(task_in(text)))
        level = _INFO if self._is_printed else _ERROR
        return self._of_trace(record, epoch, level, text)

    def _of_event(self, offset: int, event: SparkEvent, epoch: float) -> tuple[bytes, int]:
        more = [self._named("log.logger", event.logger), self._named("process.thread.name", event.thread)]
        if event.stage is not None and event.task is not None:
            more.append(_task((event.stage, event.task)))
        if event.trace:
            more.append(self._trace(event.trace))
            more += self._error(event.trace.partition("\n")[0])
        level, time = LEVELS.get(event.level, _INFO), event.time.timestamp()
        if abs(time - epoch) > _MAX_AWAY_SECONDS:  # anyone can print an event
            time = epoch
        return self._document(offset, time, level, event.message, "".join(more))

    def _of_trace(
        self, record: ParsedRecord, epoch: float, level: tuple[str, int], text: str
    ) -> tuple[bytes, int]:
        lines = text.splitlines()
        line = lines[0] if record.kind is RecordKind.JAVA else naming_line(lines)
        more = self._trace(text) + "".join(self._error(_THREAD.sub("", line, count=1)))
        return self._document(record.offset, epoch, level, line, more)

    def _document(
        self, offset: int, epoch: float, level: tuple[str, int], message: str, more: str
    ) -> tuple[bytes, int]:
        if epoch != self._epoch:  # equal for all lines of a chunk
            self._epoch = epoch
            self._head = f'{{"@timestamp":"{self._days.timestamp(epoch)}","log.level":"'
            self._day = self._days.index(epoch)
        text = quoted(self._fit(message, MAX_MESSAGE))
        line = f'{self._head}{level[0]}","message":{text},"event.sequence":{offset}{more}{self._tail}'
        return encoded(f"{create_line(self._day, f'{self._identity}-{offset}')}{line}"), level[1]

    def _error(self, line: str) -> list[str]:
        """Type and message of an exception, if the line begins with its name."""
        found = _EXCEPTION.fullmatch(line)
        if found is None:
            return []
        message = found["message"] or ""
        return [
            self._named("error.type", found["type"]),
            f',"error.message":{self._quoted(message, MAX_MESSAGE)}',
        ]

    def _trace(self, text: str) -> str:
        return f',"error.stack_trace":{self._quoted(text, MAX_TRACE)}'

    def _named(self, name: str, value: str) -> str:
        """A name that the job chooses, such as that of a thread: it may contain a URL with a secret."""
        return f',"{name}":{self._quoted(value, MAX_FIELD)}'

    def _quoted(self, text: str, limit: int) -> str:
        return quoted(self._fit(text, limit))


def _text_of(records: Sequence[ParsedRecord]) -> str:
    return b"".join(record.data for record in records).decode("utf-8", "replace")


def _field(name: str, value: str | int) -> str:
    return f',"{name}":{value if isinstance(value, int) else quoted(cut(value, MAX_FIELD))}'


def _task(task: tuple[int, int] | None) -> str:
    return f',"spark.stage_id":{task[0]},"spark.task_id":{task[1]}' if task else ""


def level_in(text: str) -> tuple[str, int]:
    """The level that the beginning of a line names, `info` without one."""
    said = _LEVEL_NAME.search(text, 0, _LEVEL_WITHIN)
    return LEVELS[said[1]] if said else _INFO


def naming_line(lines: list[str]) -> str:
    """The last line of a traceback that names an exception."""
    for line in reversed(lines):
        if line and not line.startswith((" ", "\t", ": ", "Caused by: ", "Suppressed: ", "Traceback (")):
            return line
    return next((line.strip(" |+") for line in lines[1:] if "Error" in line or "Group" in line), lines[0])
