"""Names whose rows Spark keeps in its cache, until the script releases them or ends."""

import uuid
from collections.abc import Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

# Spark's default for frames, on disk where the memory is full; PySpark's MEMORY_AND_DISK serializes twice.
_LEVEL = StorageLevel.MEMORY_AND_DISK_DESER


# Without it a cached shuffle keeps its 200 partitions: hundreds of tiny tasks and files for each reader.
_MERGES_PARTITIONS = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"


class CachedNames:
    """The cached tables and views of one script."""

    def __init__(self, session: SparkSession) -> None:
        if not session.sparkContext.getConf().contains(_MERGES_PARTITIONS):
            session.conf.set(_MERGES_PARTITIONS, "true")
        self._steps: dict[str, Mapping[str, Any]] = {}  # by lower-case name
        self._frames: dict[str, DataFrame] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the rows of a name are kept."""
        return name.lower() in self._steps

    def add(self, step: Mapping[str, Any]) -> None:
        """Keep the rows of a table or view from its next declaration on."""
        self._steps[step["name"].lower()] = step

    def remove(self, name: str) -> None:
        """Release the rows of a name; its readers compute them again."""
        self._steps.pop(name.lower(), None)
        self._release(name.lower())

    def clear(self) -> None:
        """Release all rows: in a JVM that other jobs use they would outlive the session of the script."""
        for name in list(self._steps):
            self.remove(name)

    def declared(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """The frame for readers of a table or view that is declared, perhaps again."""
        name = step["name"].lower()
        self._release(name)  # the frame reads the files that exist now
        if self._steps.get(name) is not step:
            return frame  # another meaning of the name is cached: a later or an earlier one
        # Spark looks up cached rows by their plan, for all sessions of a JVM. With this condition no other
        # plan is equal, so that no other job reads these rows, which may be older than its files.
        mark = uuid.uuid4().hex
        kept = frame.where(sql.lit(mark) == sql.lit(mark))
        self._frames[name] = kept.persist(_LEVEL)
        return kept

    def _release(self, name: str) -> None:
        if frame := self._frames.pop(name, None):
            frame.unpersist()
