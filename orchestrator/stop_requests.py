"""The node that asks a driver, and whoever holds its job, to end."""

from collections.abc import Mapping
from typing import Any

from orchestrator.models.act import Act
from queues.documents import decode, encode
from queues.operations import READ, Create, Delete, Grant, Operation, Set
from queues.session.multi_read import Found

TIME_LIMIT = "timeout.run"
"""Why a worker made a stop node: for a driver that is out of its reach and has run for too long."""


def request_to_stop(path: str, found: Found, document: Mapping[str, str], *, login: str) -> list[Operation]:
    """What makes the node ask for the end of the job whose run key is in the document; nothing when it does.

    `found` is what is there. `login` is the digest id of the driver that is to read it, empty where nodes are
    open to everybody. A node with a `reason` was made by a worker for a limit in time, and one with another
    run key is left from an earlier job of this id: neither asks for what a request without a reason does.
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
    return [*before, Create(path, data, grant=Grant(READ, "digest", login) if login else None)]


def _document(data: bytes) -> dict[str, Any]:
    try:
        return decode(data)
    except ValueError:
        return {}


def is_time_limit(data: bytes) -> bool:
    """Whether a worker made the node with these bytes for a limit in time."""
    return _document(data).get("reason") == TIME_LIMIT


def act_in(data: bytes) -> Act | None:
    """The act of whoever asked by the node with these bytes; None where it names none."""
    return Act.noted(_document(data), "kill")
