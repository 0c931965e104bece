"""The bulk API in memory, with a script for each item and each request."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.logs.errors import TargetUnreachable
from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.shipping.http import Answer, Http
from tests.log_support import identity_of

CREATED, CONFLICT = 201, 409
Item = tuple[int, str]  # a status and the type of its error
Items = Callable[[str], Item]
Requests = Callable[[list[str]], "Answer | str | None"]


class BulkStub(Http):
    """Replaces the connection. `items` gives the result for an id that is not stored yet.

    `requests` receives the ids of a request and may return another answer, or "lost": applied, no reply.
    """

    def __init__(
        self, items: Items = lambda _id: (CREATED, ""), requests: Requests = lambda _ids: None
    ) -> None:
        self.items, self.requests = items, requests
        self.documents = dict[str, bytes]()
        self.came = Counter[str]()

    def target(self) -> ElasticsearchTarget:
        return ElasticsearchTarget(self, "logs")

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",  # noqa: ARG002 - the signature of the real one
    ) -> Answer:
        if "_bulk" not in path:
            return Answer(404 if method == "GET" else 200, {}, {})
        lines = (body or b"").splitlines(keepends=True)
        records = [lines[index] + lines[index + 1] for index in range(0, len(lines), 2)]
        ids = [identity_of(record) for record in records]
        self.came.update(ids)
        said = self.requests(ids)
        if isinstance(said, Answer):
            return said
        items = [self._item(identity, record) for identity, record in zip(ids, records, strict=True)]
        if said is not None:
            raise TargetUnreachable("the reply is lost")
        return bulk_answer(items)

    def _item(self, identity: str, record: bytes) -> Item:
        if identity in self.documents:
            return CONFLICT, "version_conflict_engine_exception"
        status, kind = self.items(identity)
        if status < 300:
            self.documents[identity] = record
        return status, kind

    def close(self) -> None:
        pass


def bulk_answer(items: Sequence[Item]) -> Answer:
    said = [{"create": {"status": status, **_error(kind)}} for status, kind in items]
    return Answer(200, {}, {"errors": any(kind for _, kind in items), "items": said})


def _error(kind: str) -> Mapping[str, Any]:
    if not kind:
        return {}
    return {"failure_store": "used"} if kind == "used" else {"error": {"type": kind, "reason": "so it is"}}


def error_answer(status: int, kind: str = "other", **headers: str) -> Answer:
    return Answer(status, headers, {"error": {"type": kind, "reason": "so it is"}})
