"""A loguru record as an ECS document (Elastic Common Schema 9), and the daily index it belongs to."""

import json
import math
import os
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.record.text import MAX_FIELD, MAX_MESSAGE, MAX_TRACE, cut, plain, quoted

if TYPE_CHECKING:
    from loguru import Record


class Days:
    """Formats index names and timestamps; caches the last day and the last second."""

    def __init__(self, alias: str, zone: str = "UTC") -> None:
        self._alias, self._zone = alias, ZoneInfo(zone)
        self._from, self._until, self._index = 0.0, 0.0, ""
        self._second, self._text = -1, ""

    def index(self, epoch: float) -> str:
        """`<alias>-YYYY-MM-DD` for seconds since the epoch."""
        if not self._from <= epoch < self._until:
            day = datetime.fromtimestamp(epoch, self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
            self._from = day.timestamp()
            self._until = (day + timedelta(days=1)).timestamp()
            self._index = f"{self._alias}-{day:%Y-%m-%d}"
        return self._index

    def timestamp(self, epoch: float) -> str:
        """ISO 8601 in UTC, microseconds."""
        micros = round(epoch * 1_000_000)
        second, rest = divmod(micros, 1_000_000)
        if second != self._second:
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._text}.{rest:06d}Z"


ECS_VERSION = "9.0.0"
JOB_FIELDS = {  # the fields of a job that `logger.contextualize` or `bind` may set
    "job_id": "job.id",
    "run_key": "job.run_key",
    "attempt": "job.attempt",
    "pool": "job.pool",
}
_OWN = "fields"  # the extra of this name holds fields that are copied to the document, for internal callers
_MAX_LONG = 1 << 63
_MAX_LABELS = 50
_MAX_ORIGINS = 10_000  # a program that exceeds it generates modules: the cache is cleared


class DocumentBuilder:
    """Builds the documents of one program on one host."""

    def __init__(self, days: Days, redactor: Redactor, service: str) -> None:
        self._days, self._redactor = days, redactor
        self._origins: dict[tuple[str, int], str] = {}
        names = {"host.name": os.uname().nodename, "service.name": service, "ecs.version": ECS_VERSION}
        self._tail = "".join(f",{quoted(name)}:{quoted(value)}" for name, value in names.items())

    def build(self, record: "Record") -> tuple[str, str]:
        """The index and the document of a record."""
        epoch = record["time"].timestamp()
        thread = record["thread"].name
        line = (
            f'{{"@timestamp":"{self._days.timestamp(epoch)}","log.level":"{record["level"].name.lower()}",'
            f'"message":{quoted(self._redactor.fit(record["message"], MAX_MESSAGE))},{self._origin(record)},'
            f'"process.pid":{record["process"].id},'
            f'"process.thread.name":{quoted(self._redactor.fit_repeated(thread, MAX_FIELD))}{self._tail}'
        )
        if record["extra"]:
            line += self._extra(record["extra"])
        if record["exception"] is not None:
            line += self._error(record["exception"])
        return self._days.index(epoch), f"{line}}}"

    def _origin(self, record: "Record") -> str:
        """The source location, cached per line of source code."""
        name, line = record["name"] or "", record["line"]
        known = self._origins.get((name, line))
        if known is None:
            if len(self._origins) >= _MAX_ORIGINS:
                self._origins.clear()
            known = self._origins[name, line] = (
                f'"log.logger":{quoted(name)},"log.origin.function":{quoted(record["function"])},'
                f'"log.origin.file.name":{quoted(record["file"].name)},"log.origin.file.line":{line}'
            )
        return known

    def _extra(self, extra: Mapping[Any, Any]) -> str:
        parts, labels = list[str](), list[str]()
        fit, fit_repeated = self._redactor.fit, self._redactor.fit_repeated
        for name, value in extra.items():
            if name == _OWN and isinstance(value, Mapping):
                parts += [f",{quoted(field)}:{self._value(each, fit)}" for field, each in value.items()]
            elif name in JOB_FIELDS:
                parts.append(f",{quoted(JOB_FIELDS[name])}:{self._value(value, fit_repeated)}")
            elif len(labels) < _MAX_LABELS:
                text = self._redactor.mask(f"{plain(name)}={plain(value)}").partition("=")[2]
                labels.append(f"{quoted(cut(plain(name), MAX_FIELD))}:{quoted(cut(text, MAX_FIELD))}")
        if labels:
            parts.append(f',"labels":{{{",".join(labels)}}}')
        return "".join(parts)

    def _value(self, value: Any, fit: Callable[[str, int], str]) -> str:
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, int) and abs(value) < _MAX_LONG:
            return str(int(value))
        if isinstance(value, Mapping):
            return json.dumps(self._masked(value), ensure_ascii=False, default=plain)
        return quoted(fit(plain(value), MAX_FIELD))

    def _masked(self, value: Any) -> Any:
        """A JSON value with every string masked separately: patterns must not see the quotes around them."""
        if isinstance(value, str):
            return self._redactor.fit(value, MAX_MESSAGE)
        if isinstance(value, Mapping):
            return {str(name): self._masked(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(each) for each in value]
        return plain(value) if isinstance(value, float) and not math.isfinite(value) else value

    def _error(self, exception: Any) -> str:
        kind, value, trace = exception
        if kind is None:
            return ""
        lines = "".join(traceback.format_exception(kind, value, trace))
        fit = self._redactor.fit
        return (
            f',"error.type":{quoted(kind.__name__)}'
            f',"error.message":{quoted(fit(plain(value), MAX_MESSAGE))}'
            f',"error.stack_trace":{quoted(fit(lines, MAX_TRACE))}'
        )
