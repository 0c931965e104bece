"""The index that rows are written to: whether it is there, and takes rows of the user."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pyspark.sql.types import ArrayType, DataType, StructType

from spark_runner.connectors.elasticsearch.client import Client, pattern_of
from spark_runner.connectors.errors import ConnectorError, NothingThere
from spark_runner.connectors.templates import columns_of, pieces

_RIGHTS = {"index": "index", "update": "index", "create": "create_doc", "delete": "delete"}
_UNAUTHORIZED, _MISSING, _OK = 401, 404, 200
_MAX_KEYWORD = 8191  # characters: as UTF-8 no more bytes than the longest term of an index
_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "keyword", "ignore_above": _MAX_KEYWORD},
    "timestamp": {"type": "date"},
    "timestamp_ntz": {"type": "date"},
    "decimal": {"type": "double"},
    "map": {"type": "object"},
    **{name: {"type": name} for name in ("byte", "short", "integer", "long", "float", "double", "boolean")},
    **{name: {"type": name} for name in ("binary", "date")},
}


def check_target(client: Client, options: Mapping[str, Any]) -> bool:
    """Whether the index is there, or need not be; raises ConnectorError if rows cannot be written."""
    index = pattern_of(options["index"])
    if not columns_of(options["index"]) and ("*" in index or "," in index):
        raise ConnectorError(f"'{options['index']}' names several indices; rows are written to one")
    answer = client.ask("HEAD", f"/{index}")
    if answer.status == _UNAUTHORIZED or answer.may_change():
        client.check(answer)
    is_there = answer.status != _MISSING or bool(columns_of(options["index"]))
    if not is_there and options["missing_index"] == "fail":
        raise NothingThere(
            f"index '{options['index']}' at {', '.join(options['hosts'])} does not exist; create it, or set"
            " option 'missing_index'"
        )
    _check_rights(client, options)
    name = str(options["pipeline"])
    if name and client.ask("GET", f"/_ingest/pipeline/{quote(name, safe='')}").status == _MISSING:
        raise NothingThere(f"{client.where} has no pipeline '{name}'")
    return is_there or options["missing_index"] != "create"


def create_index(client: Client, options: Mapping[str, Any], schema: StructType) -> None:
    """Create the index with a field for each column; another writer may have done so."""
    gone = str(options["delete_column"]).lower()
    columns = StructType([each for each in schema if each.name.lower() != gone])
    answer = client.ask("PUT", f"/{pattern_of(options['index'])}", {"mappings": _field(columns)})
    if answer.error().get("type") != "resource_already_exists_exception":
        client.check(answer)


def _field(kind: DataType) -> dict[str, Any]:
    if isinstance(kind, ArrayType):  # each field may have several values
        return _field(kind.elementType)
    if isinstance(kind, StructType):
        return {"properties": {each.name: _field(each.dataType) for each in kind}}
    return dict(_FIELDS.get(kind.typeName(), _FIELDS["string"]))


def _check_rights(client: Client, options: Mapping[str, Any]) -> None:
    rights = {_RIGHTS[str(options["action"])]} | ({"delete"} if options["delete_column"] else set())
    index = "".join("*" if each.is_column else each.text for each in pieces(options["index"]))
    asked = {"index": [{"names": [index], "privileges": sorted(rights)}]}
    answer = client.ask("POST", "/_security/user/_has_privileges", asked)
    if answer.status != _OK:  # a server without logins
        return
    has = answer.document().get("index", {}).get(index, {})
    if missing := sorted(right for right in rights if has.get(right) is False):
        user = answer.document().get("username", "")
        raise ConnectorError(
            f"{client.where} refused: user '{user}' lacks the privilege {' and '.join(missing)} for index"
            f" '{options['index']}'"
        )
