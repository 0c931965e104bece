"""The stop node: a request to the driver of a job, and to the worker that holds it, to end the job."""

from collections.abc import Mapping
from typing import Any

from orchestrator.model.act import Act
from queues import PERM_READ, Create, Delete, Grant, NodeData, Operation, Set, decode, encode

TIME_LIMIT = "timeout.run"
"""The reason in a stop node that a worker made: a driver out of its reach has run for too long."""


def request_to_stop(
    path: str, found: NodeData | None, document: Mapping[str, str], *, login: str
) -> list[Operation]:
    """The operations that make the node request the end of a job; none if it already does.

    `found` is the node as it is, `document` holds the run key of the job. `login` is the digest id of the
    driver that reads the node, empty where nodes are open to all users. A node with a `reason` was made by a
    worker for a time limit. A node with another run key is left from an earlier job of this id. Neither
    replaces a request without a reason.
    """
    said = {} if found is None else _document(found[0])
    is_for_login = said.get("login", "") == login
    if said.get("run_key") == document["run_key"] and ("reason" in document or "reason" not in said):
        if is_for_login:
            return []
        document = {key: value for key, value in said.items() if key != "login"}
    data = encode({**document, "login": login} if login else dict(document))
    if found is not None and is_for_login:
        return [Set(path, data, found[1].version)]
    before = [] if found is None else [Delete(path, found[1].version)]
    return [*before, Create(path, data, grant=Grant(PERM_READ, "digest", login) if login else None)]


def is_request_for(data: bytes, run_key: str) -> bool:
    """Whether the stop node with these bytes is for the job with this run key."""
    return str(_document(data).get("run_key")) == run_key


def is_time_limit(data: bytes) -> bool:
    """Whether a worker made the node with these bytes for a time limit."""
    return _document(data).get("reason") == TIME_LIMIT


def act_in(data: bytes) -> Act | None:
    """The act that made the node with these bytes; None where the node names none."""
    return Act.noted(_document(data), "kill")


def _document(data: bytes) -> dict[str, Any]:
    try:
        return decode(data)
    except ValueError:
        return {}
