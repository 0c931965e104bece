"""What the texts and tables of a plan mean in a session of Spark."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.parts import Parts
from spark_runner.references.errors import Unresolved
from spark_runner.references.resolver import Resolver
from spark_runner.sql.execution.columns import DeclaredColumns
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, SentTexts
from spark_runner.sql.execution.folder import is_accessible
from spark_runner.sql.execution.text_types import schema_with_strings
from spark_runner.sql.restrictions import session_settings
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Anchor, Passage
from spark_runner.sql.text.source import ScriptSource


class ScriptContext:
    """The plan of a script in its session, with the tables that it has declared so far."""

    def __init__(
        self, session: SparkSession, plan: Mapping[str, Any], resolver: Resolver | None = None
    ) -> None:
        self.session = session
        self.resolver = resolver or Resolver()
        for name, value in session_settings(plan).items():
            session.conf.set(name, value)
        self.connectors = Parts(plan.get("connectors") or {})
        self.plan = plan
        self.steps: list[Mapping[str, Any]] = plan["steps"]
        self.source = ScriptSource(plan["file"], plan["source"])
        self.values: list[str] = plan["values"]
        self.tables: dict[str, Mapping[str, Any]] = {}  # declared so far, by lower-case name
        self.sent = SentTexts()

    def passage(self, pieces: Sequence[Sequence[int]]) -> Passage:
        """A text of the plan."""
        return Passage.from_json(self.source, pieces, self.values)

    def error(self, message: str, step: Mapping[str, Any]) -> SqlError:
        """An error at the place of the statement."""
        return self._statement(step).error(message)

    def _statement(self, step: Mapping[str, Any]) -> Passage:
        """An empty passage at the place of the statement."""
        return Passage(
            self.source, "", (Anchor(0, self.source.offset(step["line"], step["column"]), verbatim=True),)
        )

    def is_reached(self, step: Mapping[str, Any]) -> bool:
        """Whether this host has the folder to which the path of a table is relative."""
        return not step["beside"] or is_accessible(self.plan["directory"])

    def target(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """The table that an INSERT writes, with the options that the INSERT gives."""
        table = self.tables[step["target"].lower()]
        if "options" not in step:
            return table
        own, options = step["options"], table["options"]
        kept = {
            name: each for name, each in table.get("references", {}).items() if own.get(name) == options[name]
        }
        return {**table, "options": own, "references": kept}

    def options(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of a table for its connector, with the values of references."""
        try:
            return self.resolver.options(self.session, step)
        except Unresolved as error:
            raise self.error(f"table '{step['name']}': {error}", step) from error

    def schema(self, step: Mapping[str, Any]) -> StructType | None:
        """The declared columns of a table, with STRING for CHAR and VARCHAR; None without any."""
        if step["columns"] is None:
            return None
        columns = self.passage(step["columns"])
        sent = SentTexts()
        try:
            schema = StructType.fromDDL(sent.send(columns))
        except SPARK_ERRORS as error:
            raise sent.located(error, columns) from error
        return schema_with_strings(schema) if isinstance(schema, StructType) else None

    def columns(self, step: Mapping[str, Any]) -> DeclaredColumns:
        """What a table declares beside its stored columns."""
        return DeclaredColumns(step, self.passage, self.sent)

    @property
    def sets_aside(self) -> bool:
        """Whether the script has a limit for rows that do not fit: one of them does not fail the job."""
        limits = self.plan.get("bad_rows") or {}
        return limits.get("rows") is not None or limits.get("percent") is not None
