"""The requests of rows: the JVM makes their URLs, bodies and keys, much faster than Python."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_runner.connectors.base import WriteRequest
from spark_runner.connectors.http.address import quoted, split
from spark_runner.connectors.rows import row_as_json, row_of, text_of
from spark_runner.connectors.templates import pieces


def requests(
    frame: DataFrame, options: Mapping[str, Any], request: WriteRequest, tasks: int, insert: int = 0
) -> DataFrame:
    """The rows as `path`, `body`, `row` and `key`, in at most `tasks` partitions.

    `path` or `body` is NULL where a row cannot be sent, `body` also without the option, and `key` where
    requests have none. With a key, equal rows make equal requests in each attempt: it divides and sorts them.
    `insert` is the number of the INSERT among those of its run with this URL.
    """
    key, none = request.primary_key, sql.lit(None).cast("string")
    body = _filled(options["body"], _in_body(options)) if options["body"] else none
    cells = [
        _filled(split(options["url"])[1], _in_url, frame).alias("path"),
        body.alias("body"),
        row_of(frame).alias("row"),
    ]
    if not options["idempotency_header"]:
        return frame.select(*cells, none.alias("key")).coalesce(tasks)
    by = "identity" if key else "row"
    found = frame.select(*cells, *([row_as_json(frame, key).alias(by)] if key else []))
    parts = found.repartition(tasks, by).sortWithinPartitions(by)
    # Equal rows without a key are several rows.
    number = sql.lit(0) if key else sql.row_number().over(Window.partitionBy(by).orderBy(sql.lit(0)))
    where = f"{request.writer.run_key}\n{insert} {options['method']} {options['url']}"
    digest = sql.sha2(sql.concat_ws("\n", sql.lit(where), by, number), 256)
    return parts.select("path", "body", "row", digest.alias("key"))


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
