"""Adds checked statements to a plan, and keeps the names that they declare."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, assert_never

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.declaration import declared
from spark_runner.sql.compiler.inputs import check_input_survives
from spark_runner.sql.compiler.names import Invalid, Name, Reads, Table, View
from spark_runner.sql.compiler.settings import Settings
from spark_runner.sql.compiler.tables import table_spec
from spark_runner.sql.grammar.columns import Columns
from spark_runner.sql.grammar.parser import AnyStatement, declared_name
from spark_runner.sql.grammar.references import formats_named, names_relative_files, references
from spark_runner.sql.grammar.statements import (
    Assert,
    CreateTable,
    CreateView,
    Insert,
    Query,
    ResetStatement,
    SetStatement,
)
from spark_runner.sql.locations import comparable
from spark_runner.sql.restrictions import may_share
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_TABLE_READS, MAX_VIEW_DEPTH

PLAN_VERSION = 3
OLDEST_PLAN_VERSION = 2


@dataclass
class Planner:
    """Adds one statement after another to the plan, and keeps the names declared so far."""

    base_dir: str
    version: int = OLDEST_PLAN_VERSION  # the oldest one that has all parts of this plan
    steps: list[dict[str, Any]] = field(default_factory=list)
    effects: int = 0  # statements that write, show or check data
    names_files: bool = False  # a query names files by a relative path
    formats: set[str] = field(default_factory=set)  # of files that queries name directly
    needs_own_jvm: bool = False  # a statement may reach the data of other jobs in the same JVM
    names: dict[str, Name] = field(default_factory=dict)  # the current meaning of each
    declared: list[Name] = field(default_factory=list)  # all, in order
    values: dict[str, int] = field(default_factory=dict)  # pasted texts and their indices in the plan
    settings: Settings = field(default_factory=Settings)

    def add(self, statement: AnyStatement) -> None:
        """Check one statement and append its step."""
        if isinstance(statement, SetStatement | ResetStatement):
            for_spark = self.settings.for_spark(statement)
            if for_spark is None:
                return
            statement = for_spark
        self.needs_own_jvm |= not may_share(statement)
        match statement:
            case SetStatement():
                self._step("set", statement.passage, key=statement.key, value=statement.value)
            case ResetStatement():
                self._step("reset", statement.passage, key=statement.key)
            case CreateTable():
                self._add_table(statement)
            case CreateView():
                self._add_view(statement)
            case Insert():
                self._add_insert(statement)
            case Query():
                self._add_query(statement)
            case Assert():
                self._add_assert(statement)
            case _:
                assert_never(statement)

    def add_invalid(self, passage: Passage) -> None:
        """Keep the name that a statement with an error declares, so that its uses are no errors."""
        if (found := declared_name(passage)) is not None:
            name, offset = found
            self._declare(Invalid(name, passage, offset))

    def unused(self) -> Iterator[SqlError]:
        """A warning for each table and view that no statement uses."""
        for known in self.declared:
            if not known.uses:
                what = "view" if isinstance(known, View) else "table"
                yield known.passage.error(f"{what} '{known.name}' is never used", known.name_offset)

    def _declare(self, name: Name) -> None:
        self.names[name.name.lower()] = name
        self.declared.append(name)

    def _add_table(self, statement: CreateTable) -> None:
        self._check_new(statement)
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
        self._declare(Table(*at, spec=spec, step=step, place=place))

    def _declared(self, columns: Columns | None) -> dict[str, Any]:
        """The parts of a declaration that are more than stored columns."""
        found = declared(columns, self.values) if columns else {}
        if found:
            self.version = PLAN_VERSION  # older drivers would not see these parts
        return found

    def _add_view(self, statement: CreateView) -> None:
        self._check_new(statement)
        reads = self._reads(statement.query)
        query = statement.query.to_json(self.values)
        self._step("view", statement.passage, name=statement.name, query=query)
        at = (statement.name, statement.passage, statement.name_offset)
        self._declare(View(*at, reads=reads))

    def _add_insert(self, statement: Insert) -> None:
        reads = self._reads(statement.query)
        target = self._target(statement)
        if target is None:
            return
        if target.step.get("primary_key"):
            connector = target.spec.connector
            message = (
                f"connector '{connector}' cannot replace rows by the primary key of '{target.name}';"
                " remove the key, or write to a connector that can"
            )
            raise statement.passage.error(message, statement.target_offset)
        if statement.by_name and target.step["columns"] is None:
            message = f"BY NAME needs declared columns, and table '{target.name}' declares none"
            raise statement.passage.error(message, statement.target_offset)
        check_input_survives(statement, target, reads, self.names.values())
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

    def _add_query(self, statement: Query) -> None:
        self._reads(statement.query)
        self._step("query", statement.passage, query=statement.query.to_json(self.values))
        self.effects += 1

    def _add_assert(self, statement: Assert) -> None:
        self._reads(statement.condition)
        condition = statement.condition.to_json(self.values)
        self._step("assert", statement.passage, condition=condition, message=statement.message)
        self.effects += 1

    def _step(self, kind: str, passage: Passage, **facts: Any) -> dict[str, Any]:
        line, column = passage.position()
        step = {"kind": kind, "line": line, "column": column, **facts}
        self.steps.append(step)
        return step

    def _check_new(self, statement: CreateTable | CreateView) -> None:
        known = self.names.get(statement.name.lower())
        if known and not statement.replace:
            message = f"'{statement.name}' is already declared in line {known.line}; write CREATE OR REPLACE"
            raise statement.passage.error(message, statement.name_offset)

    def _target(self, statement: Insert) -> Table | None:
        """The table that a statement writes; None if the declaration of the table has an error."""
        target = self.names.get(statement.target.lower())
        if target is not None:
            target.uses += 1
        if isinstance(target, Invalid):
            return None
        if isinstance(target, Table) and target.spec.writable:
            return target
        if target is None:
            tables = [known.name for known in self.names.values() if not isinstance(known, View)]
            hint = did_you_mean(statement.target, tables) or "; declare it with CREATE TABLE before"
            message = f"unknown table '{statement.target}'{hint}"
        elif isinstance(target, Table):
            message = f"connector '{target.spec.connector}' of table '{target.name}' can only be read"
        else:
            message = f"'{target.name}' is a view; only a table can be inserted into"
        raise statement.passage.error(message, statement.target_offset)

    def _reads(self, query: Passage) -> Reads:
        """The declared tables that a query reads; marks each as read in the plan."""
        tokens = query.tokens
        self.formats |= formats_named(tokens)
        self.names_files |= names_relative_files(tokens)
        reads = Reads()
        for name, (offset, times) in references(tokens).items():
            known = self.names.get(name)
            if known is None:
                continue
            known.uses += 1
            if isinstance(known, View):
                reads.tables |= known.reads.tables
                reads.times += times * known.reads.times
                reads.depth = max(reads.depth, known.reads.depth + 1)
            elif isinstance(known, Table):
                if not known.spec.readable:
                    message = (
                        f"connector '{known.spec.connector}' of table '{known.name}' can only be written"
                    )
                    raise query.error(message, offset)
                known.step["read"] = True
                reads.tables[id(known)] = known
                reads.times += times
            if reads.times > MAX_TABLE_READS:
                message = (
                    f"with '{known.name}' this query reads tables {reads.times:,} times through its views,"
                    f" the limit is {MAX_TABLE_READS:,}; write the rows of a view into a table first"
                )
                raise query.error(message, offset)
            if reads.depth > MAX_VIEW_DEPTH:
                message = (
                    f"'{name}' is a view that reads views, more than {MAX_VIEW_DEPTH} deep,"
                    " which is the limit; write the rows of a view into a table first"
                )
                raise query.error(message, offset)
        return reads
