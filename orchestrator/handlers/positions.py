"""How far the pushes of a job have come: kept for its next attempt, and for the next job of its name."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.model.granted_node import document_of
from orchestrator.model.paths import Nodes
from queues import AccessDenied, Conflict, Create, Set, commit, encode, timestamp
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path
from spark_runner.protocol.positions_node import MAX_BYTES, positions_path
from spark_runner.protocol.untrusted import mapping
from spark_runner.push.positions import MAX_DEPTH, OF_ATTEMPT, OF_NAME, can_be_kept, is_shallow

_MAX_TRIES = 5  # another job of the name ends meanwhile
_MAX_PUSHES, _MAX_NAME = 100, 200  # of one job; characters
_ACKNOWLEDGED = "acknowledged"
_PARTS = {_ACKNOWLEDGED, "read"}
_MAX_DEPTH = MAX_DEPTH + 3  # of positions by kind, push and partition


def positions_before(job: JobContext, attempt: Attempt) -> dict[str, Any]:
    """The positions after which the driver of an attempt goes on."""
    kept = Nodes(job.context.layout.root).position(job.definition.name)
    found = {OF_NAME: _of_name(job, kept)[0], OF_ATTEMPT: _of_attempts_before(job, attempt.number)}
    return {kind: each for kind, each in found.items() if each}


def _of_attempts_before(job: JobContext, number: int) -> Any:
    """What the last attempt before this one that began has kept; after a success, nothing."""
    for before in range(number - 1, 0, -1):
        path = attempt_path(job.record_path, job.run_key, before)
        found = Attempt.watched(job.context.session, path)
        if found is None or found.state is AttemptState.SUCCEEDED:
            return {}
        if found.incarnation or found.state not in {AttemptState.CLOSED, AttemptState.KILLED}:
            return _of_driver(job, path)[0].get(OF_ATTEMPT, {})
    return {}


def keep_positions(job: JobContext) -> None:
    """Keep how far the pushes of the last attempt have read their sources, for the next job of its name.

    They leave the node of the attempt at the same time: a repetition after a crash, or for a further try of
    a callback, must not move back what later jobs of the name have reached.
    """
    path = attempt_path(job.record_path, job.run_key, job.state.attempt)
    session, nodes = job.context.session, Nodes(job.context.layout.root)
    kept, fields = nodes.position(job.definition.name), {"job": job.id, "since": timestamp()}
    for _ in range(_MAX_TRIES):
        document, its_version = _of_driver(job, path)
        found = mapping(document.pop(OF_NAME, None))
        ours = _checked(found)
        if left_out := len(found) - len(ours):
            logger.warning("{} of {} positions of {} cannot be kept", left_out, len(found), job.id)
        if not ours:
            return
        session.ensure_path(nodes.positions)
        known, version = _of_name(job, kept)
        data = encode({**known, **{name: {**each, **fields} for name, each in ours.items()}})
        if len(data) > MAX_BYTES:
            logger.warning("{} has positions of too many pushes: those of {} are not kept", kept, job.id)
            return
        taken = Set(positions_path(path), encode(document), its_version)
        try:
            commit(session, [Create(kept, data) if version is None else Set(kept, data, version), taken])
        except Conflict:
            continue
        except AccessDenied as error:
            logger.warning("the positions of {} are not kept: {}", job.id, error)
        return
    logger.warning("{} is changed by others all the time: the positions of {} are not kept", kept, job.id)


def _of_name(job: JobContext, path: str) -> tuple[dict[str, Any], int | None]:
    """The positions of a job name, and the version of their node; None without one."""
    found = job.reads.get(path)
    return ({}, None) if found is None else (document_of(found[0]), found[1].version)


def _of_driver(job: JobContext, attempt: str) -> tuple[dict[str, Any], int]:
    """What the driver of an attempt has kept, and the version of its node.

    It is empty where its program made something else of the node: the worker passes it on to other drivers.
    """
    try:
        found = job.reads.get(positions_path(attempt))
    except AccessDenied:
        return {}, 0
    if found is None or len(found[0]) > MAX_BYTES:
        return {}, 0
    document = document_of(found[0])
    return (document if is_shallow(document, _MAX_DEPTH) else {}), found[1].version


def _checked(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The positions in what a driver has written, which is not trusted."""
    return {
        name: {key: value for key, value in each.items() if key in _PARTS and can_be_kept(value)}
        for name, each in islice(found.items(), _MAX_PUSHES)
        if len(name) <= _MAX_NAME and isinstance(each, dict) and can_be_kept(each.get(_ACKNOWLEDGED))
    }
