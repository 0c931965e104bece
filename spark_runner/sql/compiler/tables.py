"""Maps both dialects of CREATE TABLE to one checked specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spark_runner.connectors import registry
from spark_runner.connectors.errors import ConnectorError, OptionError
from spark_runner.connectors.files.options import FileOptions
from spark_runner.connectors.options import ConnectorOptions, Guarantee, options_of, to_plan, validate
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.connections import (
    Connection,
    FindConnection,
    take_connection,
    with_connection,
)
from spark_runner.sql.compiler.option_keys import current_key, current_keys
from spark_runner.sql.compiler.option_messages import option_error, with_names
from spark_runner.sql.compiler.option_references import checked_references
from spark_runner.sql.grammar.columns import Columns
from spark_runner.sql.grammar.statements import CreateTable, Option
from spark_runner.sql.locations import is_relative, resolve
from spark_runner.sql.text.errors import SqlError

_FILE_FORMATS = ("parquet", "csv", "json", "orc", "text")


@dataclass(frozen=True)
class TableSpec:
    """One table: its connector, options and location."""

    connector: str
    options: dict[str, Any]
    location: str  # absolute path or URI; empty if the connector has none
    beside: bool  # the path is relative to the folder of the definition
    readable: bool
    writable: bool
    references: dict[str, list[Any]]  # the pieces of options with references, by option
    only_adds: bool  # no INSERT OVERWRITE
    batch_only: str  # why no stream can write it; empty if one can
    upserts: bool  # it replaces rows by the primary key
    guarantee: Guarantee  # of its sink
    streams: bool = False  # its new rows can be read in micro-batches, and the table does not refuse that
    unbounded: bool = False  # its rows have no end, and mode batch cannot read them
    may_be_static: bool = False  # a stream may read all its rows at its start
    unreadable: str = ""  # why its options let no query read it
    unwritable: str = ""  # likewise, no INSERT write it
    doubt: str = ""  # what who reads it may overlook
    path_offset: int = 0  # of the value of its option `path`; 0 if a connection has it


def table_spec(statement: CreateTable, base_dir: str, find: FindConnection | None = None) -> TableSpec:
    """Check a CREATE TABLE; raises SqlError at the wrong option, connector or statement.

    `find` finds connections; without it, a table that names one raises ConnectionUnchecked.
    """
    options = current_keys(statement)
    columns = statement.columns
    shared = take_connection(statement, options, find)
    connector = _connector(statement, options, shared and shared[0])
    if shared is not None:
        options = with_connection(statement, options, *shared)
    try:
        given = {key: option.value for key, option in options.items()}
        checked = validate(connector, given, tuple(columns.stored) if columns else ())
        if columns is not None and columns.primary_key:
            checked.check_primary_key(columns.primary_key)
    except OptionError as error:
        raise _located(statement, options, error) from error
    fields = [metadata_field(each.key) for each in columns.metadata] if columns else []
    if columns is not None:
        _check_metadata(columns, connector, checked.known_metadata())
        checked = checked.with_metadata(fields)
    location, beside, path_offset = checked.place(), False, 0
    if isinstance(checked, FileOptions):
        beside = is_relative(checked.path)
        path_offset = options["path"].value_offset if "path" in options else 0
        if beside and not base_dir:
            at = options.get("path")
            path = statement.written(at.value_offset, checked.path) if at else checked.path
            message = f"path '{path}' is relative, and the definition names no folder (`directory`)"
            raise statement.passage.error(message)
        try:
            location = resolve(checked.path, base_dir)
        except ValueError as error:
            at = options.get("path")
            offset = at.value_offset if at else 0
            message = f"option 'path': {error}"
            message = with_names(statement, offset, checked.path, message) if at else message
            raise statement.passage.error(message, offset) from error
        checked = checked.model_copy(update={"path": location})
    checked = checked.model_copy(update=_files(statement, options, checked, base_dir))
    found = registry.find(connector)
    has_key = bool(columns and columns.primary_key)
    return TableSpec(
        connector,
        to_plan(checked),
        location,
        beside,
        readable=bool(found and found.source),
        writable=bool(found and found.sink),
        references=checked_references(statement, options, checked, location),
        only_adds=checked.only_adds,
        batch_only=checked.batch_only,
        upserts=checked.replaces_rows(),
        guarantee=checked.guarantee(has_primary_key=has_key),
        streams=checked.streams and getattr(checked, "streaming", True),
        unbounded=checked.unbounded and not checked.reads_in_batch,
        may_be_static=checked.is_constant or not getattr(checked, "streaming", True),
        unreadable=checked.refusal_of_reads(),
        unwritable=checked.refusal_of_writes(has_primary_key=has_key),
        doubt=checked.doubt(fields),
        path_offset=path_offset,
    )


def _files(
    statement: CreateTable, options: dict[str, Option], checked: ConnectorOptions, base_dir: str
) -> dict[str, str]:
    """The options that name files, with the folder of the definition before relative paths."""
    found = dict[str, str]()
    for name in checked.files:
        path = getattr(checked, name)
        if not path:
            continue
        at = (each.value_offset for key, each in options.items() if checked.option_named(key) == name)
        offset, beside, reason = next(at, 0), is_relative(path), ""
        if beside and not base_dir:
            reason = f"'{path}' is relative, and the definition names no folder (`directory`)"
        try:
            found[name] = f"{'file:' if beside else ''}{resolve(path, base_dir)}"
        except ValueError as error:
            reason = str(error)
        if reason:
            message = with_names(statement, offset, path, f"option '{name}': {reason}")
            raise statement.passage.error(message, offset)
    return found


def is_unbounded(statement: CreateTable, find: FindConnection | None) -> bool:
    """Whether the rows of a table have no end, as far as its connector is known."""
    try:
        options = current_keys(statement)
        shared = take_connection(statement, options, find)
        is_whole = any(
            key.lower() == "streaming" and each.value.lower() == "false" for key, each in options.items()
        )
        return options_of(_connector(statement, options, shared and shared[0])).unbounded and not is_whole
    except (SqlError, OptionError):
        return False  # the check of the table reports it


def names_files(statement: CreateTable) -> bool:
    """Whether a table is one of files, as far as its connector can be read."""
    given = [option.value for option in statement.options if current_key(option.key) == "connector"]
    return (statement.connector or "".join(given[:1])).lower() in ("filesystem", *_FILE_FORMATS)


def _check_metadata(columns: Columns, connector: str, known: Sequence[str]) -> None:
    for column in columns.metadata:
        if metadata_field(column.key) not in known:
            hint = did_you_mean(metadata_field(column.key), known)
            hint = hint or (f"; known are {', '.join(known)}" if known else ": it has none")
            message = f"unknown metadata '{column.key}' of connector '{connector}'{hint}"
            raise columns.passage.error(message, column.key_offset)


def metadata_field(key: str) -> str:
    """The name of a metadata field; streaming engines write `file.path` for Spark's `file_path`.

    They write `value.` before what the format of the values knows.
    """
    return key.lower().removeprefix("value.").replace(".", "_").replace("-", "_")


def _connector(statement: CreateTable, options: dict[str, Option], shared: Connection | None) -> str:
    """The name of the connector; removes 'connector' and 'format' of the WITH dialect from `options`.

    A table with the connection `shared` need not name it.
    """
    if shared is None:
        return _named_connector(statement, options)
    is_named = bool(statement.connector) or any(key.lower() == "connector" for key in options)
    found = _named_connector(statement, options) if is_named else shared.connector
    if found != shared.connector:
        message = f"connection '{shared.name}' is of connector '{shared.connector}', not of '{found}'"
        raise statement.passage.error(message, statement.connector_offset)
    return _known(statement, options, found, statement.connector_offset)


def _named_connector(statement: CreateTable, options: dict[str, Option]) -> str:
    if statement.connector:
        return _known(statement, options, statement.connector, statement.connector_offset)
    given = _pop(options, "connector")
    if given is None:
        message = "WITH (...) needs 'connector' = '...'"
        raise statement.passage.error(message, statement.connector_offset)
    if given.value.lower() != "filesystem":
        return _known(statement, options, given.value, given.value_offset, "filesystem")
    file_format = _pop(options, "format")
    if file_format is None:
        message = f"connector 'filesystem' needs 'format' = one of {', '.join(_FILE_FORMATS)}"
        raise statement.passage.error(message, given.value_offset)
    if file_format.value.lower() not in _FILE_FORMATS:
        hint = did_you_mean(file_format.value, _FILE_FORMATS) or f"; known are {', '.join(_FILE_FORMATS)}"
        written = statement.written(file_format.value_offset, file_format.value)
        message = f"unknown format '{written}' of connector 'filesystem'{hint}"
        raise statement.passage.error(message, file_format.value_offset)
    return file_format.value.lower()


def _known(statement: CreateTable, options: dict[str, Option], name: str, offset: int, *more: str) -> str:
    """The connector of a name; adds the options that a name of another engine stands for."""
    meant, implied = registry.ALIASES.get(name.lower(), (name.lower(), {}))
    try:
        if registry.find(meant):
            for key, value in implied.items():
                _imply(statement, options, Option(key, value, offset, offset), name)
            return meant
        known = (*more, *registry.names(), *registry.ALIASES)
    except ConnectorError as error:
        raise statement.passage.error(str(error), offset) from error
    hint = did_you_mean(name, known) or f"; known are {', '.join(known)}"
    message = f"unknown connector '{statement.written(offset, name)}'{hint}"
    raise statement.passage.error(message, offset)


def _imply(statement: CreateTable, options: dict[str, Option], option: Option, name: str) -> None:
    given = options.get(next((key for key in options if key.lower() == option.key), ""))
    if given is not None and given.value != option.value:
        message = f"option '{given.key}' of connector '{name.lower()}' can only be '{option.value}'"
        raise statement.passage.error(message, given.value_offset)
    if given is None:
        options[option.key] = option


def _pop(options: dict[str, Option], key: str) -> Option | None:
    return next((options.pop(name) for name in list(options) if name.lower() == key), None)


def _located(statement: CreateTable, options: dict[str, Option], error: OptionError) -> SqlError:
    at = options.get(error.option)
    located = statement.passage.error(str(error)) if at is None else option_error(statement, at, error)
    located.others = tuple(_located(statement, options, other) for other in error.others)
    return located
