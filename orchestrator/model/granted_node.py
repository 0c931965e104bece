"""A node that the driver of one attempt reads."""

from collections.abc import Mapping
from typing import Any

from queues import PERM_READ, Create, Delete, Grant, NodeData, Operation, Set, decode, encode


def document_of(data: bytes) -> dict[str, Any]:
    """The document of a node; empty if it cannot be read."""
    try:
        return decode(data)
    except ValueError:
        return {}


def written(
    path: str, found: NodeData | None, document: Mapping[str, object], *, login: str, is_new: bool = False
) -> list[Operation]:
    """The operations that write a document which the driver with this login reads.

    `found` is the node as it is. `login` is a digest id, empty where nodes are open to all users: a node for
    another one is created anew, as one that `is_new` to those who watch for its creation.
    """
    data = encode({**document, "login": login} if login else dict(document))
    if found is not None and document_of(found[0]).get("login", "") == login and not is_new:
        return [Set(path, data, found[1].version)]
    before = [] if found is None else [Delete(path, found[1].version)]
    return [*before, Create(path, data, grant=Grant(PERM_READ, "digest", login) if login else None)]
