"""An alias for logs on a real Elasticsearch, for one test; its indices and template are deleted after it."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan

from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.shipping.http import Http

_PAGE = 5_000


@dataclass(frozen=True)
class LogIndex:
    """The daily indices below an alias, as a reader sees them."""

    url: str
    alias: str
    client: Elasticsearch

    def target(self, url: str = "") -> ElasticsearchTarget:
        """The target of a shipper; `url` is that of a proxy before the server."""
        return ElasticsearchTarget(Http([url or self.url]), self.alias)

    def documents(self, index: str = "") -> list[dict[str, Any]]:
        """All documents under the alias, each with `_id` and `_index`."""
        self.client.indices.refresh(index=f"{self.alias}-*")
        found = scan(self.client, index=index or self.alias, size=_PAGE)
        return [{"_id": hit["_id"], "_index": hit["_index"], **hit["_source"]} for hit in found]

    def numbers(self) -> list[int]:
        """The numbers (of tests/log_support.py) of the documents, with repetitions."""
        if not self.indices():
            return []
        return sorted(int(document["message"].split()[0][1:]) for document in self.documents())

    def indices(self) -> list[str]:
        return sorted(self.client.indices.get(index=f"{self.alias}-*", expand_wildcards="all"))

    def day(self, number: int = 1) -> str:
        return f"{self.alias}-2026-01-{number:02d}"

    def remove(self) -> None:
        for index in self.indices():
            self.client.indices.delete(index=index, ignore_unavailable=True)
        self.client.options(ignore_status=404).indices.delete_index_template(name=self.alias)


@pytest.fixture
def log_index(elasticsearch_url: str) -> Iterator[LogIndex]:
    with Elasticsearch(elasticsearch_url, request_timeout=60) as client:
        index = LogIndex(elasticsearch_url, f"logs-{uuid.uuid4().hex[:12]}", client)
        try:
            yield index
        finally:
            index.remove()
