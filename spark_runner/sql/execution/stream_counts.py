"""Keeps the numbers of rows that do not fit beside the progress of streams, by run.

A source has one file. It has for each of its last runs the numbers of ended micro-batches, and those of the
last one of each query, which may be repeated: by a further attempt of the run, or by another run, which then
has read its rows.
"""

import json
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.execution.hadoop_folders import folders_of

Numbers = dict[str, int]  # rows, quarantined, dropped
NOTHING: Numbers = {"rows": 0, "quarantined": 0, "dropped": 0}
_FILE = "numbers.json"
_MOST_RUNS = 100  # a run with a further attempt after so many others counts from zero


class StreamCounts:
    """The numbers of one run, in a folder that outlives its attempts; for each source from one thread."""

    def __init__(self, session: SparkSession, place: str, run_key: str) -> None:
        self.folders, self.place, self.run_key = folders_of(session, place), place, run_key
        self._runs = dict[str, dict[str, Any]]()  # by source: by run, the latest at the end

    def total(self, source: str) -> Numbers:
        """The numbers of this run so far."""
        mine = self.runs(source).get(self.run_key)
        return _sum(mine["ended"], *mine["last"].values()) if mine else NOTHING

    def keep(self, source: str, stream: str, batch: int, numbers: Numbers) -> Numbers:
        """Store the numbers of a batch of a query, which replace those of an earlier try; the new total."""
        runs = self.runs(source)
        mine = runs.pop(self.run_key, {"ended": NOTHING, "last": {}})
        for other in runs.values():
            if other["last"].get(stream, {}).get("batch") == batch:
                del other["last"][stream]
        last = mine["last"].get(stream)
        if last and last["batch"] != batch:
            mine["ended"] = _sum(mine["ended"], last)
        mine["last"][stream] = {"batch": batch, **numbers}
        runs[self.run_key] = mine
        for run in list(runs)[:-_MOST_RUNS]:
            del runs[run]
        self.folders.make(f"{self.place}/{source}")
        self.folders.replace(self._file(source), json.dumps(runs))
        return self.total(source)

    def runs(self, source: str) -> dict[str, Any]:
        """What is stored of each run; raises ConnectorError if that is damaged."""
        if source not in self._runs:
            text = self.folders.read(self._file(source))
            self._runs[source] = _parsed(text, self._file(source)) if text else {}
        return self._runs[source]

    def _file(self, source: str) -> str:
        return f"{self.place}/{source}/{_FILE}"


def _sum(*parts: Numbers) -> Numbers:
    return {name: sum(each[name] for each in parts) for name in NOTHING}


def _parsed(text: str, file: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
        for run in found.values():
            _sum(run["ended"], *run["last"].values())
            for last in run["last"].values():
                int(last["batch"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConnectorError(f"'{file}' is damaged; restore or delete it") from error
    return found
