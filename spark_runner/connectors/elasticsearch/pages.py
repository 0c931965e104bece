"""Reads the documents of one slice of a point in time, in pages: bytes that the JVM parses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_runner.connectors.elasticsearch.client import Client, pattern_of
from spark_runner.connectors.errors import NothingThere, Unreachable

_KEEP = "10m"  # each request begins it anew; a reader that ended leaves the point in time for so long
_HITS = ",".join(f"hits.hits.{name}" for name in ("_index", "_id", "_version", "_source", "sort"))
_SEARCH = f"/_search?allow_partial_search_results=false&filter_path=pit_id,{_HITS}"
_SORT = b'"sort":['  # the last one is that of the last document: it is behind its fields
_FIRST_DOCUMENTS, _MOST_DOCUMENTS = 10, 10_000  # of a page; more is refused by default
_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Slice(InputPartition):
    """One of the parts of a point in time."""

    point: str
    number: int
    of: int


class PageReader(DataSourceReader):
    """The documents that match the query of the table; `fields` of its options are read of each."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A slice for each task."""
        with Client(self._options) as client:
            path = f"/{pattern_of(self._options['index'])}/_pit?keep_alive={_KEEP}"
            point = client.check(client.insist("POST", path)).document()["id"]
        slices = self._options["partitions"]
        return [Slice(point, number, slices) for number in range(slices)]

    def read(self, partition: InputPartition) -> Iterator[tuple[bytes]]:
        """The pages of a slice; raises Unreachable, as the point in time is gone with its server."""
        assert isinstance(partition, Slice)  # noqa: S101 - those of `partitions`
        asked: dict[str, Any] = {
            "pit": {"id": partition.point, "keep_alive": _KEEP},
            "sort": ["_shard_doc"],
            "size": _FIRST_DOCUMENTS,
            "version": True,
            "track_total_hits": False,
            "query": self._options["query"] or {"match_all": {}},
            "_source": {"includes": self._options["fields"]},
        }
        if partition.of > 1:
            asked["slice"] = {"id": partition.number, "max": partition.of}
        with Client(self._options) as client:
            while True:
                try:
                    page = client.check(client.insist("POST", _SEARCH, asked)).data
                except NothingThere as error:
                    raise Unreachable(f"the point in time of a read is over: {error}") from error
                client.succeeded()
                begin = page.rfind(_SORT)
                if begin < 0:
                    return
                yield (page,)
                asked["search_after"] = [int(page[begin + len(_SORT) : page.index(b"]", begin)])]
                wanted = min(asked["size"] * _PAGE_BYTES // len(page), 10 * asked["size"], _MOST_DOCUMENTS)
                asked["size"] = max(wanted, 1)
