"""The stop node: a request to the driver of a job, and to the worker that holds it, to end the job."""

from collections.abc import Mapping

from orchestrator.model.act import Act
from orchestrator.model.granted_node import document_of, written
from queues import NodeData, Operation
from spark_runner.protocol.stop_order import GRACEFUL, REASON

TIME_LIMIT = "timeout.run"
"""The reason in a stop node that a worker made: a driver out of its reach has run for too long."""


def request_to_stop(
    path: str, found: NodeData | None, document: Mapping[str, object], *, login: str
) -> list[Operation]:
    """The operations that make the node request the end of a job; none if it already does.

    `found` is the node as it is, `document` holds the run key of the job. `login` is the digest id of the
    driver that reads the node, empty where nodes are open to all users. A node with another run key is left
    from an earlier job of this id.
    """
    said = {} if found is None else document_of(found[0])
    is_for_login = said.pop("login", "") == login
    asked = _combined(said, document)
    if asked == said and is_for_login:
        return []
    # A worker that holds the job looks at it when the node is created, not when its data change.
    is_to_be_seen = said.get(GRACEFUL) is True and GRACEFUL not in asked
    return written(path, found, asked, login=login, is_new=is_to_be_seen)


def _combined(said: Mapping[str, object], asked: Mapping[str, object]) -> Mapping[str, object]:
    """The request that holds after both: none replaces a stronger one.

    The strongest is that of an operator to end the job at once. One with a `reason` was made by a worker for
    a time limit. If it meets a graceful one, both hold: the driver ends at once, and on behalf of the
    operator.
    """
    if said.get("run_key") != asked["run_key"]:
        return asked
    if _is_strongest(said) or _is_strongest(asked):
        return said if _is_strongest(said) else asked
    by_operator = next((each for each in (said, asked) if each.get(GRACEFUL)), said)
    reasons = [each[REASON] for each in (said, asked) if REASON in each]
    return {**by_operator, REASON: reasons[0]} if reasons else by_operator


def _is_strongest(document: Mapping[str, object]) -> bool:
    return not document.get(GRACEFUL) and REASON not in document


def is_request_for(data: bytes, run_key: str) -> bool:
    """Whether the stop node with these bytes is for the job with this run key."""
    return str(document_of(data).get("run_key")) == run_key


def is_time_limit(data: bytes) -> bool:
    """Whether a worker made the node with these bytes for a time limit, and no operator asked for more."""
    document = document_of(data)
    return document.get(REASON) == TIME_LIMIT and not document.get(GRACEFUL)


def act_in(data: bytes) -> Act | None:
    """The act that made the node with these bytes; None where the node names none."""
    document = document_of(data)
    act = Act.noted(document, "kill")
    return act.model_copy(update={"detail": GRACEFUL}) if act and document.get(GRACEFUL) else act
