"""What each statement of a script reads and writes, and of which columns each column of a target is made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.sql.columns.catalog import Catalog
from orchestrator.sql.columns.check import walk
from orchestrator.sql.columns.relations import UNTRACED, Relation, Trace
from orchestrator.sql.guarantees import guarantee_of_table
from spark_runner.sql.catalog_guarantees import guarantee_of_catalog
from spark_runner.sql.compiler.compile import Check
from spark_runner.sql.compiler.modes import BATCH
from spark_runner.sql.grammar.references import FILE_FORMATS, hides_names, table_names
from spark_runner.sql.grammar.statements import (
    AnyStatement,
    Assert,
    BeginSet,
    CatalogAction,
    CatalogStatement,
    CreateFunction,
    CreateTable,
    CreateView,
    Explain,
    Insert,
    Query,
)
from spark_runner.sql.text.literals import name_value
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

ANY_TABLE = "IDENTIFIER(...)"
"""What a statement reads that computes the name of a table at run time."""


@dataclass(frozen=True)
class TargetColumn:
    """One column that a statement writes, and those it is made of, as `table.column`; perhaps not all."""

    column: str
    origins: tuple[str, ...]
    is_complete: bool


@dataclass(frozen=True)
class Mode:
    """The mode of a script, and the seconds between two triggers of mode streaming."""

    name: str = BATCH
    trigger_seconds: float | None = None

    def __str__(self) -> str:
        """The mode for people."""
        trigger = f", a trigger each {self.trigger_seconds:g} s" if self.trigger_seconds else ""
        return f"{self.name}{trigger}"


def mode_of(check: Check) -> Mode:
    """The mode of a checked script."""
    plan = check.plan or {}
    trigger_ms = plan.get("trigger_ms")
    return Mode(plan.get("mode", BATCH), trigger_ms / 1000 if trigger_ms else None)


@dataclass(frozen=True)
class Flow:
    """One statement: what it reads, what it writes or declares, and where that is stored."""

    line: int
    statement: str
    reads: tuple[str, ...] = ()
    writes: str = ""
    declares: str = ""
    connector: str = ""
    location: str = ""
    columns: tuple[TargetColumn, ...] | None = None  # of a write; None: not known
    guarantee: str = ""  # of a write, if a further attempt runs it again
    mode: Mode | None = None  # in which a write runs

    @property
    def document(self) -> dict[str, Any]:
        """This statement as JSON."""
        known = {
            "line": self.line,
            "statement": self.statement,
            "reads": list(self.reads),
            "writes": self.writes or None,
            "declares": self.declares or None,
            "connector": self.connector or None,
            "location": self.location or None,
        }
        if not self.writes:
            return known
        columns = None if self.columns is None else [_column_document(each) for each in self.columns]
        mode = self.mode or Mode()
        facts = {"mode": mode.name, "trigger_seconds": mode.trigger_seconds, "guarantee": self.guarantee}
        return {**known, **facts, "columns": columns}


def _column_document(column: TargetColumn) -> dict[str, Any]:
    return {"column": column.column, "from": list(column.origins), "complete": column.is_complete}


def flows(check: Check) -> list[Flow]:
    """The statements of a checked script that declare, read or write something, in order."""
    steps = (check.plan or {}).get("steps", ())
    tables = {(step["line"], step["column"]): step for step in steps if step["kind"] == "table"}
    names = dict[str, str]()  # lower case -> as declared
    stored = dict[str, dict[str, Any]]()
    catalog = Catalog()
    found = list[Flow]()
    mode = mode_of(check)
    for each in check.statements:
        statement = (each.first or each) if isinstance(each, BeginSet) else each
        given = walk(statement, catalog)
        if isinstance(statement, CreateTable):
            step = stored[statement.name.lower()] = tables.get(statement.passage.position(), {})
            found.append(_table(statement, step))
        elif (flow := _flow(statement, names, stored, catalog, given)) is not None:
            if isinstance(statement, CatalogStatement):
                streams = mode.name != BATCH
                flow = replace(flow, guarantee=guarantee_of_catalog(statement.action, streams=streams))
            found.append(replace(flow, mode=mode) if flow.writes else flow)
        if isinstance(statement, CreateTable | CreateView):
            names[statement.name.lower()] = statement.name
    return found


def _table(statement: CreateTable, step: dict[str, Any]) -> Flow:
    return Flow(
        statement.passage.position()[0],
        "CREATE TABLE",
        declares=statement.name,
        connector=step.get("connector", ""),
        location=step.get("location", ""),
    )


def _flow(
    statement: AnyStatement,
    names: dict[str, str],
    stored: dict[str, dict[str, Any]],
    catalog: Catalog,
    given: Relation | None,
) -> Flow | None:
    line = statement.passage.position()[0]
    found: Flow | None = None
    match statement:
        case CreateView():
            found = Flow(line, "CREATE VIEW", _reads(statement.query, names), declares=statement.name)
        case CreateFunction():
            found = Flow(line, "CREATE FUNCTION", declares=statement.name, location=statement.target)
        case Query():
            found = Flow(line, "query", _reads(statement.query, names))
        case Assert():
            found = Flow(line, "ASSERT", _reads(statement.condition, names))
        case Explain():
            found = Flow(line, "EXPLAIN", _reads(statement.query, names))
        case CatalogStatement():
            found = _of_catalog(statement, names, given)
        case Insert():
            step = stored.get(statement.target.lower(), {})
            found = Flow(
                line,
                "INSERT OVERWRITE" if statement.overwrite else "INSERT INTO",
                _reads(statement.query, names),
                writes=step.get("name", statement.target),
                connector=step.get("connector", ""),
                location=step.get("location", ""),
                columns=_columns(statement, catalog, given),
                guarantee=guarantee_of_table(step) if step else "",
            )
    return found


def _of_catalog(statement: CatalogStatement, names: dict[str, str], given: Relation | None) -> Flow:
    """What a statement on a catalog reads and writes, with full names."""
    reads, columns = dict[str, None](), None
    if (source := statement.source) is not None:
        reads[names.get(str(source).lower(), str(source))] = None
    if statement.body is not None:
        reads |= dict.fromkeys(_reads(statement.body, names))
    name, action = str(statement.name or ""), statement.action
    if given is not None and given.columns is not None:
        columns = tuple(_column(each.name or "...", each.trace) for each in given.columns)
    is_table = action.writes or action is CatalogAction.CREATE_TABLE
    return Flow(
        statement.passage.position()[0],
        str(action) if is_table else f"{action} {name}".strip(),
        tuple(reads),
        writes=name if action.writes else "",
        declares=name if action is CatalogAction.CREATE_TABLE else "",
        connector="catalog" if is_table else "",
        columns=columns,
    )


def _columns(statement: Insert, catalog: Catalog, given: Relation | None) -> tuple[TargetColumn, ...] | None:
    target = catalog.targets.get(statement.target.lower())
    stored = target.stored if target else None
    if given is None or given.columns is None:
        return tuple(_column(name, UNTRACED) for name in stored) if stored else None
    if stored is None:
        return tuple(_column(each.name or "...", each.trace) for each in given.columns)
    if statement.by_name:
        traces = [Trace.of(each.trace for each in given.found(name.lower())) for name in stored]
        missing = [name.lower() not in given.places for name in stored]
        pairs = zip(stored, traces, missing, strict=True)
        return tuple(_column(name, UNTRACED if absent else trace) for name, trace, absent in pairs)
    return tuple(_column(name, each.trace) for name, each in zip(stored, given.columns, strict=False))


def _column(name: str, trace: Trace) -> TargetColumn:
    origins = sorted(f"{origin.table}.{origin.column}" for origin in trace.origins)
    return TargetColumn(name, tuple(origins), trace.is_complete)


def _reads(query: Passage, names: dict[str, str]) -> tuple[str, ...]:
    """The tables and views of the script, the tables of catalogs and the files that a query names."""
    tokens = query.tokens
    tables = table_names(tokens)
    found = [names[name] for name in tables.own if name in names]
    found += map(str, tables.of_catalogs.values())
    found += _files(tokens)
    if hides_names(tokens):
        found.append(ANY_TABLE)
    return tuple(dict.fromkeys(found))


def _files(tokens: Sequence[SqlToken]) -> Iterator[str]:
    for first, dot, second in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_path = dot.is_symbol(".") and second.kind is TokenKind.QUOTED
        if is_path and first.kind is TokenKind.WORD and first.text.lower() in FILE_FORMATS:
            yield f"{first.text.lower()}:{name_value(second.text)}"
