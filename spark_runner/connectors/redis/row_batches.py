"""Values of Redis as batches of rows, with the bytes that Redis has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

COLUMNS = "key BINARY, value BINARY, score DOUBLE, id STRING, fields MAP<BINARY, BINARY>"
_FULL_BYTES, _FULL_ROWS = 4 * 1024 * 1024, 10_000


class RowBatch:
    """The rows of the next batch."""

    def __init__(self) -> None:
        self.read_bytes = 0  # of all batches
        self._begin()

    def add(
        self,
        key: bytes,
        value: bytes | None = None,
        *,
        score: float | None = None,
        entry: bytes | None = None,
        fields: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """Add a row; `entry` is the id of an entry of a stream."""
        pairs = None if fields is None else list(fields.items())
        self._rows.append((key, value, score, None if entry is None else entry.decode(), pairs))
        size = len(value or b"") + sum(len(name) + len(each) for name, each in pairs or ())
        self._bytes += len(key) + size
        self.read_bytes += len(key) + size

    @property
    def is_full(self) -> bool:
        """Whether the rows are as many as Spark should get at once: about 4 MiB, or 10,000."""
        return self._bytes >= _FULL_BYTES or len(self._rows) >= _FULL_ROWS

    def taken(self) -> "RecordBatch":
        """The rows as a batch, with the columns `COLUMNS`; the next one begins."""
        import pyarrow as pa  # noqa: PLC0415 - of the tasks

        data = pa.binary()
        kinds = {"key": data, "value": data, "score": pa.float64(), "id": pa.string()}
        schema = pa.schema([*kinds.items(), ("fields", pa.map_(data, data))])
        cells = zip(*self._rows, strict=True) if self._rows else [()] * len(schema)
        batch = pa.RecordBatch.from_arrays(
            [pa.array(each, kind) for each, kind in zip(cells, schema.types, strict=True)], schema=schema
        )
        self._begin()
        return batch

    def _begin(self) -> None:
        self._bytes = 0
        self._rows = list[tuple[object, ...]]()
