"""Run plans for tests that need a part of them."""

from typing import Any

from spark_runner.protocol.run_plan import PlannedJob, PythonProgram, RunPlan

JOB = PlannedJob(id="job", name="job", attempt=1, pool="default", deploy_mode="client")


def run_plan(**fields: Any) -> RunPlan:
    """A plan of a program that does nothing; `fields` replace those of `RunPlan`."""
    plan: dict[str, Any] = {
        "run": "key-1",
        "run_key": "key",
        "attempt_path": "/jobs/job/attempt-1-key",
        "stop_path": "/stops/default/job",
        "incarnation": "incarnation",
        "job": JOB,
        "lease_seconds": 20.0,
        "zookeeper": {},
        "program": PythonProgram("job.py", "pass"),
    }
    return RunPlan(**{**plan, **fields})
