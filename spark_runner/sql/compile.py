"""Turns a script into a plan: checked as far as that goes without Spark, and plain JSON.

The plan is what travels to the driver; `spark_runner.sql.execution` runs it there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from spark_runner.connectors.nearest import did_you_mean
from spark_runner.sql.errors import SqlError
from spark_runner.sql.grammar import CreateTable, CreateView, Insert, Set, parse
from spark_runner.sql.locations import contains, overlap
from spark_runner.sql.references import names_relative_files, references
from spark_runner.sql.source import Passage, Source
from spark_runner.sql.tables import TableSpec, table_spec
from spark_runner.sql.tokens import split
from spark_runner.sql.variables import expand

PLAN_VERSION = 1


def compile_script(text: str, *, file: str, base_dir: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """The plan of a script.

    `file` is the name that errors show; relative paths are relative to `base_dir`. Raises SqlError at the
    first thing that is wrong.
    """
    source = Source(file, text)
    planner = _Planner(base_dir)
    for tokens in split(source):
        planner.add(parse(expand(source, tokens, variables)))
    if not planner.inserts:
        raise source.error("nothing to do: the script has no INSERT", 0)
    return {
        "version": PLAN_VERSION,
        "file": file,
        "source": text,
        "directory": base_dir,
        "names_files": planner.names_files,
        "steps": planner.steps,
    }


@dataclass
class _Table:
    """A declared table; `step` is its entry in the plan, completed as its uses are found."""

    name: str
    spec: TableSpec
    step: dict[str, Any]
    line: int


@dataclass
class _View:
    """A declared view and the tables it reads, through other views too."""

    name: str
    line: int
    tables: list[_Table]


@dataclass
class _Planner:
    """Adds statement after statement to the plan, knowing the names declared so far."""

    base_dir: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    inserts: int = 0
    names_files: bool = False  # a query names files by a relative path
    names: dict[str, _Table | _View] = field(default_factory=dict)

    def add(self, statement: Set | CreateTable | CreateView | Insert) -> None:
        """Check one statement and append its step."""
        match statement:
            case Set():
                self._add_set(statement)
            case CreateTable():
                self._add_table(statement)
            case CreateView():
                self._add_view(statement)
            case Insert():
                self._add_insert(statement)
            case _:
                assert_never(statement)

    def _add_set(self, statement: Set) -> None:
        if statement.key.lower().startswith("job."):
            message = f"unknown setting '{statement.key}'; settings of Spark start with 'spark.'"
            raise statement.passage.error(message)
        self._step("set", statement.passage, key=statement.key, value=statement.value)

    def _add_table(self, statement: CreateTable) -> None:
        self._check_new(statement)
        spec = table_spec(statement, self.base_dir)
        columns = statement.columns.to_json() if statement.columns else None
        step = self._step(
            "table",
            statement.passage,
            name=statement.name,
            connector=spec.connector,
            options=spec.options,
            location=spec.location,
            beside=spec.beside,
            columns=columns,
            read=False,
            written=False,
        )
        line, _ = statement.passage.position()
        self.names[statement.name.lower()] = _Table(statement.name, spec, step, line)

    def _add_view(self, statement: CreateView) -> None:
        self._check_new(statement)
        tables = self._tables_read(statement.query)
        self._step("view", statement.passage, name=statement.name, query=statement.query.to_json())
        line, _ = statement.passage.position()
        self.names[statement.name.lower()] = _View(statement.name, line, tables)

    def _add_insert(self, statement: Insert) -> None:
        target = self._target(statement)
        if statement.by_name and target.step["columns"] is None:
            message = f"BY NAME needs declared columns, and table '{target.name}' declares none"
            raise statement.passage.error(message, statement.target_offset)
        self._check_input_survives(statement, target, self._tables_read(statement.query))
        target.step["written"] = True
        self.inserts += 1
        self._step(
            "insert",
            statement.passage,
            target=target.name,
            overwrite=statement.overwrite,
            by_name=statement.by_name,
            query=statement.query.to_json(),
        )

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

    def _target(self, statement: Insert) -> _Table:
        target = self.names.get(statement.target.lower())
        if isinstance(target, _Table) and target.spec.writable:
            return target
        if target is None:
            tables = [known.name for known in self.names.values() if isinstance(known, _Table)]
            hint = did_you_mean(statement.target, tables) or "; declare it with CREATE TABLE before"
            message = f"unknown table '{statement.target}'{hint}"
        elif isinstance(target, _View):
            message = f"'{target.name}' is a view; only a table can be inserted into"
        else:
            message = f"connector '{target.spec.connector}' of table '{target.name}' can only be read"
        raise statement.passage.error(message, statement.target_offset)

    def _tables_read(self, query: Passage) -> list[_Table]:
        """The declared tables that a query reads, each marked so in the plan."""
        self.names_files |= names_relative_files(query)
        tables: list[_Table] = []
        for name, offset in references(query).items():
            known = self.names.get(name)
            if isinstance(known, _View):
                tables += known.tables
            elif known:
                if not known.spec.readable:
                    message = (
                        f"connector '{known.spec.connector}' of table '{known.name}' can only be written"
                    )
                    raise query.error(message, offset)
                known.step["read"] = True
                tables.append(known)
        return tables

    def _check_input_survives(self, statement: Insert, target: _Table, read: list[_Table]) -> None:
        """Refuse an INSERT that would change or delete what the script reads."""
        location = target.spec.location
        for table in read:
            if location and table.spec.location and overlap(location, table.spec.location):
                raise _destroys(statement, f"reads '{table.name}' from", table.spec.location, location)
        if not statement.overwrite:
            return
        for known in self.names.values():
            if not isinstance(known, _Table) or not (location and known.spec.location):
                continue
            # The same path twice is meant: a later statement reads or appends to what this one writes.
            if contains(location, known.spec.location) and not contains(known.spec.location, location):
                raise _destroys(
                    statement, f"would delete table '{known.name}' in", known.spec.location, location
                )


def _destroys(statement: Insert, what: str, source: str, target: str) -> SqlError:
    where = "the path it writes to" if source == target else f"'{source}', which overlaps with its target"
    message = f"refused: this INSERT {what} {where} ('{target}')"
    return statement.passage.error(message, statement.target_offset)
