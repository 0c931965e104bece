"""What the result of a row says, in the answer to a bulk request: whose error it is.

Elasticsearch has hundreds of types of errors, some of them for a document in one case and for the whole index
in another. So a type is an error of the row only if it is listed here; of an unknown one, `Bulk` looks at the
results of other rows.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from spark_runner.connectors.elasticsearch.answers import CLOSED, OK, is_busy

NO_INDEX = "index_not_found_exception"
_NOWHERE = {NO_INDEX, "invalid_index_name_exception"}
_REFUSED, _MISSING, _BROKEN = {401, 403}, 404, 500
_CONFLICT = "version_conflict_engine_exception"
# Each shows that the index takes documents, and not this one.
_OF_ROW = {
    "document_parsing_exception",
    "mapper_parsing_exception",  # of servers before 8.9
    "strict_dynamic_mapping_exception",
    "fail_processor_exception",  # a pipeline refuses the document
}


class Result(Enum):
    """What to do with a row."""

    DONE = auto()  # it is in its index, or a newer one, or the same one of an earlier request
    BUSY = auto()  # it must be sent again
    BROKEN = auto()  # likewise, but the cause may be the row
    REFUSED = auto()  # the user lacks a right
    NOWHERE = auto()  # there is no such index, or cannot be
    REJECTED = auto()  # for what is in the row
    UNCLEAR = auto()  # the row, its index or the cluster may be wrong


def result_of(action: str, found: Mapping[str, Any], *, varies: bool) -> Result:
    """The result of a row; `varies`: its index depends on its columns, and they may name a wrong one."""
    status, error = int(found["status"]), found.get("error") or {}
    if status < OK:
        return Result.REJECTED if found.get("failure_store") == "used" else Result.DONE
    kind = error.get("type")
    is_gone = action == "delete" and status == _MISSING and kind in {None, NO_INDEX}
    meanings = (  # the first one that applies
        (is_gone or (kind == _CONFLICT and action != "update"), Result.DONE),
        (kind == _CONFLICT, Result.BUSY),  # with another writer at this moment
        (kind == CLOSED and varies, Result.BROKEN),
        (is_busy(status, error), Result.BUSY),
        (status >= _BROKEN, Result.BROKEN),
        (status in _REFUSED, Result.REFUSED),
        (kind in _NOWHERE and not varies, Result.NOWHERE),
        (kind in _OF_ROW, Result.REJECTED),
    )
    return next((result for applies, result in meanings if applies), Result.UNCLEAR)
