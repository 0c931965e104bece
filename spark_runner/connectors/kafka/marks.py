"""Marks of records: headers by which a job passes over what it has written to a topic itself."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

PREFIX = "orchestrator.mark."
"""Of the name of the header. The name has the mark: filters by name find it, and a map keeps several."""


_HEADERS = "array<struct<key: string, value: binary>>"


def without_marked(frame: DataFrame, options: Mapping[str, Any]) -> DataFrame:
    """The records without one of the marks of `skip_mark`, by the column `headers` of Spark's source."""
    skipped = [f"{PREFIX}{mark}" for mark in options.get("skip_mark", ())]  # older plans have none
    if not skipped:
        return frame
    is_marked = sql.exists(sql.col("headers"), lambda each: each["key"].isin(skipped))
    return frame.where(~sql.coalesce(is_marked, sql.lit(False)))  # headers are NULL where there are none


def with_mark(headers: Column | None, options: Mapping[str, Any]) -> Column | None:
    """The headers of records to write, and that of `mark`; None without any."""
    mark = options.get("mark", "")
    if not mark:
        return headers
    name, value = sql.lit(f"{PREFIX}{mark}"), sql.lit(mark).cast("binary")
    own = sql.array(sql.struct(name.alias("key"), value.alias("value")))
    if headers is None:
        return own
    others = sql.filter(headers, lambda each: each["key"] != name)  # of a record that came with it
    return sql.concat(sql.coalesce(others, sql.array().cast(_HEADERS)), own)
