"""The commands of rows, as the bytes that Redis reads: the JVM makes them, much faster than Python.

https://redis.io/docs/latest/develop/reference/protocol-spec/ has the form of a command: an array of strings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType

from spark_runner.connectors.rows import column, filled, row_as_json, row_of
from spark_runner.connectors.templates import columns_of


def commands(frame: DataFrame, options: Mapping[str, Any]) -> DataFrame:
    """The rows as `key` and `command` (BINARY), `replies` (INT) and `row` (STRING), the form of a quarantine.

    `command` is NULL where a row cannot be written, and `replies` the number of its commands.
    """
    arguments = frame.select(
        _binary(filled(options["key"], frame)).alias("key"),
        row_of(frame).alias("row"),
        *_values(frame, options, options["command"]),
    )
    # A step of its own, so that Spark computes each value once and not for its length as well.
    command, replies = _command(arguments.columns[2:], options)
    return arguments.select("key", command.alias("command"), replies.alias("replies"), "row")


def expiry_of(key: bytes, seconds: int) -> bytes:
    """The command that lets a key expire."""
    number = str(seconds).encode()
    return b"*3\r\n" + _words("EXPIRE") + b"$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(key), key, len(number), number)


def _values(frame: DataFrame, options: Mapping[str, Any], command: str) -> list[Column]:
    value = filled(options["value"]) if options["value"] else row_as_json(frame, frame.columns)
    match command:
        case "HSET" if options["field"]:
            values = {"field": filled(options["field"], frame), "value": value}
        case "HSET" | "XADD":
            in_key = {name.lower() for name in columns_of(options["key"])} if command == "HSET" else set()
            names = [name for name in frame.columns if name.lower() not in in_key]
            values = {f"{index} {name}": column(name) for index, name in enumerate(names)}
        case "ZADD":
            values = {"score": column(options["score"]).cast("double"), "value": value}
        case _:
            values = {"value": value}
    return [_binary(each).alias(name) for name, each in values.items()]


def _binary(value: Column) -> Column:
    return value.cast("string").cast("binary")


def _command(names: list[str], options: Mapping[str, Any]) -> tuple[Column, Column]:
    """The command of a row, and the number of replies to it."""
    key, ttl, name = _bulk(sql.col("key")), options["ttl"], options["command"]
    values = {each: column(each) for each in names}
    match name:
        case "HSET" if not options["field"]:
            return _replaced_hash(key, values)
        case "XADD":
            limit = ["MAXLEN", "~", str(options["max_length"])] if options["max_length"] else []
            made = _with_fields(key, values, name, [*limit, "*"])
        case "SET" if ttl:
            words = _text(_words("EX", str(ttl)))
            made = sql.concat(_text(_words(name, head=b"*5\r\n")), key, *map(_bulk, values.values()), words)
        case _:
            head = f"*{2 + len(values)}\r\n".encode()
            made = sql.concat(_text(_words(name, head=head)), key, *map(_bulk, values.values()))
    return made, sql.lit(1)


def _replaced_hash(key: Column, values: Mapping[str, Column]) -> tuple[Column, Column]:
    """HSET of the fields of a row, and HDEL of those without a value, which an earlier row may have."""
    none = [sql.when(value.isNull(), _text(_words(_field(each)))) for each, value in values.items()]
    absent = sum((sql.when(value.isNull(), 1).otherwise(0) for value in values.values()), sql.lit(0))
    removal = sql.concat(
        *[_text(b"*"), _digits(absent + 2), _text(_words("HDEL", head=b"\r\n")), key],
        *[sql.coalesce(each, _text(b"")) for each in none],
    )
    made = sql.concat(_with_fields(key, values, "HSET"), sql.when(absent > 0, removal).otherwise(_text(b"")))
    return made, sql.when(absent > 0, 2).otherwise(1)


def _with_fields(key: Column, values: Mapping[str, Column], name: str, words: Sequence[str] = ()) -> Column:
    """A command with `words` and the fields of a row; NULL for a row without any value."""
    pairs = [sql.concat(_text(_words(_field(each))), _bulk(value)) for each, value in values.items()]
    # Neither hashes nor streams have NULL: a field without a value is left out.
    given = sum((sql.when(value.isNotNull(), 2).otherwise(0) for value in values.values()), sql.lit(0))
    opening = [_text(b"*"), _digits(given + (2 + len(words))), _text(_words(name, head=b"\r\n"))]
    fields = [sql.coalesce(pair, _text(b"")) for pair in pairs]
    return sql.when(given > 0, sql.concat(*opening, key, _text(_words(*words)), *fields))


def _field(column_name: str) -> str:
    """The field of a column of the arguments, which has its number before its name."""
    return column_name.partition(" ")[2]


def _bulk(value: Column) -> Column:
    return sql.concat(_text(b"$"), _digits(sql.octet_length(value)), _text(b"\r\n"), value, _text(b"\r\n"))


def _digits(number: Column) -> Column:
    return number.cast("string").cast(BinaryType())


def _text(words: bytes) -> Column:
    return sql.lit(bytearray(words))


def _words(*words: str, head: bytes = b"") -> bytes:
    """Fixed words as strings of the protocol, behind `head`."""
    encoded = [word.encode() for word in words]
    return head + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)
