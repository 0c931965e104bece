"""Maps the option keys of streaming SQL engines, of both their generations, to those of connectors."""

from spark_runner.sql.grammar.statements import CreateTable, Option

_FORMATS = ("csv", "json", "parquet", "orc", "avro")
_PREFIXES = ("connector.", "format.", *(f"{name}." for name in (*_FORMATS, "debezium-json")))
_NAMES = {
    "connector.type": "connector",
    "format.type": "format",
    "field-delimiter": "delimiter",
    "null-literal": "null_value",
    "escape-character": "escape",
}
# Keys of the first generation without a counterpart, and the only value that means what happens anyway.
WITHOUT_EFFECT = {
    "connector.property-version": "1",
    "format.property-version": "1",
    "format.derive-schema": "true",
    "update-mode": "append",
}


def current_keys(statement: CreateTable) -> dict[str, Option]:
    """The options of a table by the keys of its connector; raises SqlError for a key that has none.

    Only WITH (...) has keys of those engines: 'connector.type' = 'filesystem', 'csv.field-delimiter' = ';'.
    """
    if statement.connector:
        return {option.key: option for option in statement.options}
    found: dict[str, Option] = {}
    for option in statement.options:
        written = option.key.lower()
        if written in WITHOUT_EFFECT:
            _check_value(statement, option, WITHOUT_EFFECT[written])
            continue
        key = current_key(option.key)
        if key in found and found[key].value == option.value and found[key].key != option.key:
            continue  # a script for engines of both generations has both keys
        if key in found:
            message = f"option '{option.key}' is given twice: '{found[key].key}' has the same meaning"
            raise statement.passage.error(message, option.key_offset)
        found[key] = option
    return found


def current_key(key: str) -> str:
    """The key of a connector that a key of those engines means; the key itself if it has no other meaning."""
    if key.lower() in _NAMES:
        return _NAMES[key.lower()]
    for prefix in _PREFIXES:
        if key.lower().startswith(prefix):
            key = key[len(prefix) :]
            break
    return _NAMES.get(key.lower(), key)


def _check_value(statement: CreateTable, option: Option, only: str) -> None:
    if option.value.lower() != only:
        written = statement.written(option.value_offset, option.value)
        message = f"option '{option.key}' can only be '{only}', not '{written}'"
        if option.key.lower() == "update-mode":
            message += "; rows are replaced by a PRIMARY KEY of the table"
        raise statement.passage.error(message, option.value_offset)
