"""Looks at a target directory, in whatever file system of Spark it is, before it is overwritten."""

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError


def refuse_foreign_files(session: SparkSession, path: str) -> None:
    """Raises ConnectorError if `path` holds anything that Spark would not have written there.

    Overwriting deletes the whole directory first: with a wrong path, somebody's home.
    """
    jvm, java = session._jvm, session._jsparkSession  # noqa: SLF001 - PySpark has no public way to a file system
    if jvm is None:
        return  # Spark Connect: the file system is out of sight
    target = jvm.org.apache.hadoop.fs.Path(path)
    files = target.getFileSystem(java.sessionState().newHadoopConf())
    if not files.exists(target):
        return
    if files.getFileStatus(target).isFile():
        raise ConnectorError(f"refused: '{path}' is a file; a target is a directory")
    foreign = [
        name
        for name in (status.getPath().getName() for status in files.listStatus(target))
        if not _written_by_spark(name)
    ]
    if foreign:
        names = ", ".join(sorted(foreign)[:3]) + (", ..." if len(foreign) > 3 else "")  # noqa: PLR2004 - enough to tell what it is
        raise ConnectorError(
            f"refused: overwriting '{path}' would delete what Spark did not write ({names});"
            " choose another path, or mode 'append'"
        )


def _written_by_spark(name: str) -> bool:
    # Files, markers (_SUCCESS, _temporary), checksums (.part-*.crc), directories of partitions (k=v).
    return name.startswith(("part-", "_", ".part-", "._")) or "=" in name
