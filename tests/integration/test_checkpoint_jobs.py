"""Jobs that share a checkpoint, on several workers, and the commands for checkpoints."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError, JobRunning
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues import Set, commit
from spark_runner.sql.checkpoints.record import RECORD, Record
from tests.jobs_support import ScriptedDeployment
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

STREAM = """-- {}
SET job.mode = 'available-now';
CREATE TABLE s (id BIGINT) USING json OPTIONS (path '/in');
CREATE TABLE out USING json OPTIONS (path '/out');
INSERT INTO out SELECT id FROM s;
"""


def stream(program: str = "pass", **fields: Any) -> Definition:
    """A job that reads a stream, and whose scripted driver runs this Python line."""
    document = {"name": "sales", "script": STREAM.format(program), "retry": {"attempts": 1}, **fields}
    return build_definition(document, "test")


def submit(deployment: ScriptedDeployment, program: str = "pass", **fields: Any) -> str:
    return deployment.client.submit(stream(program, **fields)).id


def wait_started(deployment: ScriptedDeployment, job_id: str) -> None:
    def started() -> bool:
        return [each["state"] for each in deployment.client.detail(job_id).attempts] == ["started"]

    wait_until(started, 30, "it runs")


def wait_deferred(deployment: ScriptedDeployment, job_id: str) -> str:
    def said() -> str:
        found = deployment.client.detail(job_id).waiting
        return found.message if found is not None and found.reason == "concurrency" else ""

    return str(wait_until(said, 30, "it waits for the other job"))


def test_two_jobs_of_one_name_never_run_at_once(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment, go = scripted_deployment, tmp_path / "go"
    deployment.worker()
    first = submit(deployment, f"until({str(go)!r})")
    wait_started(deployment, first)
    deployment.worker()
    second, other = submit(deployment), submit(deployment, name="other")
    assert deployment.wait(other).job.status is Status.SUCCESS
    assert "a job named sales runs" in wait_deferred(deployment, second)
    own = f"file:{deployment.settings.state_dir}/checkpoints/sales"
    assert deployment.client.get(first).checkpoint == own
    assert deployment.client.get(second).checkpoint is None, "no worker has placed it"
    go.touch()
    assert deployment.wait(first).job.status is Status.SUCCESS
    assert deployment.wait(second).job.status is Status.SUCCESS


def test_a_killed_worker_leaves_the_checkpoint_to_its_job(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment, go = scripted_deployment, tmp_path / "go"
    config = worker_config(deployment.settings, "scripted")
    killed = WorkerProcess("killed", tmp_path, config, deployment.settings.zookeeper_hosts)
    with worker_processes(killed):
        first = submit(deployment, f"until({str(go)!r})")
        wait_started(deployment, first)
        killed.kill()
        deployment.worker()
        second = submit(deployment)
        assert "a job named sales runs" in wait_deferred(deployment, second)
        assert deployment.client.get(first).queue is Queue.RUNNING
        go.touch()
        assert deployment.wait(first).job.status is Status.SUCCESS
        assert deployment.wait(second).job.status is Status.SUCCESS


def test_a_job_of_an_older_version_still_runs(scripted_deployment: ScriptedDeployment) -> None:
    """Its definition has no field `checkpoint`, so it has no slot."""
    deployment = scripted_deployment
    job_id = submit(deployment)
    session, path = deployment.session(), f"{deployment.queues.layout.record(job_id)}/definition"
    found = session.get(path)
    assert found is not None
    document = json.loads(found[0])
    assert (document.pop("checkpoint"), document.pop("concurrency")) == ({}, 1)
    set_data(deployment, path, document)
    deployment.worker()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def set_data(deployment: ScriptedDeployment, path: str, document: dict[str, Any]) -> None:
    commit(deployment.session(), [Set(path, json.dumps(document).encode(), -1)])


def test_the_driver_gets_the_place_and_the_use_of_its_pool(
    scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = scripted_deployment
    places = {"*": "hdfs://n/all/", "etl": "hdfs://n/etl"}
    monkeypatch.setattr(
        deployment, "settings", deployment.settings.model_copy(update={"checkpoints": places})
    )
    deployment.worker()
    use = {"start": "fresh", "positions": {"s": "2026-11-01T00:00:00Z"}}
    for pool, place in (("etl", "hdfs://n/etl/sales"), ("default", "hdfs://n/all/sales")):
        job_id = submit(deployment, pool=pool, checkpoint=use)
        assert deployment.wait(job_id).job.status is Status.SUCCESS
        record = deployment.queues.get(job_id)
        assert JobState.from_payload(record.payload).checkpoint == place
        (request,) = (deployment.settings.state_dir / "runs").glob(f"{record.run_key}-1/*/request.json")
        sent = json.loads(request.read_text())["plan"]["sql"]
        assert (sent["checkpoints"], sent["checkpoint"]) == (place, {**use, "run_key": record.run_key})


def test_nothing_is_enqueued_for_an_option_that_does_not_fit(
    scripted_deployment: ScriptedDeployment,
) -> None:
    program = build_definition({"name": "p", "python": "pass", "checkpoint": {"start": "fresh"}}, "test")
    for definition in (program, stream(checkpoint={"start": "fresh", "positions": {"nosuch": "x"}})):
        with pytest.raises(DefinitionError):
            scripted_deployment.client.submit(definition)
        with pytest.raises(DefinitionError):
            scripted_deployment.client.enqueue(definition, None)
    assert not scripted_deployment.client.list()


# ---------------------------------------------------------------------- commands
def command(
    deployment: ScriptedDeployment, *arguments: str, config: str = os.devnull
) -> "subprocess.CompletedProcess[str]":
    settings = deployment.settings
    given = {
        "ZOOKEEPER_HOSTS": settings.zookeeper_hosts,
        "ORCHESTRATOR_ROOT": settings.root,
        "ORCHESTRATOR_STATE_DIR": str(settings.state_dir),
        "ORCHESTRATOR_CONFIG": config,
    }
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", "job", *arguments],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_options_of_a_submission_are_in_its_definition(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment, script, batch = scripted_deployment, tmp_path / "sales.sql", tmp_path / "batch.sql"
    script.write_text(STREAM.format("pass"))
    batch.write_text("SELECT 1")
    options = ("--from", "s=2026-11-01T00:00:00Z", "--id", "one")
    assert command(deployment, "submit", str(script), *options).stdout == "one\n"
    positions = {"s": "2026-11-01T00:00:00Z"}
    assert deployment.client.detail("one").definition["checkpoint"] == {
        "start": "fresh",
        "positions": positions,
    }
    for arguments, message in (
        ((str(script), "--resume", "--fresh"), "give only one of --resume and --fresh"),
        ((str(script), "--from", "soon"), "table 's' cannot begin at 'soon': it is no time"),
        ((str(batch), "--fresh"), "which has no checkpoint"),
    ):
        refused = command(deployment, "submit", *arguments)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
    assert len(deployment.client.list()) == 1


def checkpoint(deployment: ScriptedDeployment, target: str, name: str = "sales") -> Path:
    made = deployment.settings.state_dir / "checkpoints" / name / target
    (made / "commits").mkdir(parents=True)
    (made / "commits" / "6").touch()
    (made / RECORD).write_text(Record("abcdef0123456789", "s").text())
    return made


def test_the_commands_list_and_remove_checkpoints(scripted_deployment: ScriptedDeployment) -> None:
    deployment = scripted_deployment
    out, second, other = (
        checkpoint(deployment, "out"),
        checkpoint(deployment, "out,2"),
        checkpoint(deployment, "out", "other"),
    )
    foreign = deployment.settings.state_dir / "checkpoints" / "sales" / "foreign"
    foreign.mkdir()
    listed = json.loads(command(deployment, "checkpoint", "list", "-o", "json").stdout)
    assert [(each["name"], each["target"], each["batches"]) for each in listed] == [
        ("other", "out", 7),
        ("sales", "foreign", 0),
        ("sales", "out", 7),
        ("sales", "out,2", 7),
    ]
    assert listed[2]["url"] == f"file:{out}"
    assert "has no orchestrator.json" in listed[1]["error"]
    table = command(deployment, "checkpoint", "list", "sales").stdout
    assert "abcdef012345 " in table
    assert "other" not in table

    asked = command(deployment, "checkpoint", "remove", "sales", "--target", "out")
    assert (asked.returncode, "confirm with --yes" in asked.stderr) == (2, True)
    unknown = command(deployment, "checkpoint", "remove", "sales", "--target", "outt", "--yes")
    assert (unknown.returncode, "did you mean 'out'" in unknown.stderr) == (4, True)
    for wrong in ("../sales", "sales/out", "a'b", '"'):
        assert command(deployment, "checkpoint", "remove", wrong, "--yes").returncode == 2
    assert out.exists()

    removed = command(deployment, "checkpoint", "remove", "sales", "--target", "OUT", "--yes")
    assert (removed.returncode, out.exists(), second.exists()) == (0, False, True), removed.stderr
    rest = command(deployment, "checkpoint", "remove", "sales", "--yes")
    assert (rest.returncode, "is no checkpoint; nothing was removed" in rest.stderr) == (1, True)
    assert (second.exists(), foreign.exists(), other.exists()) == (False, True, True)


def test_a_checkpoint_in_use_is_not_removed(scripted_deployment: ScriptedDeployment, tmp_path: Path) -> None:
    deployment, go = scripted_deployment, tmp_path / "go"
    made = checkpoint(deployment, "out")
    deployment.worker()
    job_id = submit(deployment, f"until({str(go)!r})")
    wait_started(deployment, job_id)
    refused = command(deployment, "checkpoint", "remove", "sales", "--yes")
    assert refused.returncode == 5
    assert f"job {job_id!r} of the name 'sales' is running" in refused.stderr
    assert made.exists()
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    assert command(deployment, "checkpoint", "remove", "sales", "--yes").returncode == 0
    assert not made.exists()


def test_no_job_starts_while_its_checkpoint_is_removed(scripted_deployment: ScriptedDeployment) -> None:
    deployment = scripted_deployment
    deployment.worker()
    with deployment.client.without_runs_of("sales"):
        job_id = submit(deployment)
        assert "its checkpoints are being removed" in wait_deferred(deployment, job_id)
        with pytest.raises(JobRunning), deployment.client.without_runs_of("sales"):
            raise AssertionError
    assert deployment.wait(job_id).job.status is Status.SUCCESS


@pytest.mark.spark
def test_a_local_spark_reaches_checkpoints_in_other_file_systems(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment = scripted_deployment
    (tmp_path / "far" / "sales").mkdir(parents=True)
    checkpoint(deployment, "out").rename(tmp_path / "far" / "sales" / "out")
    settings = tmp_path / "config.toml"
    settings.write_text(
        f"""[checkpoints]
etl = "viewfs://far/c"
[spark.etl.conf]
"spark.hadoop.fs.viewfs.mounttable.far.link./c" = "file:{tmp_path}/far"
"""
    )
    removed = command(deployment, "checkpoint", "remove", "sales", "--yes", config=str(settings))
    assert removed.returncode == 0, removed.stderr
    assert removed.stderr.splitlines() == [
        "starting Spark on this machine to read viewfs://far/c ...",
        "starting Spark on this machine to remove viewfs://far/c/sales/out ...",
        "viewfs://far/c/sales/out is removed",
    ]
    assert list((tmp_path / "far" / "sales").iterdir()) == []
