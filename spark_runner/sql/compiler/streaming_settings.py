"""The settings of streaming SQL engines (keys of Flink), and what each of them is here.

`docs/make_sql_settings.py` makes the table in docs/sql-settings.md from this one.
"""

import re
from dataclasses import dataclass

JOB_MODE = "job.mode"
JOB_TRIGGER = "job.trigger"
PREFIXES = (
    *("execution.", "jobmanager.", "parallelism.", "pipeline.", "python.", "restart-strategy."),
    *("sql-client.", "state.", "table.", "taskmanager."),
)
"""Keys that begin so, or are these words without the dot, are settings of streaming engines."""

_NONE = re.compile(r"(?!)")
_ZONE = re.compile(r"(?!default$).+", re.IGNORECASE)  # `default` is the zone of the machine
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_BYTES = re.compile(r"-1|[0-9]{1,18}")


@dataclass(frozen=True)
class StreamingSetting:
    """One key, or with `*` at its end all keys that begin so.

    A value in `accepted` (lower case) asks for what Spark always does. A value that matches `values` becomes
    that of the setting `becomes`; without one it changes no result. Each other value is refused; `instead` is
    what to do.
    """

    key: str
    instead: str
    accepted: tuple[str, ...] = ()
    becomes: str = ""
    values: re.Pattern[str] = _NONE

    @property
    def takes_values(self) -> bool:
        """Whether some values are accepted."""
        return bool(self.accepted) or self.values is not _NONE


def _refused(instead: str, *keys: str) -> tuple[StreamingSetting, ...]:
    return tuple(StreamingSetting(key, instead) for key in keys)


_NO_TIME = ("0", "0 ms", "0ms", "0 s", "0s")
_PARALLEL = "it needs a whole number from 1; without this key, Spark uses its own default"
_OPTIMIZER = "remove it: Spark's optimizer makes this decision itself"
_NO_UPDATES = "remove it: an INSERT writes each row once, and no row is updated later"
_NO_TTL = "remove it: WATERMARK FOR in the tables decides how long Spark keeps state"
_NO_STATE = "remove it: a batch keeps no state, and Spark decides how streams keep theirs"
_NO_LATENCY = f"remove it; {JOB_TRIGGER} is the time between two micro-batches of a stream"
_NO_WATERMARKS = (
    "remove it: Spark needs only WATERMARK FOR in the table, and applies it after each micro-batch"
)
_NO_ASYNC = (
    "remove it: Spark calls functions and reads tables inside its tasks, and the number of tasks limits both"
)
_MEMORY = "use `memory` of `driver` and `executor` in the definition"
_NO_CLIENT = "remove it: a script has no client; a table USING print shows rows"
_RETRY = "use `retry` of the definition"

STREAMING_SETTINGS: tuple[StreamingSetting, ...] = (
    # Modes and parallelism
    StreamingSetting("execution.runtime-mode", "use job.mode", becomes=JOB_MODE),
    StreamingSetting("execution.type", "use job.mode", becomes=JOB_MODE),  # until Flink 1.13
    *(
        StreamingSetting(key, _PARALLEL, becomes="spark.sql.shuffle.partitions", values=_COUNT)
        for key in ("table.exec.resource.default-parallelism", "parallelism.default", "execution.parallelism")
    ),
    *_refused(
        "use spark.sql.shuffle.partitions; Spark has no further limit",
        *("pipeline.max-parallelism", "execution.max-parallelism"),
    ),
    StreamingSetting(
        "table.local-time-zone",
        "it needs the name of a time zone, such as 'Europe/Paris'",
        becomes="spark.sql.session.timeZone",
        values=_ZONE,
    ),
    StreamingSetting("table.dml-sync", "remove it: a job always waits for its INSERTs", accepted=("true",)),
    StreamingSetting("table.sql-dialect", "remove it: every query is in Spark SQL", accepted=("default",)),
    # Aggregation
    StreamingSetting(
        "table.exec.mini-batch.enabled", "remove it: Spark always processes batches", accepted=("true",)
    ),
    StreamingSetting("table.exec.mini-batch.allow-latency", f"use {JOB_TRIGGER}", becomes=JOB_TRIGGER),
    StreamingSetting(
        "table.exec.mini-batch.size",
        "it needs a whole number from 1, and has no effect: time alone ends a micro-batch; to bound its size,"
        " use an option of the table that streams, such as max_files_per_trigger",
        values=_COUNT,
    ),
    StreamingSetting(
        "table.optimizer.agg-phase-strategy",
        "remove it: Spark always aggregates before and after the shuffle",
        accepted=("auto", "two_phase"),
    ),
    StreamingSetting(
        "table.optimizer.distinct-agg.split.enabled",
        "remove it: Spark always aggregates by distinct values first",
        accepted=("true",),
    ),
    *_refused(
        "remove it: Spark splits by distinct values, not into buckets",
        "table.optimizer.distinct-agg.split.bucket-num",
    ),
    *_refused(_OPTIMIZER, "table.optimizer.incremental-agg-enabled", "table.exec.local-hash-agg.adaptive.*"),
    # State, watermarks, checkpoints
    StreamingSetting("table.exec.state.ttl", _NO_TTL, accepted=_NO_TIME),
    *_refused(_NO_TTL, "execution.min-idle-state-retention", "execution.max-idle-state-retention"),
    StreamingSetting(
        "table.exec.source.idle-timeout",
        "remove it: a source without new rows holds the watermark back, unless"
        " spark.sql.streaming.multipleWatermarkPolicy is max",
        accepted=_NO_TIME,
    ),
    *_refused(
        _NO_WATERMARKS,
        *("pipeline.auto-watermark-interval", "pipeline.watermark-alignment.*"),
        *("pipeline.time-characteristic", "execution.time-characteristic"),
        "execution.periodic-watermarks-interval",
    ),
    *_refused(
        f"remove it: each micro-batch is a checkpoint, and {JOB_TRIGGER} is the time between two of them",
        *("execution.checkpointing.*", "execution.savepoint.*", "execution.state-recovery.*"),
    ),
    *_refused(_NO_STATE, "state.*", "table.exec.async-state.*"),
    *_refused(_RETRY, "restart-strategy.*", "execution.restart-strategy.*"),
    # Sinks and sources
    StreamingSetting(
        "table.exec.sink.not-null-enforcer",
        "leave such rows out with WHERE column IS NOT NULL",
        accepted=("error",),
    ),
    *_refused("check nested fields with WHERE", "table.exec.sink.nested-constraint-enforcer"),
    *_refused("shorten values with left(), extend them with rpad()", "table.exec.sink.type-length-enforcer"),
    *_refused(
        _NO_UPDATES,
        *("table.exec.sink.keyed-shuffle", "table.exec.sink.upsert-materialize"),
        *("table.exec.sink.upsert-materialize-strategy.*", "table.exec.deduplicate.*"),
        *("table.exec.source.cdc-events-duplicate", "table.optimizer.non-deterministic-update.strategy"),
    ),
    *_refused("remove it: time columns are written like all others", "table.exec.sink.rowtime-inserter"),
    *_refused(
        _NO_ASYNC,
        *("table.exec.async-lookup.*", "table.exec.async-scalar.*", "table.exec.async-table.*"),
        *("table.exec.async-ml-predict.*", "table.exec.async-agg.*", "table.exec.async-vector-search.*"),
    ),
    # Operators
    StreamingSetting("table.exec.sort.default-limit", "use LIMIT in the query", accepted=("-1",)),
    *_refused(
        "use spark.sql.ansi.enabled; with false a failed CAST gives NULL", "table.exec.legacy-cast-behaviour"
    ),
    *_refused("use hints in the query, such as /*+ MERGE(t) */", "table.exec.disabled-operators"),
    *_refused("use spark.sql.codegen.wholeStage", "table.exec.operator-fusion-codegen.enabled"),
    *_refused(
        "use spark.shuffle.spill.compress in `conf` of the definition", "table.exec.spill-compression.enabled"
    ),
    *_refused(
        "use spark.io.compression.codec in `conf` of the definition",
        "table.exec.spill-compression.block-size",
    ),
    *_refused(
        _MEMORY,
        *("table.exec.resource.external-buffer-memory", "table.exec.resource.hash-agg.memory"),
        *("table.exec.resource.hash-join.memory", "table.exec.resource.sort.memory"),
        "table.exec.window-agg.buffer-size-limit",
    ),
    *_refused(_NO_STATE, "table.exec.rank.topn-cache-size", "table.exec.interval-join.min-cleanup-interval"),
    *_refused(
        "remove it: Spark makes this decision itself",
        *("table.exec.sort.async-merge-enabled", "table.exec.sort.max-num-file-handles"),
        *("table.exec.shuffle-mode", "table.exec.simplify-operator-name-enabled"),
        *("table.exec.uid.format", "table.exec.uid.generation", "table.exec.unbounded-over.version"),
        *("table.generated-code.max-length", "execution.batch-shuffle-mode", "execution.sort.*"),
    ),
    # Optimizer
    StreamingSetting(
        "table.optimizer.join.broadcast-threshold",
        "it needs a number of bytes, or -1",
        becomes="spark.sql.autoBroadcastJoinThreshold",
        values=_BYTES,
    ),
    *_refused(
        "use spark.sql.cbo.enabled and spark.sql.cbo.joinReorder.enabled",
        "table.optimizer.join-reorder-enabled",
    ),
    *_refused("use spark.sql.cbo.joinReorder.dp.threshold", "table.optimizer.bushy-join-reorder-threshold"),
    *_refused(
        "use spark.sql.adaptive.autoBroadcastJoinThreshold",
        "table.optimizer.adaptive-broadcast-join.strategy",
    ),
    *_refused(
        "use spark.sql.adaptive.skewJoin.enabled, spark.sql.adaptive.skewJoin.skewedPartitionFactor and"
        " spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
        "table.optimizer.skewed-join-optimization.*",
    ),
    *_refused(
        "use spark.sql.optimizer.dynamicPartitionPruning.enabled", "table.optimizer.dynamic-filtering.enabled"
    ),
    *_refused(
        "use spark.sql.optimizer.runtime.bloomFilter.enabled and the settings beside it",
        "table.optimizer.runtime-filter.*",
    ),
    *_refused(
        "use spark.sql.exchange.reuse",
        *("table.optimizer.reuse-sub-plan-enabled", "table.optimizer.reuse-source-enabled"),
        "table.optimizer.reuse-optimize-block-with-digest-enabled",
    ),
    *_refused("remove the hints from the queries", "table.optimizer.ignore-query-hints"),
    *_refused(
        _OPTIMIZER,
        *("table.optimizer.multiple-input-enabled", "table.optimizer.source.report-statistics-enabled"),
        *("table.optimizer.sql2rel.project-merge.enabled", "table.optimizer.union-all-as-breakpoint-enabled"),
    ),
    # The job, its files and its processes
    *_refused("use `name` of the definition", "pipeline.name"),
    *_refused(
        "use `jars` or `packages` of `spark` in the definition", "pipeline.jars", "pipeline.classpaths"
    ),
    *_refused("use `files` of `spark` in the definition", "pipeline.cached-files"),
    *_refused("use `py_files` of `spark` in the definition", "python.*"),
    *_refused("use `variables` of the definition", "pipeline.global-job-parameters"),
    *_refused("use `master` of `spark` in the definition", "execution.target"),
    *_refused(_MEMORY, "jobmanager.*", "taskmanager.*"),
    *_refused(
        "remove it: Spark has no such operators",
        *("pipeline.auto-generate-uids", "pipeline.jobvertex-parallelism-overrides", "pipeline.object-reuse"),
        *("pipeline.operator-chaining.*", "pipeline.vertex-description-mode"),
        "pipeline.vertex-name-include-index-prefix",
    ),
    *_refused(
        "use spark.serializer in `conf` of the definition",
        *("pipeline.closure-cleaner-level", "pipeline.force-avro", "pipeline.force-kryo"),
        *("pipeline.generic-types", "pipeline.serialization-config", "pipeline.default-kryo-serializers"),
        *("pipeline.registered-kryo-types", "pipeline.registered-pojo-types"),
    ),
    *_refused(_NO_LATENCY, "execution.buffer-timeout.*"),
    *_refused(
        "remove it: a script runs until its last statement has ended",
        *("execution.attached", "execution.shutdown-on-attached-exit"),
    ),
    # Clients and catalogs
    *_refused(
        _NO_CLIENT,
        *("sql-client.*", "table.display.max-column-width", "execution.result-mode"),
        *("execution.max-table-result-rows", "execution.planner", "table.planner"),
    ),
    *_refused(
        "write the full name of a table, such as catalog.database.table",
        *("table.builtin-catalog-name", "table.builtin-database-name"),
        *("execution.current-catalog", "execution.current-database"),
    ),
    *_refused(
        "remove it: the names in a script exist only until it ends", "table.catalog-modification.listeners"
    ),
    *_refused("name the columns in SELECT", "table.column-expansion-strategy"),
    *_refused("write the options in CREATE TABLE", "table.dynamic-table-options.enabled"),
    *_refused("remove it: a script is compiled when it is submitted", "table.plan.*"),
    *_refused(
        "remove it: Spark downloads files into the directory of the run", "table.resources.download-dir"
    ),
    *_refused("remove it: a failed INSERT leaves its target unchanged", "table.rtas-ctas.atomicity-enabled"),
)
