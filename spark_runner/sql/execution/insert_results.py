"""What an INSERT has written, and the name of its rows."""

from collections.abc import Mapping
from typing import Any

from spark_runner.connectors.base import Written
from spark_runner.sql.execution.quarantine import Origin
from spark_runner.sql.execution.stream_query import StreamInsert, StreamQuery


def result_of(
    table: Mapping[str, Any], step: Mapping[str, Any], columns: list[str], written: Written, seconds: float
) -> dict[str, Any]:
    """What `execute` returns for an INSERT."""
    return {
        "target": table["name"],
        "connector": table["connector"],
        "location": table["location"],
        "rows": written.rows,
        "seconds": seconds,
        "line": step["line"],
        "columns": columns,
        "preview": written.preview,
    }


def streamed_result_of(insert: StreamInsert, query: StreamQuery) -> dict[str, Any]:
    """What it returns for one that is a streaming query, or a part of one."""
    writer = insert.writer
    written = Written(writer.rows, writer.preview)
    found = result_of(insert.target.table, insert.step, insert.columns, written, query.seconds)
    return {**found, "batches": writer.batches}


def source_of(table: Mapping[str, Any], step: Mapping[str, Any]) -> Origin:
    """The name of the rows of an INSERT, in the quarantine."""
    return Origin.of(f"{table['name']} (line {step['line']})", step)
