"""Elasticsearch as a target: bulk requests with `create`, and the result of each item."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.logs.errors import (
    RequestMalformed,
    RequestTooLarge,
    TargetBusy,
    TargetRefuses,
    TargetUnreachable,
)
from orchestrator.logs.shipping.http import NDJSON, Answer, Http
from orchestrator.logs.shipping.indices import install_template
from orchestrator.logs.shipping.target import BatchResult, RefusedRecord

_BULK = (
    "/_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason,items.*.failure_store"
)
_OK, _MULTIPLE, _BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN = 200, 300, 400, 401, 403
_CONFLICT, _TOO_LARGE, _TOO_MANY, _SERVER_ERROR = 409, 413, 429, 500
# 4xx errors of the cluster, not of the document: a disk above its flood stage, a memory limit.
_TRANSIENT = {"cluster_block_exception", "circuit_breaking_exception", "es_rejected_execution_exception"}
_DIVERTED = {"used"}


class ElasticsearchTarget:
    """The daily indices of one alias."""

    def __init__(self, http: Http, alias: str) -> None:
        self._http, self._alias = http, alias

    def prepare(self) -> None:
        """Install the template; raises TargetUnreachable, TargetRefuses."""
        try:
            install_template(self._http, self._alias)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise TargetRefuses(f"the response is not one of Elasticsearch: {error!r}") from error

    def send(self, records: Sequence[bytes]) -> BatchResult:
        """Send one bulk request: each record is created, a duplicate, to be retried, or dead."""
        answer = self._http.request("POST", _BULK, b"".join(records), content_type=NDJSON)
        check_answer(answer)
        body = answer.body if isinstance(answer.body, dict) else {}
        items = body.get("items")
        if not isinstance(items, list) or len(items) != len(records):
            raise TargetUnreachable(f"the response does not match the request: {answer.words()}")
        try:
            return _verdict(records, items, errors=bool(body.get("errors", True)))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise TargetUnreachable(f"the response cannot be parsed: {error!r}") from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _verdict(records: Sequence[bytes], items: Sequence[Mapping[str, Any]], *, errors: bool) -> BatchResult:
    if not errors:
        diverted = sum(item["create"].get("failure_store") in _DIVERTED for item in items)
        return BatchResult(created=len(records) - diverted, diverted=diverted)
    created = duplicates = diverted = 0
    retry, dead = list[bytes](), list[RefusedRecord]()
    for record, item in zip(records, items, strict=True):
        result = item["create"]
        status, error = int(result["status"]), result.get("error") or {}
        kind, reason = str(error.get("type", "")), str(error.get("reason", ""))
        if status < _MULTIPLE:
            diverted += result.get("failure_store") in _DIVERTED
            created += result.get("failure_store") not in _DIVERTED
        elif status == _CONFLICT:
            duplicates += 1
        elif status == _TOO_MANY or status >= _SERVER_ERROR or kind in _TRANSIENT:
            retry.append(record)
        elif status in {_UNAUTHORIZED, _FORBIDDEN}:
            # Records of this request that were created are duplicates when it is sent again.
            raise TargetRefuses(f"{status} {kind}: {reason}")
        else:
            dead.append(RefusedRecord(record, status, f"{kind}: {reason}"))
    return BatchResult(created, duplicates, diverted, retry, dead)


def check_answer(answer: Answer) -> None:
    """Raise the error for a refused request, with the server's Retry-After if it has one."""
    status = answer.status
    if _OK <= status < _MULTIPLE:
        return
    words, kind = answer.words(), _kind(answer)
    if status == _TOO_LARGE:
        raise RequestTooLarge(words)
    if status == _TOO_MANY:
        raise TargetBusy(words, answer.delay())
    if status >= _SERVER_ERROR or kind in _TRANSIENT:
        raise TargetUnreachable(words, answer.delay())
    if status == _BAD_REQUEST:
        raise RequestMalformed(words)
    raise TargetRefuses(words)


def _kind(answer: Answer) -> str:
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    return str(error.get("type", "")) if isinstance(error, dict) else ""
