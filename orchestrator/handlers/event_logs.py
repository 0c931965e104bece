"""Spark's event logs: the properties that turn them on for a pool, and the address of the log of a run."""

import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from loguru import logger

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.config.tables import ALL_POOLS, of_pool
from orchestrator.handlers.event_log_folder import FolderTrouble, make_folder
from orchestrator.model.spark import Spark

_ENABLED, _FOLDER = "spark.eventLog.enabled", "spark.eventLog.dir"
_COMPRESS, _ROLLING = "spark.eventLog.compress", "spark.eventLog.rolling.enabled"
_CODEC = "spark.eventLog.compression.codec"
_LOCAL_ID = "spark.test.appId"
"""The id of an application with a local master, by default `local-<milliseconds>`: of two drivers that start
in the same millisecond Spark fails the second, whose log exists. Other masters count their applications."""

_DEFAULT_FOLDER = "file:///tmp/spark-events"  # Spark's own
_CODECS = {"lz4", "lzf", "snappy", "zstd"}
_ON_THIS_HOST = {"local", "standalone", "yarn"}
"""The backends whose drivers are processes of the worker's host in client mode."""

_APPLICATION = re.compile(r"[A-Za-z0-9_-]{1,200}")
_SHOWN = re.compile(r"(?!.*\$\{)[!\"$->A-~]{1,300}")  # an `@` may follow a login, and a `?` precede a key


@dataclass(frozen=True, slots=True)
class EventLogs:
    """The settings of event logs and the users of drivers, by pool (* = all)."""

    tables: Mapping[str, EventLogSettings] = field(default_factory=dict)
    run_as: Mapping[str, str] = field(default_factory=dict)

    def properties(self, pool: str, spark: Spark) -> dict[str, str]:
        """The properties that the pool adds to those of a job, which win; empty for a job without logs of it.

        A job that turns event logs off, or names a folder itself, gets none. Neither does a job that starts
        warm, because all jobs of a warm server are one application; and in a folder of the worker's host no
        driver elsewhere could write.
        """
        own, found, target = spark.conf, of_pool(self.tables, pool), spark.target
        if found is None or not found.url or _FOLDER in own or not _is_true(own.get(_ENABLED, "true")):
            return {}
        if spark.start == "warm" and target.backend == "local":
            return {}
        if found.local_folder and (target.deploy_mode != "client" or target.backend not in _ON_THIS_HOST):
            return {}
        added = {
            _ENABLED: "true",
            _FOLDER: found.url,
            _COMPRESS: str(found.compress).lower(),
            _ROLLING: str(bool(found.file_size)).lower(),
            "spark.eventLog.rolling.maxFileSize": found.file_size,
            "spark.eventLog.logStageExecutorMetrics": "true",
        }
        return {name: value for name, value in added.items() if value and name not in own}

    def prepared(self, pool: str, spark: Spark) -> dict[str, str]:
        """The same, after the folder is made where it is one of this host; empty if that is impossible.

        Spark fails an application whose folder is missing: a job runs without a log instead, and the worker
        logs a warning.
        """
        added, found = self.properties(pool, spark), of_pool(self.tables, pool)
        if added and found is not None and found.local_folder:
            try:
                folder = found.local_folder
                make_folder(folder, of_pool(self.run_as, pool), shared=self._is_shared(folder))
            except FolderTrouble as trouble:
                logger.warning("jobs of pool {} have no event logs: {}", pool, trouble)
                return {}
        if added and spark.target.backend == "local":
            its_id = f"local-{time.time_ns() // 10**6}{secrets.randbelow(10**6):06}"
            # A program that starts Spark a second time has the same id.
            added |= {_LOCAL_ID: its_id, "spark.eventLog.overwrite": "true"}
        return added

    def address(self, pool: str, spark: Spark, application_id: str | None) -> str | None:
        """The page of an ended application at the history server, else the URL of its log; None without.

        The driver reports the id, so one that is none of Spark's gives no address.
        """
        conf = {**self.properties(pool, spark), **spark.conf}
        is_logged = _is_true(conf.get(_ENABLED, "false"))
        if not (is_logged and application_id and _APPLICATION.fullmatch(application_id)):
            return None
        folder = conf.get(_FOLDER, _DEFAULT_FOLDER).rstrip("/")
        found, target = of_pool(self.tables, pool), spark.target
        # Only in cluster mode YARN numbers its attempts; the worker never lets it make a second one.
        number = "1" if (target.backend, target.deploy_mode) == ("yarn", "cluster") else ""
        if found is not None and found.history_server and folder == found.url:
            return "/".join(filter(None, (found.history_server, "history", application_id, number)))
        name = "_".join(filter(None, (application_id.lower(), number)))
        return f"{folder}/{_log_name(conf, name)}".rstrip("/") if _SHOWN.fullmatch(folder) else None

    def _is_shared(self, folder: str) -> bool:
        """Whether drivers of other users than the worker's write to a folder, as far as the settings say."""
        return any(
            of_pool(self.run_as, pool) or (pool == ALL_POOLS and self.run_as)
            for pool, table in self.tables.items()
            if table.local_folder == folder
        )


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"


def _log_name(conf: Mapping[str, str], name: str) -> str:
    """The name of a log in its folder, as Spark's EventLogFileWriter makes it; empty where it is unknown."""
    if _is_true(conf.get(_ROLLING, "true")):
        return f"eventlog_v2_{name}"
    if not _is_true(conf.get(_COMPRESS, "true")):
        return name
    codec = conf.get(_CODEC, "zstd").lower()
    return f"{name}.{codec}" if codec in _CODECS else ""
