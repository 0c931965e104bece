"""Prints log records: each line has a short prefix that names its origin, as with `docker compose logs`."""

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestrator.cli.documents import print_json
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import stdout_console
from orchestrator.logs.reading.origin import Origin
from orchestrator.logs.reading.query import LogRecord
from orchestrator.logs.visible import visible

# ANSI colours that can be read on a dark and on a light background.
_COLOURS = {Origin.OUT: 36, Origin.ERR: 35, Origin.SPARK: 32, Origin.ORCHESTRATOR: 34}
_LEVELS = {"warning": "WARN", "critical": "FATAL"}  # as Spark names them
_MAX_WIDTH = 40


class RecordPrinter:
    """Writes records to stdout, as lines of text or as a JSON document each.

    `prefix`: whether lines have one. `names_job`: whether it begins with the id of the job. `is_raw`: a pipe
    gets the bytes of the program, without the escapes that a terminal needs.
    """

    def __init__(
        self, output: OutputFormat, *, prefix: bool = True, names_job: bool = False, is_raw: bool = False
    ) -> None:
        self._output, self._prefix, self._names_job = output, prefix, names_job
        console = stdout_console()
        is_terminal = sys.stdout.isatty()
        self._is_coloured = console.color_system is not None and not console.no_color and is_terminal
        self._is_raw = is_raw and not is_terminal
        self._width = 5
        self._open: tuple[object, ...] | None = None  # the stream whose last line has no end yet

    def print(self, record: LogRecord) -> None:
        """Write one record; the end of a line that is too long for one record comes with the next ones."""
        if self._output is not OutputFormat.TABLE:
            print_json({"_id": record.id, **_whole(record.document)}, OutputFormat.JSONL)
            return
        origin = record.origin
        field = record.document.get  # a log may have millions of lines
        stream = (field("job.id"), field("log.stream"), field("spark.executor_id"))
        text = text_of(record) if self._is_raw else _visible(text_of(record))
        if self._prefix:
            prefix = self._prefix_of(record, origin)
            lines = text.split("\n")
            first = lines[0] if self._open == stream else prefix + lines[0]
            text = "\n".join([first, *(prefix + line for line in lines[1:])])
        if self._open is not None and self._open != stream:
            text = f"\n{text}"
        self._open = stream if record.is_part else None
        self._write(text if record.is_part else f"{text}\n")

    def flush(self) -> None:
        """Show what was written so far."""
        sys.stdout.flush()

    def close(self) -> None:
        """End an open line."""
        if self._open is not None:
            self._write("\n")
        self.flush()

    def _prefix_of(self, record: LogRecord, origin: Origin) -> str:
        executor = record.text("spark.executor_id")
        words = [record.text("job.id") if self._names_job else "", origin.value]
        words.append(executor if executor not in {"", "driver"} else "")
        name = visible(" ".join(filter(None, words)))
        self._width = max(self._width, min(len(name), _MAX_WIDTH))
        label = f"{name:<{self._width}} |"
        return f"\x1b[{_COLOURS[origin]}m{label}\x1b[0m " if self._is_coloured else f"{label} "

    def _write(self, text: str) -> None:
        if not self._is_raw:
            sys.stdout.write(text)
            return
        sys.stdout.buffer.write(_encodable(text).encode("utf-8", "surrogateescape"))


def text_of(record: LogRecord) -> str:
    """The text of a record without its last line end: a trace is below the line that it belongs to."""
    trace = record.text("error.stack_trace").rstrip("\r\n")
    match record.origin:
        case Origin.ORCHESTRATOR:
            job = f"[{record.text('job.id')}] " if record.text("job.id") else ""
            name = record.text("log.logger") or record.text("event.dataset")
            line = f"{_local(record, 'milliseconds')} {record.level.upper():<8} {job}{name}: {record.message}"
        case Origin.SPARK if "log.logger" in record.document:
            level = _LEVELS.get(record.level, record.level.upper())
            name = record.text("log.logger").rpartition(".")[2]
            line = f"{_local(record, 'seconds')} {level} {name}: {record.message}"
        case _:
            return trace or record.message
    return f"{line}\n{trace}" if trace else line


def _local(record: LogRecord, precision: str) -> str:
    try:
        moment = datetime.fromisoformat(f"{record.timestamp}+00:00").astimezone().replace(tzinfo=None)
        return moment.isoformat(" ", precision)
    except (ValueError, OverflowError):
        return record.timestamp


def _visible(text: str) -> str:
    """The text as a terminal may get it; bytes that are no text are escapes."""
    return visible(_encodable(text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def _whole(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, with marks for bytes that are no text."""
    return {
        name: _encodable(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if isinstance(value, str)
        else value
        for name, value in document.items()
    }


def _encodable(text: str) -> str:
    """The text without surrogates, but for those that stand for a byte."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
