"""The protocols of a connector in the driver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.protocol.redacted import has_secrets, redacted
from spark_runner.push.pushes import Pushes

PREVIEW_ROWS = 5
SAMPLE_ROWS = 1000  # of a source without an end, for a look at its rows
_CELL_CHARS = 10_000  # of one cell that leaves the executors
PREVIEW_CHARS = 60  # of one cell; a preview is for a terminal


@dataclass(frozen=True)
class Written:
    """The result of one write; a sink that does not read back what it wrote has no preview."""

    rows: int
    preview: list[list[str | None]] = field(default_factory=list)
    rejected: DataFrame | None = None
    """Rows that the target refused: columns `reason` and `record` (STRING).

    With a column `row`, made by `spark_runner.connectors.rows.row_of`, a replay can write the rows again, and
    `record` is not needed.
    """


@dataclass(frozen=True)
class Writer:
    """The identity of a writer: the attempts of one run, or of one micro-batch, share the key."""

    run_key: str
    attempt: int = 1

    @property
    def name(self) -> str:
        """Its name in file systems."""
        return f"{self.run_key}-{self.attempt}"


@dataclass(frozen=True)
class Tolerance:
    """How many rows of one write its target may reject; none without a limit for bad rows."""

    rows: int = 0  # at most
    percent: float | None = None  # likewise, of all rows of the INSERT
    counted: int = 0  # rows of the INSERT besides those of this write
    bad: int = 0  # those of them that do not fit
    why_none: str = ""  # what to say if there is a limit, and none may be rejected nevertheless

    def of(self, rows: int) -> int:
        """The most rows that may be rejected of a write of this number of rows."""
        if self.percent is None:
            return self.rows
        return max(0, min(self.rows, int(self.percent * (self.counted + rows) // 100) - self.bad))


@dataclass(frozen=True)
class WriteRequest:
    """How to write the rows of one INSERT."""

    mode: str  # overwrite, append or error; it overrides the options
    writer: Writer
    primary_key: tuple[str, ...] = ()  # rows with an equal key replace each other; empty without one
    batch: int | None = None  # the number of the micro-batch; None without a stream
    is_shown: bool = True  # whether someone looks at the preview of `Written`
    may_reject: Tolerance = Tolerance()  # of a sink that writes all or none
    target: str = ""  # the name of the table in the script
    pushes: Pushes = field(default_factory=Pushes)  # of a sink that delivers by requests


class Source(Protocol):
    """Reads one kind of system."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The table as a frame; `schema` is None if the script declares no columns."""


@runtime_checkable
class PermissiveSource(Source, Protocol):
    """A source that can also return records which do not fit the declared columns."""

    def read_all(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str
    ) -> DataFrame:
        """The table with one more STRING column `record`: the text of a record that does not fit, or NULL."""


@runtime_checkable
class PermissiveStream(Source, Protocol):
    """A source whose stream can also have records which do not fit the declared columns."""

    def stream_all(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType,
        record: str,
        position: str | None,
        *,
        reached: Sequence[str] | None,
    ) -> DataFrame:
        """The table as a streaming frame with one more column, as that of `PermissiveSource.read_all`.

        `position` is where it begins, as for `PositionedSource`; None: at its start. `reached` is that of
        `ResumingSource`.
        """


@runtime_checkable
class StreamingSource(Source, Protocol):
    """A source whose new rows can be read in micro-batches."""

    def stream(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The table as a streaming frame."""


@runtime_checkable
class UnboundedSource(StreamingSource, Protocol):
    """A source whose rows may have no end: who looks at its rows reads some of them."""

    def sample(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, rows: int
    ) -> DataFrame:
        """At most `rows` rows that are there, or would be, without a wait for more."""


@runtime_checkable
class PositionedSource(StreamingSource, Protocol):
    """A source whose streams can begin at a position that a user gives."""

    def stream_from(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, position: str
    ) -> DataFrame:
        """The table as a streaming frame that begins at a position; raises ConnectorError for a wrong one.

        Each start of the stream gets the same position, which `check_position` of the options has checked
        at the submission of the job.
        """


@runtime_checkable
class ResumingSource(PositionedSource, Protocol):
    """A source whose streams need to know how far their query has come, for Spark does not pass it on."""

    def resumes(self, options: Mapping[str, Any], position: str | None) -> bool:
        """Whether a stream with these options that begins at this position needs to know it."""

    def stream_after(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType | None,
        position: str | None,
        reached: Sequence[str] | None,
    ) -> DataFrame:
        """The table as a streaming frame; `position` is that of `stream_from`, or None.

        `reached` are the offsets of the last micro-batch in the checkpoint, as JSON, of all streams of the
        query. With None the query is not known yet, and a stream that `resumes` is made again for it.
        """


@runtime_checkable
class LimitedSource(StreamingSource, Protocol):
    """A source whose micro-batches have at most as many rows as an option says, which any start may change.

    `limit_option` is its name here, and `limit_of_spark` that in the options of Spark's source.
    """

    limit_option: ClassVar[str]
    limit_of_spark: ClassVar[str]


@runtime_checkable
class IdentifiedSource(StreamingSource, Protocol):
    """A source whose streams read parts that may be removed, and made anew under the same names."""

    def identities(
        self, session: SparkSession, options: Mapping[str, Any], known: Sequence[str], reached: Sequence[str]
    ) -> Sequence[str]:
        """Texts that identify the parts as they are now; the checkpoint of the query keeps them.

        `known` are those that it has kept, of all streams of the query, and `reached` its offsets, as for
        `ResumingSource`. Raises ConnectorError where these are offsets in a part that is there no more.
        """


class Sink(Protocol):
    """Writes to one kind of system."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove the rows that earlier attempts of this run added; called before any write.

        A sink that cannot do so leaves them, and promises no more than Guarantee.AT_LEAST_ONCE.
        """

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Write all rows or none.

        Raises ConnectorError before any write if the columns differ from the existing ones.
        """


@runtime_checkable
class ProbedSink(Sink, Protocol):
    """A sink that can tell without a write whether it could write."""

    def probe(self, session: SparkSession, options: Mapping[str, Any], schema: StructType) -> None:
        """Raise ConnectorError if rows of this schema could not be written now; changes nothing."""


def text_cells(frame: DataFrame, rows: int | None) -> list[list[str | None]]:
    """Up to `rows` rows, or all, with every value as a STRING of at most 10,000 characters."""
    # Positions, not names: two columns of a query may have the same name.
    positional = frame.toDF(*[f"c{index}" for index in range(len(frame.columns))])
    limited = positional if rows is None else positional.limit(rows)
    strings = limited.select(*[_text_cell(name).alias(name) for name in positional.columns])
    return [list(row) for row in strings.collect()]


def _text_cell(name: str) -> Column:
    text = sql.col(name).cast("string")
    cut = sql.concat(sql.substring(text, 1, _CELL_CHARS), sql.lit("…"))
    return sql.when(sql.length(text) > _CELL_CHARS, cut).otherwise(text)


def preview(cells: list[list[str | None]]) -> list[list[str | None]]:
    """The first rows, with long values cut; secrets are masked before, as a part of one is not recognized."""
    shown = cells[:PREVIEW_ROWS]
    if has_secrets():
        shown = redacted(shown)
    return [
        [
            cell if cell is None or len(cell) <= PREVIEW_CHARS else f"{cell[: PREVIEW_CHARS - 1]}…"
            for cell in row
        ]
        for row in shown
    ]
