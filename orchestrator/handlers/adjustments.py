"""The limits of pushes that the driver of a new attempt follows from its start."""

import contextlib

from orchestrator.handlers.job_context import JobContext
from orchestrator.model.granted_node import document_of, written
from orchestrator.model.paths import Nodes
from queues import Check, Conflict, commit
from spark_runner.protocol.adjustment_node import adjustment_path
from spark_runner.protocol.attempt import Attempt

_MAX_TRIES = 5  # an operator changes them meanwhile


def pass_on_adjustment(job: JobContext, attempt: Attempt) -> None:
    """Let the driver of an attempt read the limits of its job, or else those kept for the name of the job.

    The driver of each attempt has a login of its own.
    """
    session, path = job.context.session, adjustment_path(attempt.path)
    kept = Nodes(job.context.layout.root).adjustment(job.definition.name)
    for _ in range(_MAX_TRIES):
        found, of_name = job.reads.get(path), job.reads.get(kept)
        said = {} if found is None else document_of(found[0])
        if said.get("run_key") != job.run_key:  # an earlier job of this id is gone, with its nodes
            if of_name is None:
                return
            said = {**document_of(of_name[0]), "run_key": job.run_key}
        elif said.pop("login", "") == attempt.login:
            return
        unchanged = Check(attempt.path, attempt.version)
        operations = [unchanged, *written(path, found, said, login=attempt.login)]
        with contextlib.suppress(Conflict):
            commit(session, operations)
            return
