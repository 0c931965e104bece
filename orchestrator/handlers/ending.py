"""Ending a driver that is within reach, by the threads for what takes long."""

from orchestrator.handlers.actions import Wait
from orchestrator.handlers.job_context import JobContext
from spark_runner.attempt import Attempt
from spark_runner.runners.base import Runner


def end_driver(job: JobContext, attempt: Attempt, runner: Runner) -> Wait | None:
    """None when nothing of it is left; before that one more look, which may take as long as it likes.

    Raises what `Runner.kill` does.
    """
    monitor = job.current_monitor()
    if not monitor.ends_driver:
        monitor.ends_driver = True
        return Wait(0)
    runner.kill(attempt.run, grace_seconds=job.context.drivers.kill_grace)
    return None
