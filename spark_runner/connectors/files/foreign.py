"""Refuses to overwrite a directory with files that Spark did not write."""

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.beside import PREFIX
from spark_runner.connectors.files.hadoop import file_system_at

SHOWN = 3  # names in the message: enough to recognise a directory
_MARKERS = {"_SUCCESS", "_temporary", "_metadata", "_common_metadata"}


def refuse_foreign_files(session: SparkSession, path: str) -> None:
    """Raise ConnectorError if `path` holds files that Spark did not write.

    An overwrite deletes the whole directory first: with a wrong path, a home directory.
    """
    files, target = file_system_at(session, path)
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
