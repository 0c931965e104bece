"""Aliyun SLS (loghub) as a target: one request per job and host, and the meaning of its responses."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.logs.errors import (
    RequestMalformed,
    RequestTooLarge,
    TargetBusy,
    TargetError,
    TargetRefuses,
    TargetUnreachable,
)
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.shipping.target import BatchResult, SpooledRecord, spooled_records

_TOO_LARGE, _TOO_MANY, _SERVER_ERROR = 413, 429, 500
_ID, _SECRET, _TOKEN = (
    "ALIBABA_CLOUD_ACCESS_KEY_ID",
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "ALIBABA_CLOUD_SECURITY_TOKEN",
)
# SLS responds 403 for a quota, as for wrong credentials.
_QUOTAS = {"WriteQuotaExceed", "ShardWriteQuotaExceed", "ExceedQuota"}
_LARGE = {"PostBodyTooLarge"}
_OF_RECORDS = {"PostBodyInvalid", "InvalidTimestamp", "InvalidEncoding", "InvalidKey"}
_NO_ANSWER = "LogRequestError"  # the SDK's code for a request without a response; it may have the status 200

Put = Callable[[str, str, Sequence[SpooledRecord]], None]
"""Sends records with one topic and source, all or nothing; raises TargetError."""


class SlsTarget:
    """One logstore. It keeps duplicates; readers identify them by `event.id`."""

    def __init__(self, put: Put) -> None:
        self._put = put

    def prepare(self) -> None:
        """Nothing to do: operators create the logstore and its index, and the key may be write-only."""

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """Send one request per job and host; after a failure, the remaining records are to be retried."""
        entries, dead = spooled_records(records)
        groups = dict[tuple[str, str], list[SpooledRecord]]()
        for entry in entries:
            groups.setdefault(_topic_and_source(entry), []).append(entry)
        created, left = 0, list(groups.items())
        while left:
            (topic, source), group = left[0]
            try:
                self._put(topic, source, group)
            except TargetError:
                if not created:
                    raise
                # Accepted records must not be sent again. The error recurs with the first retry.
                return BatchResult(
                    created, retry=[each.record for _, rest in left for each in rest], dead=dead
                )
            created += len(group)
            del left[0]
        return BatchResult(created, dead=dead)

    def close(self) -> None:
        """Nothing to do: the SDK closes its connections."""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """The key that signs requests."""

    identity: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


def access_key(key_file: Path | None, environment: Mapping[str, str] = os.environ) -> AccessKey:
    """Read the key from a file with `id:secret` or `id:secret:token`, or from the environment.

    Raises TargetRefuses.
    """
    if key_file is None:
        values = [environment.get(name, "") for name in (_ID, _SECRET, _TOKEN)]
        if not all(values[:2]):
            raise TargetRefuses(f"no access key for SLS: set {_ID} and {_SECRET}, or logs.key_file")
        REDACTOR.add(values[1:])
        return AccessKey(*values)
    try:
        parts = key_file.read_text("utf-8").strip().split(":", 2)
    except (OSError, ValueError) as error:
        raise TargetRefuses(f"{key_file}: {error}") from error
    if not all(parts[:2]) or len(parts) == 1:
        raise TargetRefuses(f"{key_file} must contain id:secret or id:secret:token")
    REDACTOR.add(parts[1:])
    return AccessKey(*parts)


def error_of(status: int, code: str, message: str) -> TargetError:
    """The error for a refused request, by its status and SLS's error code."""
    words = f"{status} {code}: {' '.join(message.split())[:300]}"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return TargetRefuses(words)
    if code in _LARGE or status == _TOO_LARGE:
        return RequestTooLarge(words)
    if code in _QUOTAS or status == _TOO_MANY:
        return TargetBusy(words)
    if code == _NO_ANSWER or status >= _SERVER_ERROR:
        return TargetUnreachable(words)
    if code in _OF_RECORDS:
        return RequestMalformed(words)
    return TargetRefuses(words)


def _topic_and_source(entry: SpooledRecord) -> tuple[str, str]:
    return str(entry.document.get("job.id") or ""), str(entry.document.get("host.name") or "")
