"""Adds checked statements to a plan, and keeps the names that they declare."""

from dataclasses import dataclass, field
from typing import Any, assert_never

from spark_runner.sql.compiler.declaration import declared
from spark_runner.sql.compiler.inputs import check_input_survives
from spark_runner.sql.compiler.names import Invalid, Reads, Table, View
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.compiler.settings import Settings
from spark_runner.sql.compiler.statement_set import MAX_SHARED_STEPS, OpenSet, shared_names
from spark_runner.sql.compiler.tables import table_spec
from spark_runner.sql.grammar.columns import Columns
from spark_runner.sql.grammar.parser import declared_name
from spark_runner.sql.grammar.statement_set import ONLY_INSERTS, count_begun
from spark_runner.sql.grammar.statements import (
    AnyStatement,
    Assert,
    BeginSet,
    Cache,
    CreateTable,
    CreateView,
    EndSet,
    Explain,
    Insert,
    Query,
    ResetStatement,
    SetStatement,
    Uncache,
)
from spark_runner.sql.locations import comparable
from spark_runner.sql.restrictions import may_share
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.passage import Passage

PLAN_VERSION = 3
OLDEST_PLAN_VERSION = 2
_OLDEST_STEPS = ("set", "table", "view", "insert")


@dataclass
class Planner:
    """Adds one statement after another to the plan, and keeps the names declared so far."""

    base_dir: str
    version: int = OLDEST_PLAN_VERSION  # the oldest one that has all parts of this plan
    scope: Scope = field(default_factory=Scope)
    steps: list[dict[str, Any]] = field(default_factory=list)
    open_set: OpenSet | None = None
    shared_steps: int = MAX_SHARED_STEPS
    effects: int = 0  # statements that write, show or check data
    needs_own_jvm: bool = False  # a statement may reach the data of other jobs in the same JVM
    values: dict[str, int] = field(default_factory=dict)  # pasted texts and their indices in the plan
    settings: Settings = field(default_factory=Settings)

    def add(self, statement: AnyStatement) -> None:
        """Check one statement and append its step."""
        if self.open_set and not isinstance(statement, Insert | BeginSet | EndSet):
            raise statement.passage.error(f"{ONLY_INSERTS}; write END; before this statement")
        if isinstance(statement, SetStatement | ResetStatement):
            self._add_setting(statement)
            return
        self.needs_own_jvm |= not may_share(statement)
        match statement:
            case CreateTable():
                self._add_table(statement)
            case CreateView():
                self._add_view(statement)
            case Insert():
                self._add_insert(statement)
            case BeginSet():
                self._begin_set(statement)
            case EndSet():
                self._end_set(statement)
            case Cache() | Uncache():
                self._add_cache(statement)
            case _:
                self._add_inspection(statement)

    def _add_inspection(self, statement: Query | Assert | Explain) -> None:
        match statement:
            case Query():
                self._add_query(statement)
            case Assert():
                self._add_assert(statement)
            case Explain():
                self._add_explain(statement)
            case _:
                assert_never(statement)

    def _add_setting(self, statement: SetStatement | ResetStatement) -> None:
        for_spark = self.settings.for_spark(statement)
        if for_spark is None:
            return
        self.needs_own_jvm |= not may_share(for_spark)
        if isinstance(for_spark, SetStatement):
            self._step("set", statement.passage, key=for_spark.key, value=for_spark.value)
        else:
            self._step("reset", statement.passage, key=for_spark.key)

    def add_invalid(self, passage: Passage) -> None:
        """Keep the name that a statement with an error declares, so that its uses are no errors.

        Likewise the begin or end of a statement set.
        """
        self._follow_invalid_set(passage)
        if (found := declared_name(passage)) is not None:
            name, offset = found
            self.scope.declare(Invalid(name, passage, offset))

    def finish(self) -> None:
        """Raise SqlError if a statement set is open at the end of the script."""
        if self.open_set:
            message = "this statement set has no end; write END; behind its last INSERT"
            raise self.open_set.passage.error(message)

    def _add_table(self, statement: CreateTable) -> None:
        self.scope.check_new(statement)
        spec = table_spec(statement, self.base_dir)
        columns = statement.columns
        step = self._step(
            "table",
            statement.passage,
            name=statement.name,
            connector=spec.connector,
            options=spec.options,
            location=spec.location,
            beside=spec.beside,
            columns=columns.ddl().to_json(self.values) if columns else None,
            read=False,
            written=False,
            **self._declared(columns),
        )
        place = comparable(spec.location) if spec.location else ""
        at = (statement.name, statement.passage, statement.name_offset)
        self.scope.declare(Table(*at, spec=spec, step=step, place=place))

    def _declared(self, columns: Columns | None) -> dict[str, Any]:
        """The parts of a declaration that are more than stored columns."""
        found = declared(columns, self.values) if columns else {}
        if found:
            self.version = PLAN_VERSION  # older drivers would not see these parts
        return found

    def _add_view(self, statement: CreateView) -> None:
        self.scope.check_new(statement)
        reads = self.scope.reads(statement.query)
        query = statement.query.to_json(self.values)
        self._step("view", statement.passage, name=statement.name, query=query)
        at = (statement.name, statement.passage, statement.name_offset)
        self.scope.declare(View(*at, reads=reads))

    def _checked(self, statement: Insert) -> tuple[Table, Reads] | None:
        """The target of an INSERT and what it reads; None if the declaration of the target has an error."""
        reads = self.scope.reads(statement.query)
        target = self.scope.target(statement)
        if target is None:
            return None
        if target.step.get("primary_key") and not target.spec.upserts:
            connector = target.spec.connector
            message = (
                f"connector '{connector}' cannot replace rows by the primary key of '{target.name}';"
                " remove the key, or write to a connector that can"
            )
            raise statement.passage.error(message, statement.target_offset)
        if statement.by_name and target.step["columns"] is None:
            message = f"BY NAME needs declared columns, and table '{target.name}' declares none"
            raise statement.passage.error(message, statement.target_offset)
        check_input_survives(statement, target, reads, self.scope.names.values())
        return target, reads

    def _add_insert(self, statement: Insert) -> None:
        if self.open_set:
            self.open_set.is_empty = False
        checked = self._checked(statement)
        if checked is None:
            return
        target, reads = checked
        if self.open_set:
            self.open_set.add(statement, target, reads)
        target.step["written"] = True
        self.effects += 1
        self._step(
            "insert",
            statement.passage,
            target=target.name,
            overwrite=statement.overwrite,
            by_name=statement.by_name,
            query=statement.query.to_json(self.values),
        )

    def _begin_set(self, statement: BeginSet) -> None:
        if self.open_set:
            raise statement.passage.error(f"{ONLY_INSERTS}; write END; before a further set")
        step = self._step("begin_set", statement.passage, cached=[])
        self.open_set = OpenSet(statement.passage, step)
        if statement.first:
            self._add_insert(statement.first)

    def _end_set(self, statement: EndSet) -> None:
        ended = self.open_set
        if ended is None:
            raise statement.passage.error("this END has no statement set; write EXECUTE STATEMENT SET BEGIN")
        if ended.refused_sets:
            ended.refused_sets -= 1
            return
        self.open_set = None
        if ended.is_empty:
            raise ended.passage.error("this statement set has no INSERT")
        ended.step["cached"], self.shared_steps = shared_names(
            ended.inserts, self.scope.declared, self.scope.names, self.shared_steps
        )
        self._step("end_set", statement.passage)

    def _follow_invalid_set(self, passage: Passage) -> None:
        cursor = Cursor(passage)
        cursor.take_words("EXPLAIN")
        begun, known = count_begun(cursor), self.open_set
        if known is None:
            if begun:
                self.open_set = OpenSet(passage, {}, is_empty=False, refused_sets=begun - 1)
            return
        known.is_empty = False
        if known.passage is not passage:
            known.refused_sets += begun
        if cursor.take_words("END"):
            self.open_set = None

    def _add_query(self, statement: Query) -> None:
        self.scope.reads(statement.query)
        self._step("query", statement.passage, query=statement.query.to_json(self.values))
        self.effects += 1

    def _add_assert(self, statement: Assert) -> None:
        self.scope.reads(statement.condition)
        condition = statement.condition.to_json(self.values)
        self._step("assert", statement.passage, condition=condition, message=statement.message)
        self.effects += 1

    def _add_explain(self, statement: Explain) -> None:
        step = self._step("explain", statement.passage, mode=statement.mode, target=None, by_name=False)
        if statement.insert is None:
            self.scope.reads(statement.query)
        elif (checked := self._checked(statement.insert)) is not None:
            target, _ = checked
            target.step["explained"] = True  # it need not exist
            step |= {"target": target.name, "by_name": statement.insert.by_name}
        step["query"] = statement.query.to_json(self.values)
        self.effects += 1

    def _add_cache(self, statement: Cache | Uncache) -> None:
        name = self.scope.cached(statement)
        if name is None:
            return
        if isinstance(statement, Cache):
            self._step("cache", statement.passage, name=name, lazy=statement.lazy)
        else:
            self._step("uncache", statement.passage, name=name)

    def _step(self, kind: str, passage: Passage, **facts: Any) -> dict[str, Any]:
        if kind not in _OLDEST_STEPS:
            self.version = PLAN_VERSION
        line, column = passage.position()
        step = {"kind": kind, "line": line, "column": column, **facts}
        self.steps.append(step)
        return step
