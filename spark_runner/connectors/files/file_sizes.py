"""Fewer and larger files: the rows of a write are divided anew, by their size in a shuffle of Spark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.files.format import COLUMNAR
from spark_runner.connectors.rows import column

_ADAPTIVE = "spark.sql.adaptive"
_COLUMNAR_GAIN = 3  # bytes of a shuffle that become one byte of a columnar or compressed file: typically
_PLAIN_GAIN = 1  # likewise, of plain text


@contextmanager
def sized(frame: DataFrame, file_format: str, options: Mapping[str, Any]) -> Iterator[DataFrame]:
    """The frame to write, whose partitions become files of about `target_file_size` bytes.

    The rows of a folder come together first. The settings of Spark for that are those of the session until
    the end of the block, so that the write must be in it.
    """
    if not (size := int(options.get("target_file_size", 0))):
        yield frame
        return
    is_small = file_format in COLUMNAR or options["compression"] != "none"
    bytes_shuffled = size * (_COLUMNAR_GAIN if is_small else _PLAIN_GAIN)
    settings = {
        f"{_ADAPTIVE}.enabled": "true",  # Spark turns it off in streams
        f"{_ADAPTIVE}.advisoryPartitionSizeInBytes": f"{bytes_shuffled}b",
        # Otherwise small writes have a file for each processor.
        f"{_ADAPTIVE}.coalescePartitions.parallelismFirst": "false",
    }
    conf = frame.sparkSession.conf
    before = {name: conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            conf.set(name, value)
        yield frame.hint("rebalance", *[column(name) for name in options["partition_by"]])
    finally:
        for name, found in before.items():
            conf.unset(name) if found is None else conf.set(name, found)
