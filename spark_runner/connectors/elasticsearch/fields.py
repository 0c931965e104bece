"""A new index with a field for each column. Tasks do without it, as it needs Spark's types."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructType

from spark_runner.connectors.elasticsearch.client import Client, pattern_of

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
