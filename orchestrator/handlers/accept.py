"""accept: a due job gets an attempt, announced in ZooKeeper before anything is submitted."""

from orchestrator.handlers.actions import Action, Move
from orchestrator.handlers.job import HeldJob
from orchestrator.states import Status
from queues.record import timestamp
from spark_runner.attempt import attempt_path, intent


def handle(job: HeldJob) -> Action:
    """Write the intent, or cancel a job that somebody asked to stop."""
    if job.is_stopped():
        return Move(Status.CANCEL)
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
