import threading
from pathlib import Path

import pytest

from orchestrator.cli.app import run_app
from orchestrator.model.errors import NoSuchAttempt
from tests.jobs_support import Deployment, python_job
from tests.waiting import wait_until

PROGRAM = """
import pathlib
first = pathlib.Path({first!r})
if not first.exists():
    first.touch()
    print("the first attempt speaks", flush=True)
    raise ValueError
print("the second attempt speaks", flush=True)
"""


def test_following_waits_for_the_start_and_continues_through_retries(
    deployment: Deployment, tmp_path: Path
) -> None:
    program = PROGRAM.format(first=str(tmp_path / "first"))
    job_id = deployment.submit(program, retry={"attempts": 2, "delay": "100ms"})
    seen: list[str] = []

    def follow() -> None:
        seen.extend(record.message for record in deployment.logs(job_id, follow=True, streams=["stdout"]))

    follower = threading.Thread(target=follow)
    follower.start()
    deployment.worker()
    deployment.wait(job_id)
    wait_until(lambda: not follower.is_alive(), 20, "following ends with the job")
    assert seen == ["the first attempt speaks", "the second attempt speaks"]


def test_logs_of_a_job_that_was_not_started_are_not_there(deployment: Deployment) -> None:
    job_id = deployment.client.submit(python_job("pass"), delay=3600).id
    with pytest.raises(NoSuchAttempt, match="it has not been started"):
        list(deployment.logs(job_id))


def test_logs_that_print_nothing_name_the_attempt_and_what_has_output(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))
    first, goes_on = tmp_path / "first", tmp_path / "goes-on"
    program = f"""
import pathlib, time
if not pathlib.Path({str(first)!r}).exists():
    pathlib.Path({str(first)!r}).touch()
    print("of the first", flush=True)
    raise ValueError
while not pathlib.Path({str(goes_on)!r}).exists():
    time.sleep(0.05)
"""

    def printed(*options: str) -> tuple[str, str]:
        capsys.readouterr()
        assert run_app(["job", "logs", job_id, *options]) == 0
        found = capsys.readouterr()
        return found.out, found.err

    deployment.worker()
    job_id = deployment.submit(program, retry={"attempts": 2, "delay": "0s"})
    client = deployment.client

    def runs_again() -> bool:
        job = client.get(job_id)
        return job.attempt == 2 and client.progress(job) is not None

    wait_until(runs_again, 60, "attempt 2 runs")
    before = f"`orchestrator job logs {job_id} --attempt 1` has the output of the attempt before\n"
    assert printed() == ("", f"attempt 2 of {job_id} has printed nothing yet; {before}")
    assert printed("-q") == ("", "")
    assert printed("--grep", "nowhere", "--attempt", "1") == (
        "",
        f"no line of attempt 1 of {job_id} matches\n",
    )
    out, err = printed("--attempt", "1")
    assert ("of the first" in out, err) == (True, "")
    goes_on.touch()
    deployment.wait(job_id)
    assert printed() == ("", f"attempt 2 of {job_id} printed nothing; {before}")
    job_id = deployment.submit("pass")
    deployment.wait(job_id)
    spark = "with --spark, `job logs` prints all that Spark logs\n"
    assert printed() == ("", f"attempt 1 of {job_id} printed nothing; {spark}")
