"""Two workers, many jobs: each job runs once, and ends as its program did.

The drivers are stand-ins, because the test is about the workers; in a whole campaign they are real Spark.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.support import COMMAND_TIMEOUT_S, Running, Shell, assert_nothing_is_left
from tests.sampling import is_whole, times
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

JOBS = times(10, 40)
FAILING = {f"job-{number:02}" for number in range(1, JOBS + 1) if number % 10 in {3, 7, 8}}
ALL_ENDED_S = 24 * JOBS
"""A driver takes 8 s of a core; on two cores that other tests use too, ten take a minute or two."""

pytestmark = [pytest.mark.timeout(30 * JOBS), *([pytest.mark.spark] if is_whole() else [])]


def test_many_jobs_on_two_workers_end_as_their_programs_did(
    shared_shell: Shell, process_mark: str, tmp_path: Path
) -> None:
    shell, root = shared_shell, shared_shell.environment["ORCHESTRATOR_ROOT"]
    if not is_whole():
        shell.use_stand_ins()
    workers = [shell.start("worker", "--slots", "2") for _ in range(2)]
    for worker in workers:
        worker.wait_for_words("2 slots", COMMAND_TIMEOUT_S)
    ids = [f"job-{number:02}" for number in range(1, JOBS + 1)]
    for job_id in ids:
        shell.python_job(job_id, program(tmp_path / f"{job_id}.starts", fails=job_id in FAILING))
    with ThreadPoolExecutor(2) as hands:
        typed = list(
            hands.map(lambda job_id: shell.type("job", "submit", f"{job_id}.yaml", "--id", job_id), ids)
        )
    assert [(one.code, one.stdout.strip()) for one in typed] == [(0, job_id) for job_id in ids], typed
    with zookeeper_client(shell.environment["ZOOKEEPER_HOSTS"]) as client:
        wait_until(
            lambda: len(client.get_children(f"{root}/queues/finish/default")) == JOBS,
            ALL_ENDED_S,
            "all jobs are in finish",
        )
        # A job is released in the transition to finish, so there is nothing to wait for.
        assert client.get_children(f"{root}/locks/default") == []
        assert client.get_children(f"{root}/stops/default") == []

    jobs = {job["id"]: job for job in shell.jobs()}
    assert {job_id: job["status"] for job_id, job in jobs.items()} == {
        job_id: "ERROR_FAIL" if job_id in FAILING else "SUCCESS" for job_id in ids
    }
    assert shell.queues() == {
        **dict.fromkeys(("accept", "running", "success", "fail", "kill", "dead"), 0),
        "finish": JOBS,
    }
    for job_id in ids:
        assert (tmp_path / f"{job_id}.starts").read_text() == "started\n", job_id
        assert jobs[job_id]["attempt"] == 1
        if job_id in FAILING:
            assert f"{job_id} was made to fail" in jobs[job_id]["error"]["message"].splitlines()[0]
        else:
            assert jobs[job_id]["error"] is None
    assert len(shell.submissions()) == JOBS
    assert len({submission.parent for submission in shell.submissions()}) == JOBS
    took = [jobs_taken_by(worker) for worker in workers]
    assert all(took), "both workers took part"
    assert sorted(took[0] + took[1]) == ids, "each job was started by one worker, once"

    for worker in workers:
        worker.terminate()
    assert [worker.wait().code for worker in workers] == [0, 0]
    assert_nothing_is_left(process_mark)


def program(starts: Path, *, fails: bool) -> str:
    """It writes a line per start; in a whole campaign it also has a small Spark job."""
    lines = [f"with open({str(starts)!r}, 'a') as file:", "    file.write('started\\n')"]
    if is_whole():
        lines += [
            "from pyspark.sql import SparkSession",
            "assert SparkSession.builder.getOrCreate().range(1000).count() == 1000",
        ]
    if fails:
        lines.append(f"raise ValueError('{starts.stem} was made to fail')")
    return "\n".join(lines) + "\n"


def jobs_taken_by(worker: Running) -> list[str]:
    """The jobs that this worker moved from accept to running, by its own log."""
    return re.findall(r"(job-\d\d) accept -> running", worker.stderr)
