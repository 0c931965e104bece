"""Loki as a target: pushes of JSON, and what its answers mean for the records of a push."""

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
from orchestrator.logs.shipping.entry import SpooledRecord, spooled_records
from orchestrator.logs.shipping.http import Answer, Http, as_json, basic_login
from orchestrator.logs.shipping.target import BatchResult, DeadLetter

_PUSH = "/loki/api/v1/push"
_OK, _NO_CONTENT = 200, 204
_BAD_REQUEST, _TOO_LARGE, _TOO_MANY, _SERVER_ERROR = 400, 413, 429, 500
_LABELS = {"service_name": "service.name", "host": "host.name", "level": "log.level"}
# A 500 of an ingester behind the distributor: its limit for one message is 4 MiB unless configured.
_LARGER = "larger than max"
# A 400 that says nothing of the records: they would all be put aside for a setting.
_OF_SETTINGS = ("missing required labels", "no org id")
_OLDEST = re.compile(r"timestamp too old: .{1,40}?, oldest acceptable timestamp is: ([0-9T:+Z-]+)")


class LokiTarget:
    """Streams by service, host, level and hour.

    Loki takes what is good of a push and says 400 for the rest, without naming all of it. The push is then
    sent again in halves, until who was refused is alone: what was taken before is dropped there as a copy,
    because it has the same stream, time and line.
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    def prepare(self) -> None:
        """Nothing: streams come to be with their first line."""

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """One push: each record is taken, too old, or not readable; else the push is refused as a whole."""
        entries, dead = spooled_records(records)
        if not entries:
            return BatchResult(dead=dead)
        answer = self._http.request("POST", _PUSH, as_json(push_body(entries)))
        old = _too_old(entries, answer)
        if old:
            dead += [DeadLetter(entry.record, answer.status, answer.words()) for entry in old]
            refused = {id(entry) for entry in old}
            return BatchResult(
                dead=dead, retry=[entry.record for entry in entries if id(entry) not in refused]
            )
        _check(answer)
        return BatchResult(created=len(entries), dead=dead)

    def close(self) -> None:
        """End the connections."""
        self._http.close()


def loki_headers(key_file: Path | None, tenant: str) -> dict[str, str]:
    """Who we are: a file with `user:password` or with a token, and a tenant; raises TargetRefuses."""
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
    """The streams of a push, each in order of time."""
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
    """The labels of its stream.

    Loki refuses what is an hour older than the newest line of its stream, and after an outage one process
    is back before another: a stream for each hour has no such lines. Of the week (1-00 to 7-23, in UTC), so
    that these are 168 values for ever: what is older than a week Loki refuses anyway.
    """
    values = [str(entry.document.get(field) or "unknown") for field in _LABELS.values()]
    return (*values, time.strftime("%u-%H", time.gmtime(entry.time // 1_000_000_000)))


def _time(entry: SpooledRecord) -> int:
    return entry.time


def _too_old(entries: Sequence[SpooledRecord], answer: Answer) -> list[SpooledRecord]:
    """What Loki refuses by its age alone, as it says where that begins: a backlog needs no halves."""
    found = _OLDEST.search(str(answer.body)) if answer.status == _BAD_REQUEST else None
    if found is None:
        return []
    try:
        oldest = datetime.fromisoformat(found[1]).astimezone(UTC).timestamp() * 1e9
    except ValueError:
        return []
    return [entry for entry in entries if entry.time < oldest]


def _check(answer: Answer) -> None:
    """Raise what a refused push means."""
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
    # Also 260: what Loki drops while its operators block a tenant looks like a success.
    raise TargetRefuses(words)
