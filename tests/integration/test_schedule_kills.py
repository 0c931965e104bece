"""Workers are killed with SIGKILL around each write between a success and the run that follows it."""

from pathlib import Path

import pytest

from orchestrator.model.paths import Nodes
from orchestrator.model.states import Status
from tests.crash_points import Point, points
from tests.jobs_support import ScriptedDeployment, python_job
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

END_S = 60


@pytest.mark.parametrize("point", points("success>finish", "decide", "fire"), ids=str)
def test_a_success_has_one_run_after_it_wherever_the_worker_that_leads_is_killed(
    scripted_deployment: ScriptedDeployment, tmp_path: Path, point: Point
) -> None:
    deployment, client = scripted_deployment, scripted_deployment.client
    client.schedules.put(python_job("pass", name="report", schedule={"after": ["load"], "overlap": "queue"}))
    settings = deployment.settings
    config = worker_config(settings, "scripted", die_at=point)
    first = WorkerProcess("first", tmp_path, config, settings.zookeeper_hosts)

    def reports() -> list[str]:
        return [job.id for job in client.jobs() if job.name == "report" and job.status is Status.SUCCESS]

    def load_and_wait(count: int) -> None:
        deployment.wait(deployment.submit("pass", name="load"), timeout=END_S)
        wait_until(lambda: len(reports()) >= count, END_S, f"{count} reports have run")

    with worker_processes(first):
        deployment.submit("pass", name="load")
        first.wait_killed()
        first.end_session()
        deployment.worker()
        wait_until(reports, END_S, "the report has run")
        load_and_wait(2)  # a second run for the first success would come before
    assert len([job for job in client.jobs() if job.name == "report"]) == 2
    found = deployment.session().get(Nodes(settings.root).success("load"))
    assert found is not None
    assert found[1].version == 2, "each success is written once"
    assert client.schedules.get("report").skipped == ()
