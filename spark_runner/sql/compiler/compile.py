"""Compiles a script into a plan, which is JSON, and makes all checks that need no Spark.

The plan travels to the driver, where `spark_runner.sql.execution.execution` runs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.tables import TableSpec, table_spec
from spark_runner.sql.grammar.references import formats_named, names_relative_files, references
from spark_runner.sql.grammar.statements import CreateTable, CreateView, Insert, SetStatement, parse
from spark_runner.sql.locations import comparable, contains, overlap
from spark_runner.sql.restrictions import may_share
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import (
    MAX_EXPANDED_CHARACTERS,
    MAX_SCRIPT_CHARACTERS,
    MAX_STATEMENTS,
    MAX_TABLE_READS,
    MAX_VIEW_DEPTH,
    ScriptSource,
)
from spark_runner.sql.text.tokens import split
from spark_runner.sql.text.variables import expand

PLAN_VERSION = 2


def compile_script(text: str, *, file: str, base_dir: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """The plan of a script.

    `file` is the name that errors show; relative paths are relative to `base_dir`. Raises SqlError at the
    first error, or above a limit of `spark_runner.sql.text.source`.
    """
    source = ScriptSource(file, text)
    if len(text) > MAX_SCRIPT_CHARACTERS:
        message = f"the script has {len(text):,} characters, the limit is {MAX_SCRIPT_CHARACTERS:,}"
        raise source.error(message, MAX_SCRIPT_CHARACTERS)
    planner = _Planner(base_dir)
    statements = split(source)
    if len(statements) > MAX_STATEMENTS:
        message = f"the script has {len(statements):,} statements, the limit is {MAX_STATEMENTS:,}"
        raise source.error(message, statements[MAX_STATEMENTS][0].start)
    left = MAX_EXPANDED_CHARACTERS
    for tokens in statements:
        passage = expand(source, tokens, variables, left)
        left -= len(passage.text)
        planner.add(parse(passage))
    if not planner.inserts:
        raise source.error("nothing to do: the script has no INSERT", 0)
    return {
        "version": PLAN_VERSION,
        "file": file,
        "source": text,
        "directory": base_dir,
        "names_files": planner.names_files,
        "needs_own_jvm": planner.needs_own_jvm,
        "formats": sorted(planner.formats),
        "values": list(planner.values),
        "steps": planner.steps,
    }


@dataclass
class _Table:
    """A declared table; `step` is its entry in the plan, completed as its uses are found."""

    name: str
    spec: TableSpec
    step: dict[str, Any]
    line: int
    place: str  # its comparable location; empty if it has none


@dataclass
class _Reads:
    """The tables that a query reads, also through views, each once and in order; and the number of reads."""

    tables: dict[int, _Table] = field(default_factory=dict)  # by identity: a name may be declared again
    times: int = 0
    depth: int = 0  # of nested views


@dataclass
class _View:
    """A declared view and the tables that it reads."""

    name: str
    line: int
    reads: _Reads


@dataclass
class _Planner:
    """Adds one statement after another to the plan, and keeps the names declared so far."""

    base_dir: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    inserts: int = 0
    names_files: bool = False  # a query names files by a relative path
    formats: set[str] = field(default_factory=set)  # of files that queries name directly
    needs_own_jvm: bool = False  # a statement may reach the data of other jobs in the same JVM
    names: dict[str, _Table | _View] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)  # pasted texts and their indices in the plan

    def add(self, statement: SetStatement | CreateTable | CreateView | Insert) -> None:
        """Check one statement and append its step."""
        self.needs_own_jvm |= not may_share(statement)
        match statement:
            case SetStatement():
                self._add_set(statement)
            case CreateTable():
                self._add_table(statement)
            case CreateView():
                self._add_view(statement)
            case Insert():
                self._add_insert(statement)
            case _:
                assert_never(statement)

    def _add_set(self, statement: SetStatement) -> None:
        if statement.key.lower().startswith("job."):
            message = f"unknown setting '{statement.key}'; settings of Spark start with 'spark.'"
            raise statement.passage.error(message)
        self._step("set", statement.passage, key=statement.key, value=statement.value)

    def _add_table(self, statement: CreateTable) -> None:
        self._check_new(statement)
        spec = table_spec(statement, self.base_dir)
        columns = statement.columns.to_json(self.values) if statement.columns else None
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
        place = comparable(spec.location) if spec.location else ""
        self.names[statement.name.lower()] = _Table(statement.name, spec, step, line, place)

    def _add_view(self, statement: CreateView) -> None:
        self._check_new(statement)
        reads = self._reads(statement.query)
        query = statement.query.to_json(self.values)
        self._step("view", statement.passage, name=statement.name, query=query)
        line, _ = statement.passage.position()
        self.names[statement.name.lower()] = _View(statement.name, line, reads)

    def _add_insert(self, statement: Insert) -> None:
        target = self._target(statement)
        if statement.by_name and target.step["columns"] is None:
            message = f"BY NAME needs declared columns, and table '{target.name}' declares none"
            raise statement.passage.error(message, statement.target_offset)
        self._check_input_survives(statement, target, self._reads(statement.query))
        target.step["written"] = True
        self.inserts += 1
        self._step(
            "insert",
            statement.passage,
            target=target.name,
            overwrite=statement.overwrite,
            by_name=statement.by_name,
            query=statement.query.to_json(self.values),
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

    def _reads(self, query: Passage) -> _Reads:
        """The declared tables that a query reads; marks each as read in the plan."""
        tokens = query.tokens
        self.formats |= formats_named(tokens)
        self.names_files |= names_relative_files(tokens)
        reads = _Reads()
        for name, (offset, times) in references(tokens).items():
            known = self.names.get(name)
            if isinstance(known, _View):
                reads.tables |= known.reads.tables
                reads.times += times * known.reads.times
                reads.depth = max(reads.depth, known.reads.depth + 1)
            elif known:
                if not known.spec.readable:
                    message = (
                        f"connector '{known.spec.connector}' of table '{known.name}' can only be written"
                    )
                    raise query.error(message, offset)
                known.step["read"] = True
                reads.tables[id(known)] = known
                reads.times += times
            if known and reads.times > MAX_TABLE_READS:
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

    def _check_input_survives(self, statement: Insert, target: _Table, reads: _Reads) -> None:
        """Refuse an INSERT that would change or delete input of the script."""
        location, place = target.spec.location, target.place
        if not place:
            return
        for table in reads.tables.values():
            if table.place and overlap(place, table.place):
                raise _destroys(statement, f"reads '{table.name}' from", table.spec.location, location)
        if not statement.overwrite:
            return
        for known in self.names.values():
            if not isinstance(known, _Table) or not known.place:
                continue
            # The same path twice is intended: a later statement reads or extends the output of this one.
            if contains(place, known.place) and not contains(known.place, place):
                raise _destroys(
                    statement, f"would delete table '{known.name}' in", known.spec.location, location
                )


def _destroys(statement: Insert, what: str, source: str, target: str) -> SqlError:
    where = "the path it writes to" if source == target else f"'{source}', which overlaps with its target"
    message = f"refused: this INSERT {what} {where} ('{target}')"
    return statement.passage.error(message, statement.target_offset)
