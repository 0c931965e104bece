"""finish: results are kept for a while, then the job is removed."""

from orchestrator.handlers.actions import Action, Release, Remove
from orchestrator.handlers.job import HeldJob
from queues.operations import Delete
from spark_runner.attempt import attempt_path, run_name


def handle(job: HeldJob) -> Action:
    """Remove the job when its time is over; before that, only a request to stop that came too late."""
    request = job.stop_request()
    if request is not None:
        return Release(extra=(request[0],))
    deletes = []
    for number in range(1, job.state.attempt + 1):
        path = attempt_path(job.record_path, number)
        if job.context.session.exists(path) is not None:
            deletes.append(Delete(path))
        for runner in job.context.runners.values():
            runner.cleanup(run_name(job.claim.record.run_key, number))
    if job.context.session.exists(f"{job.record_path}/definition") is not None:
        deletes.append(Delete(f"{job.record_path}/definition"))
    return Remove(extra=tuple(deletes))
