"""Parquet, CSV and JSON files, as source and as sink."""

import os
import urllib.parse
from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.alike import refuse_unlike_file
from spark_runner.connectors.base import PREVIEW_ROWS, Writer, Written, preview, text_cells
from spark_runner.connectors.errors import ConnectorError, TargetChanged
from spark_runner.connectors.targets import PREFIX, TargetDirectory, is_in_swap

SHOWN = 3  # names in the message: enough to recognise a directory
_MARKERS = {"_SUCCESS", "_temporary", "_metadata", "_common_metadata"}


def refuse_foreign_files(session: SparkSession, path: str) -> None:
    """Raise ConnectorError if `path` holds files that Spark did not write.

    An overwrite deletes the whole directory first: with a wrong path, a home directory.
    """
    jvm, java = session._jvm, session._jsparkSession  # noqa: SLF001 - PySpark has no public way to a file system
    if jvm is None:
        return  # Spark Connect gives no access to the file system
    target = jvm.org.apache.hadoop.fs.Path(path)
    files = target.getFileSystem(java.sessionState().newHadoopConf())
    if not files.exists(target):
        return
    found = [(status.getPath().getName(), status.isDirectory()) for status in files.listStatus(target)]
    foreign = [name for name, directory in found if not _written_by_spark(name, directory=directory)]
    if foreign:
        names = ", ".join(sorted(foreign)[:SHOWN]) + (", ..." if len(foreign) > SHOWN else "")
        raise ConnectorError(
            f"refused: overwriting '{path}' would delete what Spark did not write ({names});"
            " choose another path, or INSERT INTO"
        )


def _written_by_spark(name: str, *, directory: bool) -> bool:
    if name.startswith((".spark-staging-", PREFIX, "part-", ".part-")):  # .part-*.crc are checksums
        return True
    if directory and "=" in name:  # a partition
        return True
    return name.removeprefix(".").removesuffix(".crc") in _MARKERS


class Files:
    """One file format of Spark; the options are those of `spark_runner.connectors.options`."""

    def __init__(self, file_format: str) -> None:
        self.format = file_format

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The files below `path`; a record that does not fit the declared columns fails the job."""
        reader = session.read.format(self.format).options(**self.format_options(options))
        if self.format != "parquet":
            # Spark would silently turn unreadable values into NULL.
            reader = reader.option("mode", "FAILFAST")
        if self.format == "csv" and options["header"]:
            # Otherwise Spark matches declared columns by position and ignores the header.
            reader = reader.option("enforceSchema", "false")
        if schema is not None:
            reader = reader.schema(schema)
        try:
            return reader.load(options["path"])
        except AnalysisException as error:
            # The path is missing only during the swap of another job.
            if error.getCondition() == "PATH_NOT_FOUND" and is_in_swap(session, str(options["path"])):
                raise TargetChanged(f"'{options['path']}' is being replaced by another job") from error
            raise

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove the output of earlier attempts of this run, and finish incomplete swaps."""
        TargetDirectory(session, str(options["path"]), writer).recover()

    def write(self, frame: DataFrame, options: Mapping[str, Any], mode: str, writer: Writer) -> Written:
        """Write the frame beside its target, then move it there.

        Raises ConnectorError if that would destroy its input or foreign files, or mix different columns.
        """
        path, session = str(options["path"]), frame.sparkSession
        _refuse_own_input(frame, path)
        target = TargetDirectory(session, path, writer)
        target.check()
        if mode == "overwrite":
            target.check_replaceable()
            refuse_foreign_files(session, path)
        is_empty = mode == "overwrite" or self._can_be_added(frame, target, options, mode)
        observation = Observation()
        counted = frame.observe(
            observation, sql.expr("count(1)").alias("rows"), self._kept(frame, options).alias("kept")
        )
        saver = counted.write.format(self.format).mode("overwrite").options(**self.format_options(options))
        if self.format == "json":
            saver = saver.option("ignoreNullFields", "false")
        if options["partition_by"]:
            saver = saver.partitionBy(*options["partition_by"])
        try:
            saver.option("compression", options["compression"]).save(target.staging)
            rows, kept = int(observation.get["rows"]), int(observation.get["kept"])
            if kept < rows:
                raise ConnectorError(
                    f"refused: of {rows} rows {rows - kept} have no value, and Spark leaves such rows out of"
                    " a CSV file with one column; give option 'null_value'"
                )
            if target.is_local and not (session.sparkContext.master or "").startswith("local"):
                self._refuse_unseen(session, target, options, rows)
            shown = self._read_back(frame, {**options, "path": target.staging})
            with target.locked():
                if mode == "overwrite":
                    target.replace()
                else:
                    if is_empty:  # it was empty before, and another writer may have added rows
                        self._can_be_added(frame, target, options, mode)
                    target.add()
        finally:
            target.discard()
        return Written(rows, shown)

    def _can_be_added(
        self, frame: DataFrame, target: TargetDirectory, options: Mapping[str, Any], mode: str
    ) -> bool:
        """Whether the target has no data; raises ConnectorError if its data has other columns."""
        some_file, path = target.first_file(), str(options["path"])
        if some_file is None:
            return True
        if mode == "error":
            raise ConnectorError(
                f"refused: there are data in '{path}' already, and the table has mode 'error'"
            )
        try:
            refuse_unlike_file(frame, some_file, self.format, options, self.format_options(options))
        except AnalysisException as error:
            if target.first_file() != some_file:
                raise TargetChanged(f"'{path}' is being replaced by another job") from error
            raise
        return False

    def _kept(self, frame: DataFrame, options: Mapping[str, Any]) -> Column:
        """The number of rows that the files will hold."""
        names, _ = _divided(frame, options)
        if self.format == "csv" and not options["null_value"] and len(names) == 1:
            return sql.count(_column(names[0]))
        return sql.expr("count(1)")

    def _refuse_unseen(
        self, session: SparkSession, target: TargetDirectory, options: Mapping[str, Any], rows: int
    ) -> None:
        """Raise ConnectorError if executors on other hosts wrote files that this host does not see."""
        seen, files = 0, target.staged_files()
        if files and self.format == "parquet":
            seen = session.read.parquet(target.staging).count()
        elif files:
            # Lines: a value with line breaks counts more than once, and every row at least once.
            headers = files if options.get("header") else 0
            seen = session.read.text(target.staging).count() - headers
        if seen < rows:
            raise ConnectorError(
                f"refused: the executors wrote {rows} rows, of which this host sees {seen}; "
                f"'{options['path']}' must lie in a folder that all nodes share"
            )

    def _read_back(self, frame: DataFrame, options: Mapping[str, Any]) -> list[list[str | None]]:
        reader = frame.sparkSession.read.format(self.format).options(**self.format_options(options))
        if self.format == "parquet":
            reader = reader.schema(frame.schema)  # Spark would run a job to find it in the files
        else:
            # The text in the files, unparsed, so that no value can fail to parse.
            names, partitions = _divided(frame, options)
            fields = [StructField(name, StringType()) for name in [*names, *partitions]]
            reader = reader.schema(StructType(fields))
        columns = [_column(name) for name in frame.columns]
        return preview(text_cells(reader.load(options["path"]).select(*columns), PREVIEW_ROWS))

    def format_options(self, options: Mapping[str, Any]) -> dict[str, str]:
        """The options of Spark that readers and writers share."""
        if self.format != "csv":
            return {}
        return {
            "header": str(options["header"]).lower(),
            "sep": options["delimiter"],
            "nullValue": options["null_value"],
        }


def _divided(frame: DataFrame, options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The columns in the files, and the partition columns, which become folders."""
    partitions = {name.lower() for name in options["partition_by"]}
    names = [name for name in frame.columns if name.lower() not in partitions]
    return names, [name for name in frame.columns if name.lower() in partitions]


def _column(name: str) -> Column:
    return sql.col(f"`{name.replace('`', '``')}`")


def _refuse_own_input(frame: DataFrame, path: str) -> None:
    """Refuse a target that holds files which the query reads, under any name of theirs."""
    if found := file_read_below(frame, path):
        raise ConnectorError(f"refused: the query reads '{found}', which lies in its target '{path}'")


def file_read_below(frame: DataFrame, path: str) -> str | None:
    """A file in `path` that a query reads under any name; None without one."""
    target = _local(urllib.parse.quote(path, safe="/:") if path.startswith("file:") else path)
    found = map(_local, _input_files(frame))
    return next((file for file in found if file == target or file.startswith(target.rstrip("/") + "/")), None)


def _input_files(frame: DataFrame) -> list[str]:
    """All files that a query reads; `DataFrame.inputFiles` omits those of subqueries and of cached rows."""
    files = frame.inputFiles()
    java, jvm = frame.sparkSession._jsparkSession, frame.sparkSession._jvm  # noqa: SLF001 - no public way to subqueries
    if jvm is not None:
        query = frame._jdf.queryExecution()  # noqa: SLF001 - as above
        plans = [query.analyzed(), *_items(query.analyzed().subqueriesAll())]
        rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows
        found = [rows(java, plan) for plan in plans[1:]]
        for plan, part in zip(plans, [frame._jdf, *found], strict=True):  # noqa: SLF001 - as above
            if part is not frame._jdf:  # noqa: SLF001 - as above
                files += part.inputFiles()
            leaves = _items(part.queryExecution().optimizedPlan().collectLeaves())
            if any(leaf.getClass().getSimpleName() == "InMemoryRelation" for leaf in leaves):
                # The relations themselves are not cached.
                for relation in _items(plan.collectLeaves()):
                    files += rows(java, relation).inputFiles()
    return files


def _items(found: Any) -> list[Any]:
    """The items of a Seq of Scala."""
    return [found.apply(index) for index in range(found.size())]


def _local(location: str) -> str:
    """A local path with its links resolved; other locations unchanged."""
    if location.startswith("file:"):
        location = urllib.parse.unquote("/" + location.removeprefix("file:").lstrip("/"))
    return os.path.realpath(location) if location.startswith("/") else location
