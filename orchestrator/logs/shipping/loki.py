"""Loki as a target: JSON pushes, and the meaning of its responses for the records of a push."""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.logs.errors import (
    RequestMalformed,
    RequestTooLarge,
    TargetBusy,
    TargetRefuses,
    TargetUnreachable,
)
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.shipping.http import Answer, Http, as_json, basic_login
from orchestrator.logs.shipping.target import BatchResult, RefusedRecord, SpooledRecord, spooled_records

_PUSH = "/loki/api/v1/push"
_OK, _NO_CONTENT = 200, 204
_BAD_REQUEST, _TOO_LARGE, _TOO_MANY, _SERVER_ERROR = 400, 413, 429, 500
_LABELS = {"service_name": "service.name", "host": "host.name", "level": "log.level"}
# In a 500 of an ingester: its limit for one message is 4 MiB by default.
_LARGER = "larger than max"
# In a 400 for a wrong setting: all records would become dead letters.
_OF_SETTINGS = ("missing required labels", "no org id")
_OLDEST = re.compile(r"timestamp too old: .{1,40}?, oldest acceptable timestamp is: ([0-9T:+Z-]+)")


class LokiTarget:
    """Streams by service, host, level and hour.

    Loki accepts the valid lines of a push and responds 400 for the others, without naming all of them. The
    push is then split until each refused record is alone. Loki drops lines it has already accepted as
    duplicates, because stream, time and line are equal.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def prepare(self) -> None:
        """Nothing to do: a stream is created with its first line."""

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """Send one push: each record is accepted, too old or invalid; else the whole push is refused."""
        entries, dead = spooled_records(records)
        if not entries:
            return BatchResult(dead=dead)
        answer = self._http.request("POST", _PUSH, as_json(push_body(entries)))
        old = _too_old(entries, answer)
        if old:
            dead += [RefusedRecord(entry.record, answer.status, answer.words()) for entry in old]
            refused = {id(entry) for entry in old}
            return BatchResult(
                dead=dead, retry=[entry.record for entry in entries if id(entry) not in refused]
            )
        _check(answer)
        return BatchResult(created=len(entries), dead=dead)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def loki_headers(key_file: Path | None, tenant: str) -> dict[str, str]:
    """Headers of the login, from a file with `user:password` or a token, and of the tenant.

    Raises TargetRefuses.
    """
    headers = {"x-scope-orgid": tenant} if tenant else {}
    if key_file is not None:
        try:
            key = key_file.read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise TargetRefuses(f"{key_file}: {error}") from error
        REDACTOR.add([key, key.partition(":")[2]])
        headers["authorization"] = basic_login(key) if ":" in key else f"Bearer {key}"
    return headers


def push_body(entries: Sequence[SpooledRecord]) -> dict[str, Any]:
    """The body of a push: its streams, each in order of time."""
    streams = dict[tuple[str, ...], list[SpooledRecord]]()
    for entry in entries:
        streams.setdefault(_labels(entry), []).append(entry)
    names = (*_LABELS, "hour")
    return {
        "streams": [
            {
                "stream": dict(zip(names, labels, strict=True)),
                "values": [[str(entry.time), entry.text] for entry in sorted(stream, key=_time)],
            }
            for labels, stream in streams.items()
        ]
    }


def _labels(entry: SpooledRecord) -> tuple[str, ...]:
    """The labels of the stream of a record.

    Loki refuses a line that is an hour older than the newest line of its stream, and after an outage one
    process is back before another. With one stream per hour there are no such lines. The hours are those of
    the week (1-00 to 7-23, in UTC), which bounds the label to 168 values: Loki refuses lines older than a
    week anyway.
    """
    values = [str(entry.document.get(field) or "unknown") for field in _LABELS.values()]
    return (*values, time.strftime("%u-%H", time.gmtime(entry.time // 1_000_000_000)))


def _time(entry: SpooledRecord) -> int:
    return entry.time


def _too_old(entries: Sequence[SpooledRecord], answer: Answer) -> list[SpooledRecord]:
    """Records older than the oldest acceptable time in the response, so that a backlog needs no splitting."""
    found = _OLDEST.search(str(answer.body)) if answer.status == _BAD_REQUEST else None
    if found is None:
        return []
    try:
        oldest = datetime.fromisoformat(found[1]).astimezone(UTC).timestamp() * 1e9
    except ValueError:
        return []
    return [entry for entry in entries if entry.time < oldest]


def _check(answer: Answer) -> None:
    """Raise the error for a refused push."""
    status, text, words = answer.status, str(answer.body), answer.words()
    if status in {_OK, _NO_CONTENT}:
        return
    if status == _TOO_LARGE or (status >= _SERVER_ERROR and _LARGER in text):
        raise RequestTooLarge(words)
    if status == _TOO_MANY:
        raise TargetBusy(words, answer.delay())
    if status >= _SERVER_ERROR:
        raise TargetUnreachable(words, answer.delay())
    if status == _BAD_REQUEST and not any(each in text for each in _OF_SETTINGS):
        raise RequestMalformed(words)
    # Also 260, which looks like a success: Loki drops the push while its operators block the tenant.
    raise TargetRefuses(words)
