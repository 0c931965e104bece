"""What every runner has to keep, whatever place it runs drivers in."""

import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from spark_runner import exit_codes
from spark_runner.attempt import Attempt, AttemptState, run_name
from spark_runner.errors import SparkRunnerError, SubmissionError
from spark_runner.runners.base import RunState
from spark_runner.spark_log import spark_event, task_in
from tests.runner_kits import END_S, QUICK, REAL, WARM, Kit, open_kit
from tests.waiting import wait_until


def on(*kinds: str) -> pytest.MarkDecorator:
    """Run a test once for each of these kinds of runners."""
    marked = [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.spark) for kind in kinds]
    return pytest.mark.parametrize("kit", marked, indirect=True)


everywhere = on(*QUICK, *REAL, *WARM)
"""What is shown on the real thing of every backend: few, because each driver of Spark takes ten seconds."""

on_real_spark = on(*REAL)
without_spark = on(*QUICK)
without_spark_of_its_own = on(*QUICK, *WARM)
"""What one test on real Spark shows beside another thing."""

KILLED_WITHIN_S = 20
LONG_TASKS = """
from pyspark.sql import SparkSession

def stay(number):
    import os, pathlib, time
    pathlib.Path({folder!r}, str(os.getpid())).touch()
    time.sleep(600)

try:
    SparkSession.builder.getOrCreate().sparkContext.parallelize([1], 1).foreach(stay)
except Exception:  # its executor may end before it does
    stay("")
"""


@pytest.fixture
def kit(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    with open_kit(
        str(request.param), request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path
    ) as made:
        yield made


@everywhere
def test_the_place_of_a_runner_is_within_its_own_reach_and_names_its_backend(kit: Kit) -> None:
    place = kit.runner.place()
    assert place.backend == kit.runner.backend
    assert kit.runner.reaches(place)


@everywhere
def test_a_run_that_nobody_submitted_is_empty_and_can_be_killed_and_removed(kit: Kit) -> None:
    run = run_name(str(uuid.uuid4()), 1)
    assert kit.runner.find(run) == []
    assert kit.runner.poll_many([run]) == {run: []}
    assert kit.runner.logs(run) == []
    kit.runner.kill(run, grace_seconds=1)
    kit.runner.cleanup(run)


@without_spark_of_its_own
def test_a_driver_takes_its_attempt_records_its_outcome_and_exits_with_zero(kit: Kit) -> None:
    attempt = kit.attempt()
    submitted = kit.submit(attempt, "say('here')")
    assert (submitted.run, submitted.state) == (attempt.run, RunState.RUNNING)
    (ended,) = kit.wait_ended(attempt.run)
    assert (ended.incarnation, ended.state, ended.exit_code) == (submitted.incarnation, RunState.EXITED, 0)
    check_success(kit, attempt, submitted.incarnation)


def check_success(kit: Kit, attempt: Attempt, incarnation: str) -> None:
    """Of an attempt whose program has said `here`."""
    after = kit.read(attempt.path)
    assert (after.state, after.incarnation) == (AttemptState.SUCCEEDED, incarnation)
    assert kit.ledger.starts() == {attempt.run: 1}
    said = [log.path.read_text("utf-8") for log in kit.runner.logs(attempt.run) if log.stream == "stdout"]
    # With Spark's own words where a place keeps one log.
    assert [line for text in said for line in text.splitlines()].count("here") == 1
    wait_until(lambda: not kit.session.children(attempt.path), 20, "nothing is left below the attempt")


@without_spark
@pytest.mark.parametrize(
    ("program", "code", "state"),
    [
        ("fail('no rows today')", 1, AttemptState.FAILED),
        ("leave(3)", 3, AttemptState.STARTED),
        ("leave(0)", 0, AttemptState.STARTED),
    ],
    ids=["fails", "leaves-without-a-word", "leaves-with-zero-and-without-a-word"],
)
def test_the_exit_code_is_kept_and_only_what_the_driver_says_is_its_outcome(
    kit: Kit, program: str, code: int, state: AttemptState
) -> None:
    attempt = kit.attempt()
    kit.submit(attempt, program)
    (ended,) = kit.wait_ended(attempt.run)
    assert (ended.state, ended.exit_code) == (RunState.EXITED, code)
    after = kit.read(attempt.path)
    assert after.state is state
    if state is AttemptState.FAILED:
        assert after.document["error"]["message"] == "no rows today"
        assert ended.outcome is not None
        assert ended.outcome["state"] == "failed"


@without_spark
def test_find_and_poll_many_say_the_same_of_all_submissions_oldest_first(kit: Kit) -> None:
    ended, running = kit.attempt(), kit.attempt()
    kit.submit(ended, "pass")
    kit.wait_ended(ended.run)
    kit.submit(ended, "pass")
    kit.wait_ended(ended.run)
    kit.submit(running, "hang()")
    kit.wait_started(running)
    stranger = run_name(str(uuid.uuid4()), 1)
    runs = [running.run, stranger, ended.run]
    assert kit.runner.poll_many(runs) == {run: kit.runner.find(run) for run in runs}
    assert [found.exit_code for found in kit.runner.find(ended.run)] == [0, exit_codes.SUPERSEDED]
    assert [found.state for found in kit.runner.find(running.run)] == [RunState.RUNNING]


@everywhere
def test_of_two_submissions_of_an_attempt_one_runs_and_the_other_exits_with_75(kit: Kit) -> None:
    attempt = kit.attempt()
    requests = [kit.request(attempt, "say('here')\nsleep(0.5)") for _ in range(2)]
    submitted = [kit.runner.submit(request) for request in requests]
    assert {(each.run, each.state) for each in submitted} == {(attempt.run, RunState.RUNNING)}
    ended = kit.wait_ended(attempt.run)
    assert {each.incarnation for each in ended} == {request.incarnation for request in requests}
    assert {each.state for each in ended} == {RunState.EXITED}
    assert sorted(found.exit_code or 0 for found in ended) == [0, exit_codes.SUPERSEDED]
    (ran,) = [found.incarnation for found in ended if not found.exit_code]
    check_success(kit, attempt, ran)


@without_spark
def test_the_same_incarnation_is_refused(kit: Kit) -> None:
    attempt = kit.attempt()
    request = kit.request(attempt, "pass")
    kit.runner.submit(request)
    with pytest.raises(SubmissionError):
        kit.runner.submit(request)
    kit.wait_ended(attempt.run)
    assert kit.ledger.starts() == {attempt.run: 1}


@without_spark
def test_an_attempt_that_was_closed_before_is_not_run(kit: Kit) -> None:
    attempt = kit.attempt()
    kit.change(attempt.advance(AttemptState.CLOSED))
    kit.submit(attempt, "pass")
    (ended,) = kit.wait_ended(attempt.run)
    assert ended.exit_code == exit_codes.SUPERSEDED
    assert kit.ledger.starts() == {}


@without_spark
def test_a_running_driver_whose_attempt_is_closed_ends_by_itself(kit: Kit) -> None:
    attempt = kit.attempt()
    kit.submit(attempt, "hang()")
    kit.wait_started(attempt)
    kit.change(kit.read(attempt.path).advance(AttemptState.LOST))
    (ended,) = kit.wait_ended(attempt.run)
    assert ended.exit_code == exit_codes.SUPERSEDED


@without_spark_of_its_own
def test_kill_ends_the_driver_for_certain_and_may_be_asked_twice(kit: Kit) -> None:
    attempt = kit.attempt()
    kit.submit(attempt, "hang()")
    kit.wait_started(attempt)
    kit.runner.kill(attempt.run, grace_seconds=5)
    check_killed(kit, attempt)
    assert kit.read(attempt.path).state is AttemptState.STARTED, "the verdict is the worker's to write"


def check_killed(kit: Kit, attempt: Attempt) -> None:
    """Of an attempt whose driver has been killed; it is killed once more."""
    killed = kit.only(attempt.run)
    assert killed.state is RunState.EXITED
    assert killed.exit_code
    kit.runner.kill(attempt.run, grace_seconds=5)
    assert kit.only(attempt.run) == killed


def check_removed(kit: Kit, attempt: Attempt) -> None:
    """Remove what an ended run has left, twice."""
    kit.runner.cleanup(attempt.run)
    if kit.keeps_records:
        assert kit.only(attempt.run).state is RunState.EXITED
    else:
        assert kit.runner.find(attempt.run) == []
        assert kit.runner.logs(attempt.run) == []
    kit.runner.cleanup(attempt.run)


@on_real_spark
def test_20_seconds_after_a_kill_in_the_middle_of_a_job_only_what_it_said_is_left_and_can_be_removed(
    kit: Kit, tmp_path: Path
) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    attempt = kit.attempt()
    request = kit.request(attempt, LONG_TASKS.format(folder=str(tasks)))
    mark = {"spark.executorEnv.ORCHESTRATOR_TEST_EXECUTOR_OF": attempt.run}
    kit.runner.submit(replace(request, conf={**request.conf, **mark}))
    wait_until(lambda: list(tasks.iterdir()), 2 * END_S, "a task runs in a Python worker")
    (worker,) = [path.name for path in tasks.iterdir()]
    before = processes_named(attempt.run)
    assert any(process.startswith("java ") for process in before), before
    assert worker in {process.split()[-1] for process in before}, "executors can be told by their mark"
    assert kit.at_cluster(attempt.run) or kit.target.master.startswith("local")
    wait_until(lambda: (0, 0) in tasks_told(kit, attempt.run), END_S, "the log names stage and task")

    with pytest.raises(SparkRunnerError, match="kill it before"):
        kit.runner.cleanup(attempt.run)
    assert kit.only(attempt.run).state is RunState.RUNNING

    began = time.monotonic()
    kit.runner.kill(attempt.run, grace_seconds=5)

    def left() -> list[str]:
        return processes_named(attempt.run) + kit.at_cluster(attempt.run)

    rest = KILLED_WITHIN_S - (time.monotonic() - began)
    wait_until(lambda: not left(), max(0.0, rest), f"nothing is left of {attempt.run}: {left()}")
    assert time.monotonic() - began < KILLED_WITHIN_S
    check_killed(kit, attempt)
    assert kit.read(attempt.path).state is AttemptState.STARTED, "the verdict is the worker's to write"
    check_removed(kit, attempt)


def tasks_told(kit: Kit, run: str) -> set[tuple[int | None, int | None]]:
    """The stage and the task of each event that a task of the run has logged, wherever it runs."""
    is_local = kit.target.master.startswith("local")
    logs = [log.path for log in kit.runner.logs(run) if log.executor or is_local]
    lines = [line for path in logs for line in path.read_bytes().splitlines()]
    # No file of this host is on the nodes of a standalone cluster: executors log there as the nodes do.
    if (kit.runner.backend, kit.target.deploy_mode) == ("standalone", "client"):
        return {task for line in lines if (task := task_in(line.decode()))}
    return {(event.stage, event.task) for line in lines if (event := spark_event(line))}


def processes_named(run: str) -> list[str]:
    """The living processes of this host that have the name of a run in their arguments or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values()]
            named = any(run in word for word in words) and process.status() != psutil.STATUS_ZOMBIE
            if named and process.pid != os.getpid():
                found.append(f"{process.name()} {process.pid}")
        except psutil.Error:
            continue  # gone meanwhile, or not ours to look at
    return found


@without_spark
def test_a_driver_that_left_nothing_is_gone_and_one_that_lives_is_not(kit: Kit) -> None:
    vanished, living = kit.attempt(), kit.attempt()
    kit.submit(living, "hang()")
    kit.submit(vanished, "vanish()")
    (gone,) = kit.wait_ended(vanished.run)
    assert (gone.state, gone.exit_code) == (RunState.GONE, None)
    kit.wait_started(living)
    assert kit.only(living.run).state is RunState.RUNNING


@without_spark_of_its_own
def test_what_a_running_driver_has_is_not_removed_and_what_an_ended_one_left_is(kit: Kit) -> None:
    attempt = kit.attempt()
    kit.submit(attempt, "say('up')\nhang()")
    kit.wait_started(attempt)
    with pytest.raises(SparkRunnerError, match="kill it before"):
        kit.runner.cleanup(attempt.run)
    assert kit.only(attempt.run).state is RunState.RUNNING
    kit.runner.kill(attempt.run, grace_seconds=5)
    check_removed(kit, attempt)


@pytest.mark.parametrize("kit", ["scripted"], indirect=True)
def test_a_submission_that_waits_in_a_full_cluster_runs_and_one_that_is_killed_there_never_starts(
    kit: Kit, tmp_path: Path
) -> None:
    hold = tmp_path / "state" / "hold"
    hold.touch()
    patient, killed = kit.attempt(), kit.attempt()
    kit.submit(patient, "pass")
    kit.submit(killed, "pass")
    kit.runner.kill(killed.run, grace_seconds=5)
    assert kit.only(killed.run).exit_code == exit_codes.KILLED
    assert kit.only(patient.run).state is RunState.RUNNING
    hold.unlink()
    kit.wait_ended(patient.run)
    assert kit.ledger.starts() == {patient.run: 1}
    assert kit.read(killed.path).state is AttemptState.INTENT
