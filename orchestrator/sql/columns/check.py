"""Checks the columns of a script: of each query, and of each INSERT against its target."""

from collections import Counter
from collections.abc import Iterator, Mapping

from orchestrator.sql.columns.catalog import Catalog, Target, changes_names
from orchestrator.sql.columns.relations import Relation
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.compile import Check
from spark_runner.sql.compiler.tables import names_files
from spark_runner.sql.grammar.statements import (
    CATALOG_INSERTS,
    AnyStatement,
    Assert,
    BeginSet,
    CatalogStatement,
    CreateTable,
    CreateView,
    Explain,
    Insert,
    Query,
    ResetStatement,
    SetStatement,
)
from spark_runner.sql.text.errors import SqlError

_SHOWN_NAMES = 10


def column_errors(found: Check, settings: Mapping[str, str] | None = None) -> list[SqlError]:
    """The errors of names of columns in a checked script, in order; what is not known gives none.

    `settings` are those of Spark beside the script.
    """
    catalog = Catalog(is_silent=any(map(changes_names, settings or ())))
    for name in found.invalid:
        catalog.forget(name)
    for statement in found.statements:
        walk(statement, catalog, found.invalid)
    return sorted(catalog.errors, key=lambda error: (error.line, error.column))


def walk(statement: AnyStatement, catalog: Catalog, invalid: frozenset[str] = frozenset()) -> Relation | None:
    """Check one statement, and declare its name; returns the columns of its query, None without one."""
    match statement:
        case SetStatement() | ResetStatement():
            catalog.is_silent |= changes_names(statement.key)
        case CreateTable() | CreateView() if statement.name.lower() in invalid:
            catalog.forget(statement.name)
        case CreateTable():
            catalog.table(statement, in_files=names_files(statement))
        case CreateView():
            catalog.view(statement.name, statement.query)
            return catalog.relations[statement.name.lower()]
        case Insert():
            return _insert(statement, catalog)
        case BeginSet():
            return walk(statement.first, catalog, invalid) if statement.first else None
        case _:
            return _of_query(statement, catalog)
    return None


def _of_query(statement: AnyStatement, catalog: Catalog) -> Relation | None:
    """The columns of a query whose target, if any, is known to Spark alone."""
    match statement:
        case Explain():
            return _insert(statement.insert, catalog) if statement.insert else catalog.query(statement.query)
        case CatalogStatement() if statement.action in CATALOG_INSERTS and statement.body:
            return catalog.query(statement.body)
        case Query():
            return catalog.query(statement.query)
        case Assert():
            catalog.condition(statement.condition)
        case _:
            pass  # it names no column
    return None


def _insert(statement: Insert, catalog: Catalog) -> Relation:
    given = catalog.query(statement.query)
    target = catalog.targets.get(statement.target.lower())
    if target is None or given.columns is None:
        return given
    if target.stored is None:
        messages = _duplicates(given) if target.in_files else iter(())
    elif statement.by_name:
        messages = _by_name(given, target, target.stored)
    else:
        messages = _by_position(given, target, target.stored)
    catalog.errors += (statement.query.error(message) for message in messages)
    return given


def _by_position(given: Relation, target: Target, stored: tuple[str, ...]) -> Iterator[str]:
    columns = given.columns or ()
    if len(columns) != len(stored):
        names = [column.name or "..." for column in columns]
        yield (
            f"the query has {_columns(len(columns))} ({_shown(names)}), table '{target.name}' declares"
            f" {len(stored)} ({_shown(stored)})"
        )


def _by_name(given: Relation, target: Target, stored: tuple[str, ...]) -> Iterator[str]:
    declared = {name.lower() for name in stored}
    for name in given.names:
        if name.lower() not in declared:
            yield f"table '{target.name}' declares no column '{name}'{did_you_mean(name, stored)}"
    for name in stored:
        if len(given.places.get(name.lower(), ())) > 1:
            yield f"the query gives column '{name}' more than once"
        if not given.is_open and name.lower() not in given.places:
            hint = did_you_mean(name, given.names)
            yield f"the query has no column '{name}' for table '{target.name}'{hint}"


def _duplicates(given: Relation) -> Iterator[str]:
    """Files have no two columns of one name."""
    for name, times in Counter(name.lower() for name in given.names).items():
        if times > 1:
            yield f"the query gives column '{name}' more than once; give one of them another name with AS"


def _columns(number: int) -> str:
    return f"{number} column{'' if number == 1 else 's'}"


def _shown(names: tuple[str, ...] | list[str]) -> str:
    more = ", ..." if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more
