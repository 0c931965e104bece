"""The contract of every runner, wherever it runs drivers."""

import json
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.handlers.verdict import verdict_of_exit
from orchestrator.model.states import Status
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import Attempt, AttemptState, run_name
from spark_runner.protocol.errors import SparkRunnerError, SubmissionError
from spark_runner.runners.base import RunState, Submission
from spark_runner.runners.spark_log import spark_event, task_in
from tests.runner_kits import END_S, QUICK, REAL, WARM, Kit, open_kit
from tests.waiting import wait_until

WARM_GROUP = pytest.mark.xdist_group("warm")  # one worker process starts the JVM for all tests of it


def on(*kinds: str) -> pytest.MarkDecorator:
    """Run a test once for each of these kinds of runners."""

    def marks(kind: str) -> list[pytest.MarkDecorator]:
        return [pytest.mark.spark] * (kind not in QUICK) + [WARM_GROUP] * (kind in WARM)

    return pytest.mark.parametrize(
        "kit", [pytest.param(kind, marks=marks(kind)) for kind in kinds], indirect=True
    )


on_each_backend = on(*QUICK, "standalone-client", "standalone-cluster", "yarn")
"""Tests that query a cluster and start no driver; the API of Kubernetes is that of `pods`."""

on_real_spark = on(*REAL)
"""Tests on real Spark on every backend: few, because each driver costs seconds of a processor."""

without_spark = on(*QUICK)
without_spark_of_its_own = on(*QUICK, *WARM)
"""A property that a test on real Spark checks beside another one."""

KILLED_WITHIN_S = 20
EXECUTOR_STARTS = "Started daemon with process name"
DIES = "os.kill(os.getppid(), signal.SIGKILL); hang()"  # the JVM of its driver

TASKS = """
import json
from pyspark.sql import SparkSession

def stay(number):
    import os, pathlib, time
    pathlib.Path({folder!r}, f"stays-{{os.getpid()}}").touch()
    time.sleep(600)

def work(rows):
    import os, pathlib, time
    import spark_runner, users
    folder = pathlib.Path({folder!r})
    (folder / f"works-{{os.getpid()}}").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)
    yield spark_runner.__file__, users.NAME, sum(rows)

try:
    context = SparkSession.builder.getOrCreate().sparkContext
    open("by-python", "w").close()
    context.emptyRDD().saveAsTextFile("by-spark")
    if {loses_executor}:
        say("went on " + json.dumps(context.parallelize([1, 2], 1).mapPartitions(work).collect()))
    context.parallelize([1], 1).foreach(stay)
except Exception:  # its executor may end before it does
    stay("")
"""
"""A job that has to survive its executor, and then one that never ends."""


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


@on_each_backend
def test_the_submission_place_of_a_runner_is_within_its_own_reach_and_names_its_backend(kit: Kit) -> None:
    place = kit.runner.place()
    assert place.backend == kit.runner.backend
    assert kit.runner.reaches(place)


@on_each_backend
def test_a_run_that_was_never_submitted_is_empty_and_can_be_killed_and_removed(kit: Kit) -> None:
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


def check_success(kit: Kit, attempt: Attempt, incarnation: str, *, others: int = 0) -> None:
    """Checks of an attempt whose program has printed `here`."""
    after = kit.read(attempt.path)
    assert (after.state, after.incarnation) == (AttemptState.SUCCEEDED, incarnation)
    starts = kit.ledger.starts()
    assert starts[attempt.run] == 1
    assert set(starts.values()) == {1}
    assert len(starts) <= 1 + others
    said = [log.path.read_text("utf-8") for log in kit.runner.logs(attempt.run) if log.stream == "stdout"]
    # With Spark's own lines where the backend keeps one log.
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
        check_failure(kit, attempt, ended)


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


@without_spark_of_its_own
def test_of_two_submissions_of_an_attempt_one_runs_and_the_other_exits_with_75(kit: Kit) -> None:
    check_at_most_once(kit, *submit_twice(kit))


@on_real_spark
def test_drivers_end_as_they_say_the_end_of_a_lost_one_is_known_and_of_two_for_an_attempt_one_runs(
    kit: Kit,
) -> None:
    doubled = submit_twice(kit)
    failing, dying = kit.attempt(), kit.attempt()
    kit.submit(failing, "fail('no rows today')")
    kit.submit(dying, DIES)
    check_at_most_once(kit, *doubled, others=2)

    (failed,) = kit.wait_ended(failing.run)
    check_failure(kit, failing, failed)
    logs = {log.stream: log.path.read_text("utf-8") for log in kit.runner.logs(failing.run)}
    # A pod has one log.
    assert "no rows today" in logs["stdout" if kit.runner.backend == "kubernetes" else "stderr"]
    if kit.runner.backend == "yarn":
        assert "ApplicationMaster" in logs["spark"], "read from the logs that YARN keeps"

    (lost,) = kit.wait_ended(dying.run)
    after = kit.read(dying.path)
    assert (lost.state, lost.outcome, after.state) == (RunState.EXITED, None, AttemptState.STARTED)
    # The master of a standalone cluster reports only that a driver of its nodes has failed.
    has_code = (kit.runner.backend, kit.target.deploy_mode) != ("standalone", "cluster")
    assert lost.exit_code == (137 if has_code else None)
    verdict, _ = verdict_of_exit(after, lost)
    assert verdict.status is Status.ERROR_FAIL
    assert verdict.error is not None
    # YARN also kills a container over its memory in this way.
    assert verdict.error.error_class == ("memory" if kit.runner.backend == "yarn" else "infrastructure")
    runs = [attempt.run for attempt in (doubled[0], failing, dying)]
    wait_until(
        lambda: not any(map(processes_named, runs)), KILLED_WITHIN_S, "each process has ended by itself"
    )
    for run in runs:
        kit.runner.cleanup(run)
    wait_until(lambda: not any(map(kit.at_cluster, runs)), KILLED_WITHIN_S, "the cluster has nothing of them")
    kit.check_removed()


def submit_twice(kit: Kit) -> tuple[Attempt, set[str]]:
    """Submit an attempt twice; return the incarnations."""
    attempt = kit.attempt()
    requests = [kit.request(attempt, "say('here')\nsleep(0.5)") for _ in range(2)]
    submitted = [kit.runner.submit(request) for request in requests]
    assert {(each.run, each.state) for each in submitted} == {(attempt.run, RunState.RUNNING)}
    return attempt, {request.incarnation for request in requests}


def check_at_most_once(kit: Kit, attempt: Attempt, incarnations: set[str], *, others: int = 0) -> None:
    """Checks of an attempt that was submitted twice, among this many others of its kit."""
    ended = kit.wait_ended(attempt.run)
    assert {each.incarnation for each in ended} == incarnations
    assert {each.state for each in ended} == {RunState.EXITED}
    assert sorted(found.exit_code or 0 for found in ended) == [0, exit_codes.SUPERSEDED]
    (ran,) = [found.incarnation for found in ended if not found.exit_code]
    check_success(kit, attempt, ran, others=others)


def check_failure(kit: Kit, attempt: Attempt, ended: Submission) -> None:
    """Checks of an attempt whose program has failed with `no rows today`."""
    assert (ended.state, ended.exit_code, ended.failure) == (RunState.EXITED, 1, None)
    after = kit.read(attempt.path)
    assert after.state is AttemptState.FAILED
    assert "no rows today" in after.document["error"]["message"]
    assert ended.outcome is not None
    assert ended.outcome["state"] == "failed"


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
    """Checks of an attempt whose driver was killed; it is killed again."""
    killed = kit.only(attempt.run)
    assert killed.state is RunState.EXITED
    assert killed.exit_code
    kit.runner.kill(attempt.run, grace_seconds=5)
    assert kit.only(attempt.run) == killed


def check_removed(kit: Kit, attempt: Attempt) -> None:
    """Remove the traces of an ended run, twice."""
    kit.runner.cleanup(attempt.run)
    if kit.keeps_records:
        assert kit.only(attempt.run).state is RunState.EXITED
    else:
        assert kit.runner.find(attempt.run) == []
        assert kit.runner.logs(attempt.run) == []
    kit.runner.cleanup(attempt.run)
    kit.check_removed()


@on_real_spark
def test_a_job_goes_on_without_an_executor_and_20_seconds_after_a_kill_only_what_it_said_is_left(
    kit: Kit, tmp_path: Path
) -> None:
    tasks, users, beside = tmp_path / "tasks", tmp_path / "lib" / "users.py", tmp_path / "beside"
    for folder in (tasks, users.parent, beside):
        folder.mkdir()
    users.write_text("NAME = 'of the user'", "utf-8")
    is_local = kit.target.master.startswith("local")
    attempt = kit.attempt()
    request = kit.request(attempt, TASKS.format(folder=str(tasks), loses_executor=not is_local))
    more = {
        "spark.executorEnv.ORCHESTRATOR_TEST_EXECUTOR_OF": attempt.run,
        "spark.submit.pyFiles": f"{kit.scheme}{users}",
    }
    plan = {**request.plan, "directory": str(beside)}
    kit.runner.submit(replace(request, plan=plan, conf={**request.conf, **more}))
    if not is_local:
        check_continues_without_its_executor(kit, attempt.run, tasks)

    (worker,) = workers(tasks, "stays")
    assert {path.name for path in beside.iterdir()} == {"by-python", "by-spark"}, "relative to its definition"
    before = processes_named(attempt.run)
    assert any(process.startswith("java ") for process in before), before
    assert str(worker) in {process.split()[-1] for process in before}, (
        "executors are identified by their mark"
    )
    groups = {os.getpgid(int(process.split()[-1])) for process in before}
    assert len(groups) > 2 or not is_local, "a kill of the group of the driver is not enough"
    assert kit.at_cluster(attempt.run) or is_local
    wait_until(
        lambda: (0 if is_local else 1, 0 if is_local else 2) in tasks_reported(kit, attempt.run),
        END_S,
        "the log names stage and task",
    )

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
    if not is_local:
        texts = said_by_executors(kit, attempt.run).values()
        assert [text.count("Started daemon with process name") for text in texts] == [1, 1], (
            "no byte comes twice"
        )
    check_removed(kit, attempt)


def check_continues_without_its_executor(kit: Kit, run: str, tasks: Path) -> None:
    """In a run of `TASKS`: its first executor is killed; its tasks and its log continue."""
    (first,) = workers(tasks, "works")
    wait_until(lambda: reporting(kit, run) == 1, END_S, "the log of its executor is copied")
    psutil.Process(first).parents()[1].kill()  # the executor above the daemon of its Python workers
    wait_until(lambda: len(workers(tasks, "works")) == 2, END_S, "another executor works")
    wait_until(lambda: reporting(kit, run) == 2, END_S, "the log of the second one is copied")
    (tasks / "go").touch()
    workers(tasks, "stays")
    (found,) = [line for line in said(kit, run) if line.startswith("went on ")]
    ((code, of_user, total),) = json.loads(found.removeprefix("went on "))
    assert (of_user, total) == ("of the user", 3)
    if kit.runner.backend == "kubernetes":
        assert code.endswith("/driver.zip/spark_runner/__init__.py"), "its image has nothing of ours"


def workers(tasks: Path, what: str) -> list[int]:
    """The Python workers that have begun this; waits for the first."""

    def found() -> list[int]:
        return [int(path.name.partition("-")[2]) for path in tasks.glob(f"{what}-*")]

    return wait_until(found, 2 * END_S, f"a task {what} in a Python worker")


def said(kit: Kit, run: str) -> list[str]:
    """The lines of its driver's output, with Spark's own where the backend keeps one log."""
    logs = [log for log in kit.runner.logs(run) if log.stream == "stdout" and not log.executor]
    return [line for log in logs for line in log.path.read_text("utf-8").splitlines()]


def said_by_executors(kit: Kit, run: str) -> dict[str, str]:
    """The log of each executor."""
    texts = defaultdict[str, str](str)
    for log in kit.runner.logs(run):
        if log.executor:
            texts[log.executor] += log.path.read_text("utf-8")
    return texts


def reporting(kit: Kit, run: str) -> int:
    """The number of executors that have logged a task."""
    return sum("Running task" in text for text in said_by_executors(kit, run).values())


def tasks_reported(kit: Kit, run: str) -> set[tuple[int | None, int | None]]:
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
            continue  # ended meanwhile, or not readable
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
def test_a_cleanup_keeps_a_running_driver_and_removes_the_traces_of_an_ended_one(kit: Kit) -> None:
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
