"""Compares the columns of a query with those that its target declares, and reports every difference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.execution.casts import cast_risk, type_name
from spark_runner.sql.text.passage import Passage


@dataclass(frozen=True)
class Difference:
    """An error, or a warning of what may happen; `column` counts columns of the query, None for all."""

    message: str
    is_error: bool
    column: int | None = None


@dataclass(frozen=True)
class Comparison:
    """The columns of an INSERT, and their differences from the declared ones."""

    columns: list[dict[str, Any]]
    differences: list[Difference]

    @property
    def has_error(self) -> bool:
        """Whether the INSERT would fail for every row."""
        return any(difference.is_error for difference in self.differences)


def compare(
    session: SparkSession,
    given: StructType,
    declared: StructType | None,
    *,
    by_name: bool,
    tolerant: bool = False,
) -> Comparison:
    """The comparison for a table that declares these columns, or none.

    With `tolerant` a row that does not fit is set aside.
    """
    columns = [{"name": field.name, "type": type_name(field.dataType), "into": None} for field in given]
    if declared is None:
        return Comparison(columns, [])
    differences = list(_names_differ(given, declared) if by_name else _order_differs(given, declared))
    for index, field in _pairs(given, declared, by_name=by_name):
        columns[index]["into"] = f"{field.name} {type_name(field.dataType)}"
        differences += _of_types(session, index, given.fields[index], field, tolerant=tolerant)
    return Comparison(columns, differences)


def _pairs(given: StructType, declared: StructType, *, by_name: bool) -> Iterator[tuple[int, StructField]]:
    """The index of each column of the query that has a column of the table, with that."""
    if not by_name:
        if len(given.fields) == len(declared.fields):
            yield from enumerate(declared.fields)
        return
    names = [name.lower() for name in given.fieldNames()]
    for field in declared.fields:
        if names.count(field.name.lower()) == 1:
            yield names.index(field.name.lower()), field


def _order_differs(given: StructType, declared: StructType) -> Iterator[Difference]:
    names, wanted = given.fieldNames(), declared.fieldNames()
    if len(names) != len(wanted):
        yield Difference(
            f"the query has {len(names)} columns ({', '.join(names)}),"
            f" the table declares {len(wanted)} ({', '.join(wanted)})",
            is_error=True,
        )
        return
    known = {name.lower() for name in wanted}
    for index, (name, column) in enumerate(zip(names, wanted, strict=True)):
        if name.lower() != column.lower() and name.lower() in known:
            message = f"column '{name}' of the query goes into '{column}', by its position; write BY NAME"
            yield Difference(message, is_error=False, column=index)


def _names_differ(given: StructType, declared: StructType) -> Iterator[Difference]:
    names, wanted = given.fieldNames(), declared.fieldNames()
    lower, known = [name.lower() for name in names], {name.lower() for name in wanted}
    for name in wanted:
        if lower.count(name.lower()) > 1:
            yield Difference(f"the query has column '{name}' more than once", is_error=True)
        elif name.lower() not in lower:
            hint = did_you_mean(name, names)
            yield Difference(f"the query has no column '{name}'{hint}", is_error=True)
    for index, name in enumerate(names):
        if name.lower() not in known:
            message = f"the table declares no column '{name}'{did_you_mean(name, wanted)}"
            yield Difference(message, is_error=True, column=index)


def _of_types(
    session: SparkSession, index: int, given: StructField, declared: StructField, *, tolerant: bool
) -> Iterator[Difference]:
    name = (
        given.name if given.name.lower() == declared.name.lower() else f"{given.name}' into '{declared.name}"
    )
    if (risk := cast_risk(session, given.dataType, declared.dataType, tolerant=tolerant)) is not None:
        types = f"{type_name(given.dataType)} as {type_name(declared.dataType)}"
        yield Difference(f"column '{name}', {types}: {risk.words}", risk.is_refused, index)
    if given.nullable and not declared.nullable:
        fails = "goes to the quarantine" if tolerant else "ends the job"
        message = f"column '{declared.name}' is NOT NULL: a row in which the query gives NULL {fails}"
        yield Difference(message, is_error=False, column=index)


def column_offsets(query: Passage, count: int) -> Sequence[int] | None:
    """Where each of the `count` columns of a query begins; None unless it simply lists them."""
    tokens = query.tokens
    if not tokens or not tokens[0].is_word("SELECT"):
        return None
    offsets, depth, is_start = list[int](), 0, True
    for token in tokens[1:]:
        if depth == 0 and token.is_word("FROM", "UNION", "EXCEPT", "INTERSECT", "WHERE", "LATERAL"):
            break
        if is_start and not token.is_word("DISTINCT", "ALL"):
            offsets.append(token.start)
            is_start = False
        if token.is_symbol("*") and depth == 0 and offsets and _is_star(query, offsets[-1], token.start):
            return None
        depth += token.is_symbol("(") - token.is_symbol(")")
        depth += token.is_symbol("[") - token.is_symbol("]")
        is_start |= depth == 0 and token.is_symbol(",")
    return offsets if len(offsets) == count else None


def _is_star(query: Passage, start: int, star: int) -> bool:
    """Whether a star stands for columns, as in `*` and `t.*`, and does not multiply."""
    before = query.text[start:star].strip()
    return not before or before.endswith(".")
