"""What a task of Spark does to copy its rows into a table of PostgreSQL that refuses some of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_runner.connectors.jdbc.copy_task import CopyTask, lines_of
from spark_runner.connectors.jdbc.failures import refused_row
from spark_runner.connectors.jdbc.wire import Wire, WireError
from spark_runner.connectors.sql_errors import is_of_a_row

_MARKS = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True)
class SievingCopyTask(CopyTask):
    """Copies the lines that the table takes, and of the others the reasons, and the second column: the rows.

    Lines that are refused together are halved, and tried again.
    """

    reasons: str  # the statement that copies reasons and rows
    most: int  # such rows; with more of them the copy fails

    def copy(self, wire: Wire, settings: str, batches: Iterator[Any]) -> int:
        """Copy all lines; returns their number, or raises WireError."""
        rows = refused = 0
        for batch in batches:
            found = list[str]()
            with wire.transaction(settings):  # for each batch, as no transaction should wait for Spark
                for error, row in self._refused(wire, batch):
                    refused += 1
                    if refused > self.most:
                        raise WireError(
                            f"more than {self.most:,} rows of this write, such as: {error}", error.state
                        )
                    texts = refused_row(error.state, str(error)), row
                    found.append("\t".join(text.translate(_MARKS) for text in texts) + "\n")
                if found:
                    wire.copy_in(self.reasons, ["".join(found).encode()])
            rows += batch.num_rows
        return rows

    def _refused(self, wire: Wire, batch: Any) -> Iterator[tuple[WireError, str]]:
        """Copy the lines of a batch that the table takes; the error and the row of each other."""
        wire.run("SAVEPOINT part")
        try:
            wire.copy_in(self.statement, [lines_of(batch)])
        except WireError as error:
            if not is_of_a_row(error.state):
                raise
            wire.run("ROLLBACK TO part; RELEASE part")
            if batch.num_rows == 1:
                yield error, batch.column(1)[0].as_py()
                return
            half = batch.num_rows // 2
            yield from self._refused(wire, batch.slice(0, half))
            yield from self._refused(wire, batch.slice(half))
        else:
            wire.run("RELEASE part")
