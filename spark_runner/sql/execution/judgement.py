"""Decides for each row of a table whether it fits: by its decoding, its casts and the expectations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField, StructType

from spark_runner.connectors.rows import row_as_json, struct_as_json
from spark_runner.sql.text.literals import quote_name

RECORD = "__orchestrator_record"  # the text of a record that could not be decoded
FILE = "__orchestrator_file"
CAST = "__orchestrator_cast"  # the name of a column whose value the table cannot hold
GIVEN = "__orchestrator_given"  # a row as its query gave it: its columns, then the same as JSON
TYPES = "__orchestrator_types"  # the types of that row
VERDICT = "__orchestrator_verdict"
_OWN = (RECORD, FILE, CAST, GIVEN, TYPES, VERDICT)

QUARANTINE_SCHEMA = (
    "record STRING, form STRING, types STRING, reason STRING, rule STRING, file STRING, at TIMESTAMP,"
    " source STRING, job STRING, run STRING, attempt STRING"
)
"""The columns of `quarantined`."""

QUARANTINED, DROPPED = "quarantine", "drop row"
TEXT, ROW = "text", "json"  # the forms of a record: as it was read or rejected, or the row


class Rule(NamedTuple):
    """A condition that rows meet, or else they leave the table."""

    name: str
    holds: Column
    action: str
    reason: str


def has_rules(step: Mapping[str, Any]) -> bool:
    """Whether rows of a table may leave it instead of failing the job."""
    return any(each.get("action") in {QUARANTINED, DROPPED} for each in step.get("expectations", ()))


def judged(frame: DataFrame, rules: Iterable[Rule], *, unread: str = QUARANTINED) -> DataFrame:
    """The rows with a verdict: NULL for those that fit, else the first rule that they do not meet.

    `unread` is what happens to records that could not be decoded.
    """
    verdicts = list[tuple[Column, Column]]()
    if RECORD in frame.columns:
        words = "the record does not fit the declared columns"
        is_damaged = _column(RECORD).isNotNull() & _uses_all(frame)
        verdicts.append((is_damaged, _verdict(sql.lit("decoding"), words, unread)))
    if CAST in frame.columns:
        name = _column(CAST)
        lost = sql.concat(sql.lit("column '"), name, sql.lit("' cannot hold the value"))
        verdicts.append((name.isNotNull(), _verdict(sql.lit("cast"), lost, QUARANTINED)))
    for rule in rules:
        verdict = _verdict(sql.lit(rule.name), rule.reason, rule.action)
        # A row that fails the job stays among those that fit, where its error is raised.
        is_kept = rule.action not in {QUARANTINED, DROPPED}
        verdicts.append((~sql.coalesce(rule.holds, sql.lit(False)), sql.lit(None) if is_kept else verdict))
    return frame.withColumn(VERDICT, _first(verdicts)) if verdicts else frame


def with_given_text(frame: DataFrame) -> DataFrame:
    """The judged rows of an INSERT; those for the quarantine with GIVEN as text, and with its types."""
    if GIVEN not in frame.columns:
        return frame
    if VERDICT not in frame.columns:
        return frame.drop(GIVEN)
    is_kept = _column(VERDICT)["action"] == QUARANTINED
    text = sql.when(is_kept, struct_as_json(_column(GIVEN), frame.schema[GIVEN].dataType))
    return frame.withColumn(TYPES, sql.when(is_kept, sql.lit(_types(frame)))).withColumn(GIVEN, text)


def _types(frame: DataFrame) -> str:
    """The columns of GIVEN, as a declaration has them."""
    given = frame.schema[GIVEN].dataType
    return types_of(given) if isinstance(given, StructType) else ""


def types_of(columns: StructType) -> str:
    """Columns as a declaration has them, for the column `types` of a quarantine."""
    return StructType([StructField(each.name, each.dataType) for each in columns]).toDDL()


def _first(verdicts: Sequence[tuple[Column, Column]]) -> Column:
    """The verdict of the first condition that is true, in this order; else NULL."""
    (condition, verdict), *others = verdicts
    found = sql.when(condition, verdict)
    for condition, verdict in others:
        found = found.when(condition, verdict)
    return found


def fitting(frame: DataFrame) -> DataFrame:
    """The rows that fit, without the columns of the judgement."""
    values = [_column(name) for name in visible(frame)]
    if VERDICT not in frame.columns:
        return frame if len(values) == len(frame.columns) else frame.select(*values)
    return frame.filter(_column(VERDICT).isNull()).select(*values)


def _uses_all(frame: DataFrame) -> Column:
    """True, from all columns: Spark decodes those that a query uses, and a record must not fit for one alone.

    It names the partition, so that Spark cannot simplify it.
    """
    uses = sql.spark_partition_id() >= 0
    for name in visible(frame):
        uses |= _column(name).isNull()
    return uses


def visible(frame: DataFrame) -> list[str]:
    """The columns of the table itself."""
    return [name for name in frame.columns if name not in _OWN]


def quarantined(frame: DataFrame, facts: Mapping[str, str]) -> DataFrame:
    """The rows for the quarantine: their record, why they are there, and `facts` of the run."""
    record = row_as_json(frame, visible(frame))
    if GIVEN in frame.columns:
        record = sql.coalesce(_column(GIVEN), record)
    form = sql.lit(ROW)
    if RECORD in frame.columns:
        form = sql.when(_column(RECORD).isNull(), form).otherwise(TEXT)
        record = sql.coalesce(_column(RECORD), record)
    types = _column(TYPES) if TYPES in frame.columns else sql.lit(None).cast("string")
    file = _column(FILE) if FILE in frame.columns else sql.lit(None).cast("string")
    verdict = _column(VERDICT)
    columns = {
        "record": record,
        "form": form,
        "types": types,
        "reason": verdict["reason"],
        "rule": verdict["rule"],
        "file": file,
        "at": sql.current_timestamp(),
        **{name: sql.lit(value) for name, value in facts.items()},
    }
    rows = frame.filter(verdict["action"] == QUARANTINED)
    return rows.select(*[value.alias(name) for name, value in columns.items()])


def counts(frame: DataFrame) -> dict[str, int]:
    """The number of rows by the action of their verdict; "" for those that fit."""
    found = frame.groupBy(_column(VERDICT)["action"].alias("action")).count().collect()
    return {row["action"] or "": int(row["count"]) for row in found}


def counts_by_file(frame: DataFrame) -> dict[str, dict[str, int]]:
    """Likewise, for each file with rows."""
    action = _column(VERDICT)["action"].alias("action")
    found = dict[str, dict[str, int]]()
    for row in frame.groupBy(_column(FILE).alias("file"), action).count().collect():
        found.setdefault(row["file"], {})[row["action"] or ""] = int(row["count"])
    return found


def _verdict(rule: Column, reason: str | Column, action: str) -> Column:
    words = sql.lit(reason) if isinstance(reason, str) else reason
    return sql.struct(rule.alias("rule"), words.alias("reason"), sql.lit(action).alias("action"))


def _column(name: str) -> Column:
    return sql.col(quote_name(name))


def kept_columns(frame: DataFrame, order: Sequence[str]) -> list[Column]:
    """Declared columns in order, and those of the judgement that exist."""
    return [_column(name) for name in (*order, *(own for own in _OWN if own in frame.columns))]
