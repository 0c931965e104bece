"""Runs statements on tables of Spark catalogs, and explains the errors of Spark about them."""

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.java_classes import java_class
from spark_runner.sql.execution.catalog_plans import (
    catalog_tables,
    plan_of,
    reads_table,
    refuse_short_names,
)
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, SentTexts, condition, reason
from spark_runner.sql.execution.script_context import ScriptContext
from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.grammar.references import catalog_names
from spark_runner.sql.grammar.statements import CATALOG_INSERTS, CatalogAction, CatalogStatement
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.full_name import full_name_of, may_be_same
from spark_runner.sql.text.passage import Passage

USES = frozenset({CatalogAction.USE, CatalogAction.USE_CATALOG})
"""Actions that change the meaning of names, and nothing else."""

SHOWS = frozenset({CatalogAction.SHOW, CatalogAction.DESCRIBE})
"""Actions whose rows are shown."""

_CHANGES = frozenset({CatalogAction.MERGE, CatalogAction.DELETE})
_NO_CATALOG = "CATALOG_NOT_FOUND"
_MISSING = {
    *("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", _NO_CATALOG),
    "REQUIRES_SINGLE_PART_NAMESPACE",  # of spark_catalog, which gets each name without a catalog of its own
}
_UNSUPPORTED = ("UNSUPPORTED_FEATURE.TABLE_OPERATION", "_LEGACY_ERROR_TEMP_1121")  # DELETE of tables of JDBC
_ROWS = "numOutputRows"
_WRITE = "org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec"


def run(script: ScriptContext, step: Mapping[str, Any], of_set: Collection[str] = ()) -> DataFrame:
    """Let Spark run the statement of a step; raises SqlError at the place that Spark names.

    `of_set` are the tables of catalogs that INSERTs before it have written, in the same statement set.
    """
    statement = script.passage(step["statement"])
    if step["action"] in CATALOG_INSERTS:
        check_reads(script, step, rows_of_insert(script, step), of_set)
    try:
        if step["action"] in _CHANGES:
            refuse_short_names(script.session, _analysed(script, statement), statement)
        return script.session.sql(script.sent.send(statement))
    except SPARK_ERRORS as error:
        raise failed(script, step, error) from _cause(error)


def failed(script: ScriptContext, step: Mapping[str, Any], error: Exception) -> SqlError:
    """The error of a statement on a catalog."""
    statement = script.passage(step["statement"])
    if found := script.sent.place(error, statement):
        passage, offset = found
        return passage.error(_words(script.session, error, passage), offset)
    words = reason(error)
    if condition(error) in _UNSUPPORTED:
        words = f"the catalog does not support this {step['action']} of '{step['target']}': {words}"
    return script.error(f"{words}{missing_catalog(script.session, error, step['target'])}", step)


def located(session: SparkSession, sent: SentTexts, error: Exception, query: Passage) -> SqlError:
    """The error of a query that may name tables of catalogs."""
    missing = condition(error) in _MISSING
    for name in catalog_names(query.tokens).values() if missing else ():
        if not _is_configured(session, name.parts[0]):
            found, offset = sent.place(error, query) or (query, name.offset)
            return found.error(_words(session, error, query), offset)
    return sent.located(error, query)


def rows_written(frame: DataFrame, action: str) -> int | None:
    """How many rows an INSERT has written; None if Spark does not count them, or counts others, too.

    The number is that of the write, which counts the rows of each committed task once. A MERGE or DELETE may
    write rows anew that it does not change.
    """
    if action not in CATALOG_INSERTS:
        return None
    plan: Any = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark has no public way to metrics
    write = plan.commandPhysicalPlan()
    metric = write.metrics().get(_ROWS)
    if metric.isDefined():  # of a table of Spark; of others since 4.2
        return int(metric.get().value())
    if not java_class(frame.sparkSession, "java.lang.Class").forName(_WRITE).isInstance(write):
        return None  # of a catalog whose rows Spark writes as it writes those of JDBC
    progress = write.commitProgress()
    return int(progress.get().numOutputRows()) if progress.isDefined() else None


def replaces(script: ScriptContext, step: Mapping[str, Any]) -> bool:
    """Whether a CREATE TABLE replaces a table that is there."""
    return script.passage(step["statement"]).tokens[1].is_word("OR")


def check_analysed(script: ScriptContext, step: Mapping[str, Any]) -> DataFrame | None:
    """Let Spark analyse a statement without running it; raises SqlError likewise.

    Returns the rows of an INSERT.
    """
    if step["action"] in CATALOG_INSERTS:
        return check_insert(script, step)
    _analyse(script, step)
    return None


def check_insert(script: ScriptContext, step: Mapping[str, Any]) -> DataFrame:
    """Likewise for an INSERT."""
    rows = rows_of_insert(script, step)
    _analyse(script, step)
    return rows


def _analyse(script: ScriptContext, step: Mapping[str, Any]) -> None:
    statement = script.passage(step["statement"])
    try:
        if step["action"] in _CHANGES:
            refuse_short_names(script.session, _analysed(script, statement), statement)
        state: Any = script.session._jsparkSession.sessionState()  # noqa: SLF001 - PySpark runs each command at once
        plan = state.sqlParser().parsePlan(script.sent.send(statement))
        state.executePlan(plan, getattr(state, "executePlan$default$2")()).assertAnalyzed()
    except SPARK_ERRORS as error:
        raise failed(script, step, error) from _cause(error)


def _analysed(script: ScriptContext, statement: Passage) -> Any:
    """The plan of a statement with its tables, without the transaction that a run of it begins.

    It may have names that Spark does not find: the run of the statement is an error then.
    """
    session: Any = script.session._jsparkSession  # noqa: SLF001 - PySpark runs each command at once
    session.setActiveSession(session)  # its settings decide what names mean
    state = session.sessionState()
    return state.analyzer().execute(state.sqlParser().parsePlan(script.sent.send(statement)))


def rows_of_insert(script: ScriptContext, step: Mapping[str, Any]) -> DataFrame:
    """The rows of an INSERT; raises SqlError for a wrong query, and for one that reads what it replaces.

    Spark refuses that itself for files, and not where a catalog deletes the rows before the query runs. The
    compiler sees the names in the text; others come from IDENTIFIER() and settings.
    """
    _, query = parts_of_insert(script.passage(step["statement"]))
    try:
        frame = script.session.sql(script.sent.send(query))
        check_relations(script.session, frame, query, denied=False)
        if step["action"] == CatalogAction.INSERT_OVERWRITE:
            read = reads_table(script.session, frame, [step["target"]])
            if read is not None:
                message = f"refused: this INSERT reads '{read}', and replaces its rows; use a further table"
                raise script.error(message, step)
    except SPARK_ERRORS as error:
        raise failed(script, step, error) from _cause(error)
    return frame


def parts_of_insert(statement: Passage) -> tuple[Passage, Passage]:
    """The head of an INSERT, and its query."""
    written = parse(statement)
    offset = written.body_offset if isinstance(written, CatalogStatement) else 0
    return statement.part(0, offset), statement.part(offset, len(statement.text))


def check_reads(
    script: ScriptContext, step: Mapping[str, Any], frame: DataFrame, of_set: Collection[str]
) -> None:
    """Raise SqlError for an INSERT of a statement set that reads a table that another one writes.

    The compiler sees the names in the text; others come from IDENTIFIER() and settings.
    """
    try:
        read = reads_table(script.session, frame, of_set)
    except SPARK_ERRORS as error:
        raise script.error(reason(error), step) from error
    if read is not None:
        message = f"refused: this INSERT reads '{read}', which an INSERT of the same set writes"
        raise script.error(message, step)


def check_relations(session: SparkSession, frame: DataFrame, query: Passage, *, denied: bool) -> None:
    """Raise SqlError if a query reads a table of a catalog by a name of one part, or where it is denied."""
    plan = plan_of(frame)
    if denied and next(catalog_tables(plan), None) is not None:
        message = "the policy of the pool does not list the connector 'catalog'"
        raise query.error(f"this query reads a table of a catalog, and {message}")
    refuse_short_names(session, plan, query)


def is_missing(error: BaseException | None) -> bool:
    """Whether Spark has not found a name."""
    return isinstance(error, Exception) and condition(error) in _MISSING


def may_create(created: str, name: str) -> bool:
    """Whether the creation of a table or namespace may give a name its meaning."""
    made, wanted = full_name_of(created), full_name_of(name)
    return (
        made is not None
        and wanted is not None
        and any(may_be_same(made.key, wanted.key[:end]) for end in range(1, len(wanted.key) + 1))
    )


def _cause(error: Exception) -> Exception | None:
    """What caused an error of a script; None for one that a further attempt repeats."""
    return None if condition(error) in _UNSUPPORTED else error


def _words(session: SparkSession, error: Exception, passage: Passage) -> str:
    names = catalog_names(passage.tokens).values()
    hints = (missing_catalog(session, error, str(name)) for name in names)
    return f"{reason(error)}{next(filter(None, hints), '')}"


def missing_catalog(session: SparkSession, error: Exception, name: str) -> str:
    """The catalog that lacks, for an error about a name that Spark does not find."""
    if condition(error) not in _MISSING - {_NO_CATALOG} or not name:  # Spark says the same of a catalog
        return ""
    found = full_name_of(name)
    first = found.parts[0] if found else ""
    if not first or _is_configured(session, first):
        return ""
    return f"; no catalog '{first}' is configured, which needs the Spark property spark.sql.catalog.{first}"


def _is_configured(session: SparkSession, catalog: str) -> bool:
    is_own = catalog.lower() == "spark_catalog"
    return is_own or session.conf.get(f"spark.sql.catalog.{catalog}", None) is not None
