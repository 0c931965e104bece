"""Refuses to read a file that Spark leaves out because of its name."""

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.hadoop import file_system_at

_COPYING = "._COPYING_"  # of a file that `hdfs dfs -put` has not completed


def refuse_hidden_file(session: SparkSession, path: str) -> None:
    """Raise ConnectorError if `path` names a file that Spark leaves out: the table would have no rows.

    The rule for names is that of Spark's HadoopFSUtils. A folder of such a name is read.
    """
    name = path.rstrip("/").rsplit("/", 1)[-1]
    is_hidden = name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(_COPYING)
    if not is_hidden:
        return
    files, pattern = file_system_at(session, path)
    if any(status.isFile() for status in files.globStatus(pattern) or ()):
        reason = f"ends with '{_COPYING}'" if name.endswith(_COPYING) else f"begins with '{name[0]}'"
        raise ConnectorError(
            f"Spark leaves out the file '{path}', because its name {reason}; give it another name"
        )
