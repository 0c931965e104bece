"""What a runner is asked to submit."""

from orchestrator.models.definition import Definition
from orchestrator.plan import compile_program
from queues.session import SessionSettings
from spark_runner.attempt import Attempt
from spark_runner.runners.base import SubmitRequest


def submit_request(
    definition: Definition, attempt: Attempt, *, incarnation: str, stop_path: str, zookeeper: SessionSettings
) -> SubmitRequest:
    """The request for one submission of an attempt; raises SqlError.

    `zookeeper` is how the driver reaches it.
    """
    plan = {
        "run_key": attempt.run_key,
        "attempt_path": attempt.path,
        "stop_path": stop_path,
        "incarnation": incarnation,
        "lease_seconds": definition.timeout.lease,
        "zookeeper": zookeeper.for_plan(),
        **compile_program(definition),
    }
    return SubmitRequest(
        run=attempt.run,
        incarnation=incarnation,
        name=definition.name,
        plan=plan,
        master=definition.spark.master,
        conf=definition.spark.conf,
        driver_memory=definition.spark.driver.memory,
    )
