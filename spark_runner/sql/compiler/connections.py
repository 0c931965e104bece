"""Named connections: options of the cluster's catalog that a table takes by `'connection' = 'name'`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_runner.connectors.options import folded, options_of
from spark_runner.references.reference import InvalidReference, parse_pieces, references_in
from spark_runner.sql.compiler.option_messages import with_names
from spark_runner.sql.grammar.statements import CreateTable, Option
from spark_runner.sql.text.errors import SqlError

_KEYS = ("connection", "cluster_name")


@dataclass(frozen=True)
class Connection:
    """One connection: the options that its tables share, some of which hold references."""

    name: str
    connector: str
    options: Mapping[str, str] = field(default_factory=dict)


FindConnection = Callable[[str], Connection]
"""Finds a connection by its name; raises ConnectionUnknown."""


class ConnectionUnknown(Exception):
    """There is no such connection, or it cannot be read; the message is for users."""


class ConnectionUnchecked(SqlError):
    """A table names a connection, but the check has no catalog of connections."""


def take_connection(
    statement: CreateTable, options: dict[str, Option], find: FindConnection | None
) -> tuple[Connection, Option] | None:
    """The connection of a table and the option that names it, which is removed; None if it names none.

    Raises SqlError for an unknown connection, and ConnectionUnchecked without `find`.
    """
    named = [options.pop(key) for key in list(options) if key.lower() in _KEYS]
    if not named:
        return None
    if len(named) > 1:
        message = f"option '{named[1].key}' has the same meaning as '{named[0].key}'; give one of them"
        raise statement.passage.error(message, named[1].key_offset)
    [option] = named
    if find is None:
        message = (
            f"table '{statement.name}' is not checked: connection"
            f" '{statement.written(option.value_offset, option.value)}' is in a cluster;"
            " with --cluster it is looked up"
        )
        at = statement.passage.origin(option.value_offset)
        raise statement.passage.source.error(message, at, ConnectionUnchecked)
    try:
        return find(option.value), option
    except ConnectionUnknown as error:
        message = with_names(statement, option.value_offset, option.value, str(error))
        raise statement.passage.error(message, option.value_offset) from error


def with_connection(
    statement: CreateTable, options: dict[str, Option], connection: Connection, named: Option
) -> dict[str, Option]:
    """The options of the connection, and those of the table, which win; raises SqlError."""
    model = options_of(connection.connector)
    own = {model.option_named(key) or folded(key) for key in options}
    found = dict[str, Option]()
    for key, value in connection.options.items():
        if (model.option_named(key) or folded(key)) in own:
            continue
        try:
            pieces = parse_pieces(value)
        except InvalidReference as error:
            message = f"option '{key}' of connection '{connection.name}': {error}"
            raise statement.passage.error(message, named.value_offset) from error
        pieces = pieces if references_in(pieces) else []
        found[key] = Option(key, value, named.value_offset, named.value_offset, pieces)
    return found | options
