"""Pages of a read: their bytes are bounded, they may be taken slowly, and what cannot be read is named."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from spark_runner.connectors.elasticsearch import client as client_module
from spark_runner.connectors.elasticsearch import pages
from spark_runner.connectors.elasticsearch.pages import PageReader
from spark_runner.connectors.errors import ConnectorError, Unreachable
from tests.elasticsearch_support import Indices, options
from tests.log_proxy import Asked, LogProxy, Said
from tests.waiting import wait_until

MOST = 64 * 1024


@pytest.fixture
def proxy(elasticsearch_url: str) -> Iterator[LogProxy]:
    with LogProxy(elasticsearch_url) as found:
        yield found


def pages_of(url: str, index: str, fields: object = True, **more: Any) -> Iterator[list[int]]:
    given = options(url, index=index, partitions=1, **more)
    reader = PageReader({**given, "query": None, "fields": fields})
    (whole,) = reader.partitions()
    for batch in reader.read(whole):
        yield [json.loads(hit)["_source"]["n"] for hit in batch.column(0).to_pylist()]


def read(url: str, index: str, fields: object = True) -> list[int]:
    return [number for page in pages_of(url, index, fields) for number in page]


def sizes_of(asked: list[Asked]) -> list[int]:
    return [json.loads(each.body)["size"] for each in asked if "_search" in each.path]


def test_a_page_of_large_documents_is_asked_for_again_in_parts(
    indices: Indices, proxy: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MOST_BYTES", MOST)
    monkeypatch.setattr(client_module, "_CHUNK", 1024)
    index, seen, answers = indices.new("sizes"), list[Asked](), list[int]()

    def look(asked: Asked) -> Said:
        seen.append(asked)
        said = asked.forward()
        answers.append(len(said.body))
        return said

    proxy.rule = look
    texts = [100] * 20 + [20_000] * 20 + [2 * MOST] * 2 + [100] * 10
    indices.put(index, [{"n": number, "text": "x" * size} for number, size in enumerate(texts)])
    assert sorted(read(proxy.url, index)) == list(range(len(texts)))
    sizes = sizes_of(seen)
    assert any(then == size // 2 for size, then in pairwise(sizes))
    assert 1 in sizes
    assert max(answers) > MOST


def test_a_page_for_which_the_server_lacks_memory_is_asked_for_again_in_parts(
    indices: Indices, proxy: LogProxy
) -> None:
    index, seen = indices.new("memory"), list[Asked]()

    def lack(asked: Asked) -> Said:
        seen.append(asked)
        if "_search" in asked.path and json.loads(asked.body)["size"] > 2:
            cause = {"type": "circuit_breaking_exception", "reason": "Data too large"}
            error = {"type": "search_phase_execution_exception", "root_cause": [cause]}
            return Said.document(429, {"error": error, "status": 429})
        return asked.forward()

    proxy.rule = lack
    indices.put(index, [{"n": number} for number in range(5)])
    assert sorted(read(proxy.url, index)) == list(range(5))
    assert sizes_of(seen)[:3] == [10, 5, 2]


def test_a_page_that_is_taken_slowly_does_not_end_the_read(indices: Indices) -> None:
    index = indices.new("slow")
    indices.put(index, [{"n": number} for number in range(30)])

    def opened() -> int:
        found = indices.ask("GET", f"/{index}/_stats/search")
        return int(found["_all"]["total"]["search"]["open_contexts"])

    slow = pages_of(indices.url, index, keep_alive=8)
    numbers = next(slow)
    indices.ask("POST", f"/{index}/_pit?keep_alive=8s")  # younger than the one of the read
    assert opened() == 4  # each has one of each shard
    wait_until(lambda: opened() <= 2, 120, "the server has ended the younger point in time")
    assert sorted(numbers + [number for page in slow for number in page]) == list(range(30))


def test_a_point_in_time_that_is_over_is_no_error_of_the_definition(indices: Indices) -> None:
    index = indices.new("over")
    indices.put(index, [{"n": number} for number in range(30)])
    slow = pages_of(indices.url, index)
    next(slow)
    indices.ask("POST", f"/{index}/_close")  # ends it, as a restart of the server does
    with pytest.raises(Unreachable, match=r"the point in time of a read is over: .*see 'keep_alive'"):
        next(slow)


@pytest.mark.parametrize("window", [3, 50])
def test_an_index_that_gives_small_pages_only_is_read_in_small_pages(
    indices: Indices, proxy: LogProxy, window: int
) -> None:
    index, seen = indices.new("window"), list[Asked]()

    def look(asked: Asked) -> Said:
        seen.append(asked)
        return asked.forward()

    proxy.rule = look
    indices.put(index, [{"n": number} for number in range(120)])
    indices.ask("PUT", f"/{index}/_settings", {"index.max_result_window": window})
    assert sorted(read(proxy.url, index)) == list(range(120))
    sizes = sizes_of(seen)
    assert sum(size > window for size in sizes) <= 2, "it learns from the first refusals"


@pytest.mark.parametrize("fields", [True, ["n"]])  # with a DECIMAL, and without one
def test_an_index_without_source_is_named(indices: Indices, fields: object) -> None:
    index = f"{indices.prefix}-bare"
    indices.ask("PUT", f"/{index}", {"mappings": {"_source": {"enabled": False}}})
    indices.put(index, [{"n": 1}])
    with pytest.raises(
        ConnectorError, match=rf"index .?{index}.*_source|_source .* index \[{index}\]"
    ) as found:
        read(indices.url, index, fields)
    assert not isinstance(found.value, Unreachable)
