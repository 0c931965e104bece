"""Checks a sink before an INSERT, without a write: what its format can hold, whether it is writable."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import DataFrame

from spark_runner.connectors.base import ProbedSink, Writer
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.alike import refuse_unlike_file
from spark_runner.connectors.files.format import format_options
from spark_runner.connectors.files.hadoop import file_system_at
from spark_runner.connectors.files.refused_targets import refuse_target
from spark_runner.connectors.files.s3 import use_bucket
from spark_runner.connectors.files.targets import TargetDirectory
from spark_runner.connectors.files.unheld import refuse_unheld_columns
from spark_runner.connectors.java_classes import java_class
from spark_runner.connectors.parts import Parts
from spark_runner.sql.execution.casts import type_name

_FORMATS = "org.apache.spark.sql.execution.datasources"
_CLASSES = {
    "csv": f"{_FORMATS}.csv.CSVFileFormat",
    "json": f"{_FORMATS}.json.JsonFileFormat",
    "orc": f"{_FORMATS}.orc.OrcFileFormat",
    "parquet": f"{_FORMATS}.parquet.ParquetFileFormat",
}


def guarantee_of_files(*, overwrite: bool) -> str:
    """What a folder of files promises when an attempt runs again, in one sentence."""
    if overwrite:
        return "exactly once: the new rows replace the old ones as a whole, or nothing changes"
    return "exactly once: all rows are added or none, and a further attempt removes those of an earlier one"


def refusals(frame: DataFrame, table: Mapping[str, Any]) -> Iterator[str]:
    """The reasons why files of the format of a table cannot hold the rows of a frame."""
    yield from _refusals_of_columns(frame, table)
    if table["connector"] not in _CLASSES:
        return
    counts = Counter(name.lower() for name in frame.columns)
    for name in dict.fromkeys(name for name in frame.columns if counts[name.lower()] > 1):
        yield f"the files would have column '{name}' more than once; give the columns other names"
    partitions = {name.lower() for name in table["options"]["partition_by"]}
    for name in sorted(partitions - counts.keys()):
        yield f"partition_by names '{name}', which the query does not have"
    if partitions and partitions >= counts.keys():
        yield "all columns are in partition_by, so that the files would have none"
    if (jvm := frame.sparkSession._jvm) is None:  # noqa: SLF001 - PySpark has no public way to the formats
        return
    found: Any = jvm
    for part in _CLASSES[table["connector"]].split("."):
        found = getattr(found, part)
    holds = found()
    types = frame._jdf.schema().fields()  # noqa: SLF001 - as above
    for field, its in zip(frame.schema.fields, types, strict=True):
        if field.name.lower() not in partitions and not holds.supportDataType(its.dataType()):
            kind = type_name(field.dataType)
            yield f"column '{field.name}' is {kind}, which {table['connector']} files cannot hold"


def _refusals_of_columns(frame: DataFrame, table: Mapping[str, Any]) -> Iterator[str]:
    if table["connector"] in {*_CLASSES, "text"}:
        try:
            refuse_unheld_columns(frame.schema, table["connector"], table["options"])
        except ConnectorError as error:
            yield str(error)


def probe_target(connectors: Parts, frame: DataFrame, table: Mapping[str, Any], *, overwrite: bool) -> bool:
    """Raise ConnectorError if the rows of an empty frame could not be written now; changes nothing.

    False: the sink has no check without a write.
    """
    options = table["options"]
    if not connectors.writes_files(table["connector"]):
        sink = connectors.sink(table["connector"])
        if not isinstance(sink, ProbedSink):
            return False
        sink.probe(frame.sparkSession, options, frame.schema)
        return True
    session, path = frame.sparkSession, str(options["path"])
    use_bucket(session, options)
    target = TargetDirectory(session, path, Writer(""))
    refuse_target(session, target, options, overwrite=overwrite)
    if not overwrite and (some_file := target.first_file()) is not None:
        if options["mode"] == "error":
            raise ConnectorError(f"there are data in '{path}' already, and the table has mode 'error'")
        reading = format_options(table["connector"], options)
        refuse_unlike_file(frame, some_file, table["connector"], options, reading)
    _check_writable(frame, path)
    return True


def _check_writable(frame: DataFrame, path: str) -> None:
    """Raise ConnectorError if the nearest existing folder of a path is not writable for this user."""
    files, place = file_system_at(frame.sparkSession, path)
    place = files.makeQualified(place)
    while not files.exists(place) and place.getParent() is not None:
        place = place.getParent()
    is_local = place.toUri().getScheme() == "file"
    folder = place.toUri().getPath()
    if not files.getFileStatus(place).isDirectory():
        raise ConnectorError(f"'{folder}' is a file, so that nothing can be created below it")
    if is_local and not os.access(Path(folder), os.W_OK | os.X_OK):
        raise ConnectorError(f"this user may not write in '{folder}'")
    if not is_local:
        try:
            action = java_class(frame.sparkSession, "org.apache.hadoop.fs.permission.FsAction")
            files.access(place, action.WRITE)
        except Py4JJavaError as error:
            words = error.java_exception.getMessage()
            raise ConnectorError(f"this user may not write in '{place.toString()}': {words}") from error
