"""How far the pushes of a job have come: kept for its next attempt, and for the next job of its name."""

import contextlib
import json
from typing import Any

from loguru import logger

from orchestrator.handlers.job_context import JobContext
from orchestrator.model.granted_node import document_of
from orchestrator.model.paths import Nodes
from queues import AccessDenied, Conflict, Create, Set, commit, encode, timestamp
from spark_runner.protocol.attempt import Attempt, attempt_path
from spark_runner.protocol.positions_node import MAX_BYTES, positions_path
from spark_runner.push.positions import MAX_CHARACTERS, OF_ATTEMPT, OF_NAME

_MAX_TRIES = 5  # another job of the name ends meanwhile
_MAX_PUSHES, _MAX_NAME = 100, 200  # of one job; characters


def positions_before(job: JobContext, attempt: Attempt) -> dict[str, Any]:
    """The positions after which the driver of an attempt goes on."""
    kept = Nodes(job.context.layout.root).position(job.definition.name)
    found = {OF_NAME: _of_name(job, kept)[0]}
    if attempt.number > 1:
        before = attempt_path(job.record_path, job.run_key, attempt.number - 1)
        found[OF_ATTEMPT] = _of_driver(job, before).get(OF_ATTEMPT, {})
    return {kind: each for kind, each in found.items() if each}


def keep_positions(job: JobContext) -> None:
    """Keep how far the pushes of the last attempt have read their sources, for the next job of its name.

    An ended attempt never changes, so a repetition after a crash changes nothing.
    """
    path = attempt_path(job.record_path, job.run_key, job.state.attempt)
    ours = _checked(_of_driver(job, path).get(OF_NAME))
    if not ours:
        return
    session, nodes = job.context.session, Nodes(job.context.layout.root)
    session.ensure_path(nodes.positions)
    kept, fields = nodes.position(job.definition.name), {"job": job.id, "since": timestamp()}
    for _ in range(_MAX_TRIES):
        known, version = _of_name(job, kept)
        changed = {name: {**each, **fields} for name, each in ours.items() if not _is_in(known, name, each)}
        if not changed:
            return
        data = encode({**known, **changed})
        if len(data) > MAX_BYTES:
            logger.warning("{} has positions of too many pushes: those of {} are not kept", kept, job.id)
            return
        with contextlib.suppress(Conflict):
            commit(session, [Create(kept, data) if version is None else Set(kept, data, version)])
            return
    logger.warning("{} is changed by others all the time: the positions of {} are not kept", kept, job.id)


def _of_name(job: JobContext, path: str) -> tuple[dict[str, Any], int | None]:
    """The positions of a job name, and the version of their node; None without one."""
    found = job.context.session.get(path)
    return ({}, None) if found is None else (document_of(found[0]), found[1].version)


def _of_driver(job: JobContext, attempt: str) -> dict[str, Any]:
    """What the driver of an attempt has kept; empty where its program made something else of the node."""
    try:
        found = job.context.session.get(positions_path(attempt))
    except AccessDenied:
        return {}
    return {} if found is None or len(found[0]) > MAX_BYTES else document_of(found[0])


def _checked(document: object) -> dict[str, dict[str, Any]]:
    """The positions in what a driver has written, which is not trusted."""
    found = document if isinstance(document, dict) else {}
    if len(found) > _MAX_PUSHES:
        return {}
    return {
        name: {key: value for key, value in each.items() if key in {"acknowledged", "read"}}
        for name, each in found.items()
        if len(name) <= _MAX_NAME and isinstance(each, dict) and "acknowledged" in each
        if len(json.dumps(each)) <= 2 * MAX_CHARACTERS
    }


def _is_in(known: dict[str, Any], name: str, position: dict[str, Any]) -> bool:
    there = known.get(name)
    return isinstance(there, dict) and {**there, **position} == there
