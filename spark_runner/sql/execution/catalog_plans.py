"""Finds the tables of catalogs in the plans of Spark, by whichever name a text reaches them."""

from collections.abc import Collection, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.sql.grammar.references import references
from spark_runner.sql.text.full_name import FullName
from spark_runner.sql.text.passage import Passage

_OF_FORMAT_2 = {"DataSourceV2Relation", "StreamingRelationV2"}


def catalog_tables(plan: Any) -> Iterator[FullName]:
    """The tables of catalogs that an analysed plan reads, with all parts of their names."""
    for part in (plan, *_each(plan.subqueriesAll())):
        for leaf in _each(part.collectLeaves()):
            if (name := catalog_table(leaf)) is not None:
                yield name


def catalog_table(relation: Any) -> FullName | None:
    """The name of a relation of a plan; None if it is of no catalog."""
    kind = relation.getClass().getSimpleName()
    if kind in _OF_FORMAT_2 and relation.catalog().isDefined():
        found = relation.identifier()
        parts = [*found.get().namespace(), found.get().name()] if found.isDefined() else []
        return FullName((relation.catalog().get().name(), *parts), 0)
    if kind == "LogicalRelation" and relation.catalogTable().isDefined():
        return _of_format_1(relation.catalogTable().get())
    return _of_format_1(relation.tableMeta()) if kind == "HiveTableRelation" else None


def refuse_short_names(session: SparkSession, plan: Any, text: Passage) -> None:
    """Raise SqlError at a name of one part that Spark takes for a table of its current catalog.

    `plan` is that of the text. A name of one part is one of the script, whatever USE says.
    """
    known: Any = session._jsparkSession.sessionState().catalog()  # noqa: SLF001 - no public way to views alone
    found = references(text.tokens)
    others = {name: use for name, use in found.items() if not known.getTempView(name).isDefined()}
    if not others:
        return
    for table in catalog_tables(plan):
        if use := others.get(table.key[-1]):
            message = (
                f"'{table.parts[-1]}' is no table or view of the script; a table of a catalog has all parts"
                f" of its name: {table}"
            )
            raise text.error(message, use.offset)


def reads_table(session: SparkSession, frame: DataFrame, targets: Collection[str]) -> FullName | None:
    """One of the tables of catalogs with these names, by whichever name a frame reads it; None without one.

    Raises the errors of Spark.
    """
    read = {name.key: name for name in catalog_tables(plan_of(frame))} if targets else {}
    for target in targets if read else ():
        for name in catalog_tables(plan_of(session.table(target))):
            if name.key in read:
                return read[name.key]
    return None


def plan_of(frame: DataFrame) -> Any:
    """The analysed plan of a frame."""
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way to the plan


def _of_format_1(table: Any) -> FullName:
    found = table.identifier()
    parts = (each.get() for each in (found.catalog(), found.database()) if each.isDefined())
    return FullName((*parts, found.table()), 0)


def _each(sequence: Any) -> Iterator[Any]:
    found = sequence.iterator()
    while found.hasNext():
        yield found.next()
