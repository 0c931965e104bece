"""accept: a due job gets an attempt, announced in ZooKeeper before anything is submitted."""

from orchestrator.handlers.actions import Action, Move, Release
from orchestrator.handlers.job import HeldJob
from orchestrator.states import Status
from queues.documents import timestamp
from spark_runner.attempt import attempt_path, intent


def handle(job: HeldJob) -> Action:
    """Write the intent, or cancel a job that somebody asked to stop."""
    request = job.stop_request()
    if request is not None:
        # One for an earlier job of this id goes, and this one waits until it is due.
        return Move(Status.CANCEL) if request[1] else Release(extra=(request[0],))
    state = job.state
    number = state.attempt + 1
    runner = job.context.runner_for(job.definition)
    announced = intent(
        attempt_path(job.record_path, number),
        run_key=job.claim.record.run_key,
        number=number,
        place=runner.place().to_json(),
        at=timestamp(),
    )
    changes = {"attempt": number, "started": None, "ended": None, "error": None}
    return Move(Status.RUNNING, changes=changes, extra=(announced,))
