"""Reads the documents of one slice of a point in time, in pages: each as the text that the JVM parses."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_runner.connectors.elasticsearch.answers import Answer
from spark_runner.connectors.elasticsearch.client import MOST_BYTES, Client, pattern_of
from spark_runner.connectors.elasticsearch.renewals import SEARCH, Renewals
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

_REFUSED = 400  # the status of an answer
_HITS = '"hits":['
_decode = json.JSONDecoder().raw_decode
_FIRST_DOCUMENTS, _MOST_DOCUMENTS = 10, 10_000  # of a page; more is refused by default
_WINDOW = b"index.max_result_window"  # the setting of an index that takes smaller pages only
_PAGE_BYTES = 4 * 1024 * 1024
_MOST_BYTES = MOST_BYTES  # of a page with several documents; they may be larger than those before


@dataclass(frozen=True)
class Slice(InputPartition):
    """One of the parts of a point in time."""

    point: str
    number: int
    of: int


class PageReader(DataSourceReader):
    """The documents that match the query of the table; `fields` of its options are read of each.

    No one closes the point in time: a task may read its slice again, after any number of others have ended.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options, self._secrets = options, options.get("secrets", ())

    def partitions(self) -> Sequence[InputPartition]:
        """A slice for each task."""
        with Client(self._options, self._secrets) as client:
            path = f"/{pattern_of(self._options['index'])}/_pit?keep_alive={self._options['keep_alive']}s"
            point = client.check(client.insist("POST", path)).document()["id"]
        slices = self._options["partitions"]
        return [Slice(point, number, slices) for number in range(slices)]

    def read(self, partition: InputPartition) -> "Iterator[RecordBatch]":
        """The documents of a slice; raises Unreachable, as the point in time is gone with its server."""
        import pyarrow as pa  # noqa: PLC0415 - of the tasks

        assert isinstance(partition, Slice)  # noqa: S101 - those of `partitions`
        schema = pa.schema([("hit", pa.string())])
        renewals = Renewals(self._options, self._secrets, partition.point)
        asked: dict[str, Any] = {
            "pit": renewals.pit,
            "sort": ["_shard_doc"],
            "size": _FIRST_DOCUMENTS,
            "version": True,
            "track_total_hits": False,
            "query": self._options["query"] or {"match_all": {}},
            "_source": self._options["fields"],
        }
        if partition.of > 1:
            asked["slice"] = {"id": partition.number, "max": partition.of}
        most_documents = _MOST_DOCUMENTS
        with renewals, Client(self._options, self._secrets) as client:
            while True:
                is_divisible = asked["size"] > 1
                most = _MOST_BYTES if is_divisible else 0
                answer = client.insist("POST", SEARCH, asked, most=most, is_divisible=is_divisible)
                is_beyond = answer.status == _REFUSED and _WINDOW in answer.data
                if is_divisible and (answer.is_large or answer.lacks_memory() or is_beyond):
                    asked["size"] //= 2
                    most_documents = asked["size"] if is_beyond else most_documents
                    continue
                page = self._checked(client, answer)
                hits, last = self._hits(page.decode())
                if not hits:
                    return
                yield pa.RecordBatch.from_arrays([pa.array(hits, pa.string())], schema=schema)
                asked["search_after"] = last
                wanted = min(asked["size"] * _PAGE_BYTES // len(page), 10 * asked["size"], most_documents)
                asked["size"] = max(wanted, 1)

    def _checked(self, client: Client, answer: Answer) -> bytes:
        try:
            page = client.check(answer).data
        except NothingThere as error:
            raise Unreachable(f"the point in time of a read is over: {error}; see 'keep_alive'") from error
        client.succeeded()
        return page

    def _hits(self, page: str) -> tuple[list[str], list[Any]]:
        """The text of each document of a page, and the sort values of the last.

        The texts are parts of the page: nothing that reads numbers as Python or Spark does could write them
        back.
        """
        found, last, end = list[str](), list[Any](), page.index(_HITS) + len(_HITS) - 1
        while page[end + 1] == "{":
            begin = end + 1
            hit, end = _decode(page, begin)
            if "_source" not in hit and self._options["fields"]:
                index = hit["_index"]
                raise ConnectorError(
                    f"index '{index}' keeps no _source, so that its documents cannot be read"
                )
            found.append(page[begin:end])
            last = hit["sort"]
        return found, last
