"""Elasticsearch passes the suite of connectors on a real server."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from queues.embedded.ports import free_ports
from tests.contract.kit import COLUMNS, Can
from tests.contract.suite import *  # noqa: F403 - the tests of the suite
from tests.elasticsearch_support import Indices

NAMES = ("id", "name", "amount")


class ElasticsearchKit:
    """Indices with the fields of the suite."""

    can = Can.READ | Can.APPEND | Can.UPSERT | Can.DELETE | Can.PROBE

    def __init__(self, indices: Indices) -> None:
        self._indices, self._made = indices, 0

    def create(self) -> str:
        self._made += 1
        return self._indices.new(str(self._made), {"id": "long", "name": "keyword", "amount": "double"})

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:
        more = (", gone BOOLEAN" if deletes else "") + (", PRIMARY KEY (id) NOT ENFORCED" if key else "")
        option = {"delete_column": "gone"} if deletes else {}
        return self._indices.table(name, target, COLUMNS + more, **option)

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._indices.put(target, [dict(zip(NAMES, row, strict=True)) for row in rows])

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        return [tuple(each.get(name) for name in NAMES) for each in self._indices.documents(target).values()]

    def unreachable(self, name: str) -> tuple[str, str]:
        (port,) = free_ports("127.0.0.1", 1)
        away = Indices(f"http://127.0.0.1:{port}", "any")
        return away.table(name, "any", COLUMNS), f"http://127.0.0.1:{port} does not answer"

    def missing(self, name: str) -> tuple[str, str]:
        index = f"{self._indices.prefix}-missing"
        return self._indices.table(name, index, COLUMNS), f"index '{index}'"


@pytest.fixture
def kit(indices: Indices, spark: SparkSession) -> ElasticsearchKit:  # noqa: ARG001 - the suite runs in it
    return ElasticsearchKit(indices)
