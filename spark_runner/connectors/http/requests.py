"""The requests of rows: the JVM makes their URLs, bodies and keys, much faster than Python."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_runner.connectors.base import WriteRequest
from spark_runner.connectors.http.address import quoted, split
from spark_runner.connectors.rows import column, row_as_json, row_of, text_of
from spark_runner.connectors.templates import pieces
from spark_runner.push.settings import Order

_LANE_CHARS = 1000
_IDENTITY, _SORT = "__orchestrator_identity", "__orchestrator_sort_"


def requests(
    frame: DataFrame,
    options: Mapping[str, Any],
    request: WriteRequest,
    order: Order,
    *,
    tasks: int,
    insert: int = 0,
) -> DataFrame:
    """The rows as `path`, `body`, `row`, `key`, `lane` and `group`, in at most `tasks` partitions.

    `path` or `body` is NULL where a row cannot be sent, `body` also without the option, and `key` where
    requests have none. With a key, equal rows make equal requests in each attempt: it divides and sorts them.
    Rows with an equal `group` are in the order of `order_by`, and in strict order all rows of a partition.
    `insert` is the number of the INSERT among those of its run with this URL.
    """
    none, by = sql.lit(None).cast("string"), _IDENTITY if request.primary_key else "row"
    body = sql.make_valid_utf8(_filled(options["body"], _in_body(options))) if options["body"] else none
    sorting = {f"{_SORT}{place}": column(name) for place, name in enumerate(options["order_by"])}
    found = frame.select(
        _filled(split(options["url"])[1], _in_url, frame).alias("path"),
        body.alias("body"),
        row_of(frame).alias("row"),
        (_lane(options["lane"]) if options["lane"] else none).alias("lane"),
        *([row_as_json(frame, request.primary_key).alias(_IDENTITY)] if request.primary_key else []),
        *(each.alias(name) for name, each in sorting.items()),
    )
    sorts = [by, *sorting, *(["row"] if request.primary_key else [])]
    has_key = bool(options["idempotency_header"])
    if order is not Order.STRICT:
        is_divided = has_key or bool(sorting)
        found = found.repartition(tasks, by) if is_divided else found.coalesce(tasks)
        found = found.sortWithinPartitions(*sorts) if is_divided else found
    where = f"{request.writer.run_key}\n{insert} {options['method']} {options['url']}"
    found = found.withColumn("key", _key(where, by, sorts) if has_key else none)
    if order is Order.STRICT:
        found = found.repartition(tasks, "lane") if options["lane"] else found.repartition(1)
        found = found.sortWithinPartitions(*sorting, *sorts)
    # Another hash than the one that divides rows among tasks, by which those of one task are much alike.
    group = sql.xxhash64(by) if order is Order.BY_KEY else sql.lit(None).cast("bigint")
    return found.select("path", "body", "row", "key", "lane", group.alias("group"))


def _lane(name: str) -> Column:
    """The lane of each row: a task keeps many of them, so that none may be a huge text."""
    return sql.make_valid_utf8(sql.substring(text_of(name, None), 1, _LANE_CHARS))


def _key(where: str, by: str, sorts: Sequence[str]) -> Column:
    """The key of each row: those with an equal identity are several rows, and numbered."""
    number = sql.row_number().over(Window.partitionBy(by).orderBy(*sorts))
    return sql.sha2(sql.concat_ws("\n", sql.lit(where), by, number), 256)


def _filled(template: str, value: Callable[[Column], Column], named: DataFrame | None = None) -> Column:
    """The text of each row, of the frame `named` for a URL; NULL where one of its columns is NULL."""
    return sql.concat(
        *[
            value(text_of(each.text, named))
            if each.is_column
            else sql.lit(each.text if named is None else quoted(each.text))
            for each in pieces(template)
        ]
    )


def _in_url(value: Column) -> Column:
    # Without a value, the URL would be that of all items.
    return sql.when(value != "", sql.replace(sql.url_encode(value), sql.lit("+"), sql.lit("%20")))


def _in_body(options: Mapping[str, Any]) -> Callable[[Column], Column]:
    given = {name.lower(): each for name, each in options.items()}
    if "json" not in given.get("headers.content-type", "json").lower():
        return lambda value: value

    def escaped(value: Column) -> Column:
        text = sql.to_json(sql.struct(value.alias("v")))  # {"v":"..."}
        return sql.when(value.isNotNull(), sql.substring(text, 7, sql.length(text) - 8))

    return escaped
