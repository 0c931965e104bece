"""The names of a script as empty frames, and the reasons why some have no meaning."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, reason
from spark_runner.sql.execution.rehearsal import Rehearsal, UnknownColumns
from spark_runner.sql.execution.report import Report
from spark_runner.sql.execution.script_session import ScriptSession
from spark_runner.sql.execution.stream_frames import empty_frame, empty_stream, with_watermark
from spark_runner.sql.grammar.calls import calls
from spark_runner.sql.grammar.references import catalog_names, references
from spark_runner.sql.text.errors import SqlError

NEEDS_CATALOG = "--connect lets Spark look into catalogs"
_IN_THE_SCRIPT = {"inline"}  # connectors whose rows the script holds: reading them contacts nothing


class NotAnalysed(Exception):
    """The statement needs something that has an error of its own, or is unknown before a run."""


class AnalysedNames(Rehearsal):
    """Declares tables without their rows, and finds the statements that name what has an error."""

    connect = False
    broken: dict[str, str]  # lower-case names that have no meaning, with the reason
    lost_functions: set[str]  # lower-case names of functions with errors
    result: Report

    def declare(self, step: Mapping[str, Any]) -> None:
        """Make the name readable, or keep the reason why it has no meaning."""
        self.broken.pop(step["name"].lower(), None)
        try:
            ScriptSession.declare(self, step)
        except NotAnalysed as why:
            self._break(step, f"is not analysed, because {why}")
        except SqlError as error:
            if isinstance(error.__cause__, UnknownColumns):
                self._break(step, "has columns that are known when the script has written it")
                return
            self._break(step, "has an error")
            self.result.add(error)

    def kept(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """The frame for readers of a name; of a stream with its watermark."""
        return with_watermark(step, frame) if frame.isStreaming else frame

    def table_frame(self, step: Mapping[str, Any]) -> DataFrame | None:
        """An empty frame with the columns of the table, read from the source only where none are declared."""
        if step["connector"] in _IN_THE_SCRIPT or self.changed_places(step):
            return super().table_frame(step)
        if self.connect and not step["written"]:
            self._probe_source(step)
        if (schema := self.schema(step)) is not None:
            return (empty_stream if step.get("stream") else empty_frame)(self.session, schema)
        frame = super().table_frame(step)
        if frame is None:
            return None
        if step["name"] not in self.result.contacted:
            self.result.contacted.append(step["name"])
        return empty_frame(self.session, frame.schema)

    def _probe_source(self, step: Mapping[str, Any]) -> None:
        if any(probe["table"] == step["name"] and probe["verb"] == "read" for probe in self.result.probes):
            return
        with self.probed(step, "read") as probe:
            frame = ScriptSession.table_frame(self, step)
            row = None if frame is None else frame.first()
            probe["rows"] = 0 if row is None else 1

    @contextlib.contextmanager
    def probed(self, table: Mapping[str, Any], verb: str) -> Iterator[dict[str, Any]]:
        """Report how a read or write of a table went without a run; its error is one of the script."""
        probe: dict[str, Any] = {"table": table["name"], "verb": verb, "ok": True}
        self.result.probes.append(probe)
        try:
            yield probe
        except SqlError as error:
            probe |= {"ok": False, "message": error.message}
            self.result.add(error)
        except (ConnectorError, *SPARK_ERRORS) as error:
            words = str(error) if isinstance(error, ConnectorError) else reason(error)
            probe |= {"ok": False, "message": words}
            self.result.add(self.error(f"table '{table['name']}': {words}", table))

    def lose(self, step: Mapping[str, Any]) -> None:
        """Keep that what the statement declares has no meaning."""
        if step["kind"] == "table":
            self._break(step, "has an error")
        elif step["kind"] == "function":
            self.lost_functions.add(step["name"].lower())

    def _break(self, step: Mapping[str, Any], words: str) -> None:
        self.broken[step["name"].lower()] = words
        with contextlib.suppress(*SPARK_ERRORS):
            self.session.catalog.dropTempView(step["name"])

    def refuse_broken(self, step: Mapping[str, Any], part: str) -> None:
        """Raise NotAnalysed if a text names something without a meaning: errors would be consequences."""
        tokens = self.passage(step[part]).tokens
        for name in references(tokens):
            if name in self.broken:
                raise NotAnalysed(f"'{name}' {self.broken[name]}")
        if lost := next((name for name, *_ in calls(tokens) if name in self.lost_functions), None):
            raise NotAnalysed(f"function '{lost}' has an error")
        for full_name in [] if self.connect else self.named(step, part):
            raise NotAnalysed(f"it reads '{full_name}': {NEEDS_CATALOG}")

    def named(self, step: Mapping[str, Any], part: str) -> list[str]:
        """The names of catalogs and of their tables in a text of a step."""
        return [str(name) for name in catalog_names(self.passage(step[part]).tokens).values()]
