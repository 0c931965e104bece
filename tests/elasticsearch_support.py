"""Tables in a real Elasticsearch, and a look at their documents past the connector."""

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from spark_runner.connectors.elasticsearch.options import ElasticsearchOptions
from tests.log_proxy import LogProxy

Documents = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Indices:
    """The indices of one test: their names begin with `prefix`."""

    url: str
    prefix: str

    def ask(self, method: str, path: str, document: Any = None) -> dict[str, Any]:
        """Send a request; raises AssertionError with the answer of the server."""
        data = None if document is None else json.dumps(document).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - our own server
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - likewise
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def new(self, name: str, fields: Mapping[str, str] | None = None) -> str:
        """An index with fields of these types."""
        index = f"{self.prefix}-{name}"
        properties = {field: {"type": kind} for field, kind in (fields or {}).items()}
        settings = {"number_of_replicas": 0, "number_of_shards": 2}
        self.ask("PUT", f"/{index}", {"mappings": {"properties": properties}, "settings": settings})
        return index

    def put(self, index: str, documents: Sequence[Mapping[str, Any]]) -> None:
        """Add documents, with their numbers as ids."""
        for number, each in enumerate(documents):
            self.ask("PUT", f"/{index}/_doc/{number}", each)
        self.ask("POST", f"/{index}/_refresh")

    def documents(self, index: str) -> Documents:
        """The documents by their ids, at most 10,000."""
        self.ask("POST", f"/{index}/_refresh")
        found = self.ask("GET", f"/{index}/_search?size=10000")["hits"]["hits"]
        return {each["_id"]: each["_source"] for each in found}

    def count(self, index: str) -> int:
        """The number of documents."""
        self.ask("POST", f"/{index}/_refresh")
        return int(self.ask("GET", f"/{index}/_count")["count"])

    def table(self, name: str, index: str, columns: str = "", **options: object) -> str:
        """The CREATE TABLE of a table for an index."""
        given = {"connector": "elasticsearch", "hosts": self.url, "index": index, **options}
        listed = ", ".join(f"'{option}' = '{value}'" for option, value in given.items())
        return f"CREATE TABLE {name} {f'({columns})' if columns else ''} WITH ({listed});\n"


def options(url: str, **more: Any) -> dict[str, Any]:
    """Checked options, with which a task gives up soon."""
    return ElasticsearchOptions(**{"hosts": url, "index": "any", "retry_timeout": 20, **more}).model_dump()


@pytest.fixture
def elasticsearch_proxy(elasticsearch_url: str) -> Iterator[LogProxy]:
    """A proxy before the server."""
    with LogProxy(elasticsearch_url) as found:
        yield found


@pytest.fixture
def indices(elasticsearch_url: str) -> Iterator[Indices]:
    """Indices that are removed after the test."""
    found = Indices(elasticsearch_url, f"test-{uuid.uuid4().hex[:12]}")
    yield found
    for index in found.ask("GET", f"/{found.prefix}*/_settings"):
        found.ask("DELETE", f"/{index}")
