"""Adds checked statements to a plan, and keeps the names that they declare."""

from dataclasses import dataclass, field
from typing import Any, assert_never

from spark_runner.sql.compiler.catalogs import Catalogs
from spark_runner.sql.compiler.connections import ConnectionUnchecked, FindConnection
from spark_runner.sql.compiler.functions import Functions
from spark_runner.sql.compiler.inserts import Inserts
from spark_runner.sql.compiler.modes import BATCH, DEFAULT_TRIGGER_MS, STREAMING, DefaultMode, check_bounded
from spark_runner.sql.compiler.names import Invalid, Reads, Table, View
from spark_runner.sql.compiler.own_options import OwnTables, own_options
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.compiler.settings import Settings
from spark_runner.sql.compiler.statement_set import StatementSets
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.compiler.streams import Streams, for_stream
from spark_runner.sql.compiler.table_declarations import TableDeclarations
from spark_runner.sql.grammar.parser import declared_name
from spark_runner.sql.grammar.statements import (
    AnyStatement,
    Assert,
    BeginSet,
    Cache,
    CatalogStatement,
    CreateFunction,
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
from spark_runner.sql.restrictions import may_share, sets_catalog
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage

_Planned = (
    CatalogStatement
    | CreateFunction
    | CreateTable
    | CreateView
    | Insert
    | BeginSet
    | EndSet
    | Cache
    | Uncache
    | Query
    | Assert
    | Explain
)


@dataclass
class Planner:
    """Adds one statement after another to the plan, and keeps the names declared so far."""

    base_dir: str
    find: FindConnection | None = None  # without it, tables with connections are not checked
    unchecked: list[SqlError] = field(default_factory=list)  # warnings of those tables
    steps: Steps = field(default_factory=Steps)
    scope: Scope = field(default_factory=Scope)
    parts: dict[str, Any] = field(default_factory=dict)  # of the plan, that a whole script decides
    effects: int = 0  # statements that write, show or check data
    default: DefaultMode = field(default_factory=DefaultMode)
    settings: Settings = field(default_factory=Settings)
    streams: Streams | None = None  # None in mode batch
    functions: Functions = field(default_factory=Functions)

    def __post_init__(self) -> None:
        self.sets = StatementSets(self.steps, self.scope)
        self.own_tables = OwnTables(self.steps, self.scope)
        self.catalogs = Catalogs(self.steps, self.scope, self.own_tables, self.sets)
        self.table_declarations = TableDeclarations(self.steps, self.scope, self.base_dir, self.find)
        self.inserts = Inserts(self.steps, self.scope, self.own_tables, self.sets, self.catalogs)
        self.settings.default_mode = self.settings.mode = self.default.mode
        self.streams = _streams(self.default.mode)

    def add(self, statement: AnyStatement) -> None:
        """Check one statement and append its step."""
        self.sets.follow(statement)
        if isinstance(statement, SetStatement | ResetStatement):
            self._add_setting(statement)
            return
        if self.streams:
            self.streams.check_statement(statement)
            statement = for_stream(statement)
        self.steps.needs_own_jvm |= not may_share(statement)
        self.functions.see(statement)
        self._add(statement)

    def _add(self, statement: _Planned) -> None:
        match statement:
            case CatalogStatement():
                self.effects += self.catalogs.add(statement, self.streams)
            case CreateFunction():
                self.functions.add(statement, self.steps)
            case CreateTable():
                self._add_checked_table(statement)
            case CreateView():
                self._add_view(statement)
            case Insert():
                self.effects += self.inserts.add(statement, self.streams)
            case BeginSet():
                self.sets.begin(statement)
                if statement.first:
                    self._add(statement.first)
            case EndSet():
                self.sets.end(statement)
            case _:
                self._add_inspection(statement)

    def _add_inspection(self, statement: Cache | Uncache | Query | Assert | Explain) -> None:
        match statement:
            case Cache() | Uncache():
                self._add_cache(statement)
            case Query():
                self._add_query(statement)
            case Assert():
                self._add_assert(statement)
            case Explain():
                self._add_explain(statement)
            case _:
                assert_never(statement)

    def _add_setting(self, statement: SetStatement | ResetStatement) -> None:
        before = self.settings.mode
        for_spark = self.settings.for_spark(statement)
        if self.settings.mode != before:
            self._change_mode(statement)
        if for_spark is None:
            return
        self.steps.needs_own_jvm |= not may_share(for_spark)
        if isinstance(for_spark, SetStatement):
            self.catalogs.is_used |= sets_catalog(for_spark.key)
            self.steps.add("set", statement.passage, key=for_spark.key, value=for_spark.value)
        else:
            self.steps.add("reset", statement.passage, key=for_spark.key)

    def _change_mode(self, statement: SetStatement | ResetStatement) -> None:
        mode = self.settings.mode
        self.streams = _streams(mode)
        if self.scope.declared or self.effects:
            message = "a script has one mode; set it before the first CREATE, query and INSERT"
            raise statement.passage.error(message, statement.key_offset)

    def add_invalid(self, passage: Passage) -> None:
        """Keep the name that a statement with an error declares, so that its uses are no errors.

        Likewise the begin or end of a statement set.
        """
        self.sets.follow_invalid(passage)
        if (found := declared_name(passage)) is not None:
            name, offset = found
            self.scope.declare(Invalid(name, passage, offset))

    @property
    def names_catalogs(self) -> bool:
        """Whether a statement names a catalog of Spark, or a table of one."""
        return self.catalogs.is_used or bool(self.scope.read_catalogs)

    def finish(self) -> None:
        """Complete the plan; raises SqlError if a statement set is open at the end of the script."""
        self.settings.check_trigger()
        self.parts = self.settings.bad_rows.to_plan(self.scope, self.steps.made)
        if self.parts:
            self.steps.need_new_driver()
            # Rows that are kept while they are counted outlive a killed driver.
            self.steps.needs_own_jvm = True
        if self.streams:
            self._finish_streams(self.streams)
        self.parts |= self.settings.batches.to_plan(self.settings.mode, self.steps.made)
        self.parts |= self.functions.to_plan()
        self.own_tables.finish()
        self.steps.needs_own_jvm |= self.names_catalogs
        self.sets.finish()

    def _finish_streams(self, streams: Streams) -> None:
        bad_rows = self.settings.bad_rows.table
        named = self.scope.names.get(self.parts.get("bad_rows", {}).get("table", "").lower())
        if bad_rows and isinstance(named, Table):
            streams.check_bad_rows(named, bad_rows.passage)
        self.parts["mode"] = streams.mode
        if streams.mode == STREAMING:
            self.parts["trigger_ms"] = self.settings.trigger_ms or DEFAULT_TRIGGER_MS
        self.steps.need_new_driver()
        self.steps.needs_own_jvm = True  # the query of a killed driver would go on

    def _reads(self, query: Passage) -> Reads:
        """What a statement reads that is no declaration; raises SqlError for what has no end."""
        reads = self.scope.reads(query)
        if self.streams is None:
            check_bounded(reads, query)
        return reads

    def warnings(self) -> list[SqlError]:
        """A warning for each unused name, and each doubtful table and setting, in order of the script."""
        functions = () if self.scope.hides_names else self.functions.unused()
        found = [*self.scope.unused(), *self.scope.doubts(), *functions, *self.settings.warnings]
        return sorted(found, key=lambda warning: (warning.line, warning.column))

    def _add_checked_table(self, statement: CreateTable) -> None:
        try:
            self.table_declarations.add(statement, self.streams)
        except ConnectionUnchecked as unchecked:
            self.unchecked.append(unchecked)
            self.scope.declare(Invalid(statement.name, statement.passage, statement.name_offset))

    def _add_view(self, statement: CreateView) -> None:
        self.scope.check_new(statement)
        query = self.own_tables.query(statement.query)
        reads = self.scope.reads(query)
        self.steps.add("view", statement.passage, name=statement.name, query=query.to_json(self.steps.values))
        at = (statement.name, statement.passage, statement.name_offset)
        self.scope.declare(View(*at, reads=reads))

    def _add_query(self, statement: Query) -> None:
        query = self.own_tables.query(statement.query)
        self._reads(query)
        self.steps.add("query", statement.passage, query=query.to_json(self.steps.values))
        self.effects += 1

    def _add_assert(self, statement: Assert) -> None:
        condition = self.own_tables.query(statement.condition)
        self._reads(condition)
        facts = {"condition": condition.to_json(self.steps.values), "message": statement.message}
        self.steps.add("assert", statement.passage, **facts)
        self.effects += 1

    def _add_explain(self, statement: Explain) -> None:
        facts: dict[str, Any] = {"target": None, "by_name": False}
        if statement.insert is None:
            query = self.own_tables.query(statement.query)
            self._reads(query)
        elif (checked := self.inserts.check(statement.insert, self.streams)) is not None:
            target, _, insert = checked
            query = insert.query
            if insert.options:
                own_options(target, insert.options, insert.passage, reads=False)
            target.step["explained"] = True  # it need not exist
            facts = {"target": target.name, "by_name": insert.by_name}
        else:
            return
        json = query.to_json(self.steps.values)
        self.steps.add("explain", statement.passage, mode=statement.mode, **facts, query=json)
        self.effects += 1

    def _add_cache(self, statement: Cache | Uncache) -> None:
        name = self.scope.cached(statement)
        if name is None:
            return
        if isinstance(statement, Cache):
            known = self.scope.names[statement.name.lower()]
            if isinstance(known, Table):
                check_bounded(Reads({0: known}), statement.passage)
            elif isinstance(known, View):
                check_bounded(known.reads, statement.passage)
            self.steps.add("cache", statement.passage, name=name, lazy=statement.lazy)
        else:
            self.steps.add("uncache", statement.passage, name=name)


def _streams(mode: str) -> Streams | None:
    return None if mode == BATCH else Streams(mode)
