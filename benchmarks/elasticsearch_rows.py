"""Rows into Elasticsearch: the connector against `parallel_bulk` of elasticsearch-py in `foreachPartition`.

Both write the same documents with the same ids into new indices with the same fields, in turn.
"""

import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator

from elasticsearch import Elasticsearch
from elasticsearch.helpers import parallel_bulk
from pyspark.sql import DataFrame, Row

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.options import to_plan, validate
from tests.servers import elasticsearch as server_module

INDEX = "rows"
JVM = "-Xms1g -Xmx1g"  # with both compilers: that of tests starts quickly, and indexes slowly
FIELDS = {"id": "long", "name": "keyword", "amount": "double", "at": "date"}


def ours(frame: DataFrame, url: str) -> None:
    """The connector."""
    given = to_plan(validate("elasticsearch", {"hosts": url, "index": INDEX}))
    ElasticsearchSink().write(frame, given, WriteRequest("append", Writer(uuid.uuid4().hex), ("id",)))


def by_hand(frame: DataFrame, url: str) -> None:
    """The helper with its defaults: 4 threads, 500 documents in a request."""

    def write(part: Iterator[Row]) -> None:
        actions = (
            {
                "_index": INDEX,
                "_id": row.id,
                "_source": {
                    "id": row.id,
                    "name": row.name,
                    "amount": float(row.amount),
                    "at": row.at.isoformat(),
                },
            }
            for row in part
        )
        with Elasticsearch(url) as client:
            for _ in parallel_bulk(client, actions):
                pass

    frame.foreachPartition(write)


def measure(rows: Callable[[int, int], DataFrame], count: int, rounds: int) -> dict[str, float]:
    """Medians of documents per second; `rows` makes that many rows of a step."""
    found = defaultdict[str, list[float]](list)
    server_module._JVM = JVM  # noqa: SLF001 - tests have no other way, and need none
    with server_module.local_elasticsearch() as url, Elasticsearch(url) as server:
        for step in range(rounds + 1):
            for name, work in (("elasticsearch_ours", ours), ("elasticsearch_by_hand", by_hand)):
                fields = {field: {"type": kind} for field, kind in FIELDS.items()}
                settings = {"number_of_replicas": 0}
                server.indices.create(index=INDEX, mappings={"properties": fields}, settings=settings)
                number = count if step else min(count, 20_000)  # step 0 warms up
                start = time.perf_counter()
                work(rows(number, step), url)
                seconds = time.perf_counter() - start
                server.indices.refresh(index=INDEX)
                written = server.count(index=INDEX)["count"]
                if written != number:
                    raise AssertionError(f"{name}: {written} documents of {number}")
                server.indices.delete(index=INDEX)
                if step:
                    found[name].append(number / seconds)
                    print(f"round {step}: {name} {found[name][-1]:,.0f} rows/s", flush=True)
    return {name: statistics.median(rates) for name, rates in found.items()}
