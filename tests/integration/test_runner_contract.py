"""What every runner has to keep, whatever place it runs drivers in."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.wiring import DRIVER_MAIN
from queues.documents import timestamp
from queues.operations import Operation
from queues.session import Session
from queues.transaction import commit
from spark_runner import exit_codes
from spark_runner.attempt import Attempt, AttemptState, attempt_path, intent, run_name
from spark_runner.errors import SparkRunnerError, SubmissionError
from spark_runner.runners.base import Runner, RunState, Submission, SubmitRequest, Target
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import STAND_IN
from tests.queues_support import open_session
from tests.scripted.backend import Backend
from tests.scripted.ledger import Ledger
from tests.scripted.runner import ScriptedRunner
from tests.scripted.words import for_real_drivers
from tests.waiting import wait_until

END_S = 60
"""A driver of real Spark needs ten seconds alone, and more beside other tests."""

with_spark = pytest.mark.parametrize(
    "kit", ["scripted", "stand-in", pytest.param("spark", marks=pytest.mark.spark)], indirect=True
)
without_spark = pytest.mark.parametrize("kit", ["scripted", "stand-in"], indirect=True)


@dataclass
class Kit:
    """A runner, and attempts in ZooKeeper whose drivers it may start."""

    runner: Runner
    session: Session
    root: str
    ledger: Ledger
    written: Callable[[str], str]  # a program in the words of `tests.scripted.words` for its drivers

    def attempt(self) -> Attempt:
        """A new attempt, announced and taken by nobody."""
        run_key = str(uuid.uuid4())
        folder = f"{self.root}/jobs/{run_key}"
        self.session.ensure_path(folder)
        path, place = attempt_path(folder, 1), self.runner.place().to_json()
        commit(self.session, [intent(path, run_key=run_key, number=1, place=place, at=timestamp())])
        return self.read(path)

    def read(self, path: str) -> Attempt:
        attempt = Attempt.read(self.session, path)
        assert attempt is not None
        return attempt

    def change(self, *operations: Operation) -> None:
        commit(self.session, operations)

    def request(self, attempt: Attempt, program: str) -> SubmitRequest:
        incarnation = uuid.uuid4().hex
        plan = {
            "run_key": attempt.run_key,
            "attempt_path": attempt.path,
            "stop_path": f"{self.root}/stops/default/{attempt.run_key}",
            "incarnation": incarnation,
            "lease_seconds": 60,
            "zookeeper": self.session.settings.for_plan(),
            "python": {
                "file": "job.py",
                "text": self.written(program),
                "arguments": [],
                "directory": "",
            },
        }
        return SubmitRequest(attempt.run, incarnation, "contract", plan, target=Target("local[1]"))

    def submit(self, attempt: Attempt, program: str) -> Submission:
        return self.runner.submit(self.request(attempt, program))

    def only(self, run: str) -> Submission:
        (submission,) = self.runner.find(run)
        return submission

    def wait_ended(self, run: str) -> list[Submission]:
        def ended() -> bool:
            return all(found.state in {RunState.EXITED, RunState.GONE} for found in self.runner.find(run))

        wait_until(ended, END_S, f"every driver of {run} has ended")
        return self.runner.find(run)

    def wait_started(self, attempt: Attempt) -> None:
        wait_until(lambda: self.ledger.starts()[attempt.run], END_S, "the program runs")


@pytest.fixture
def kit(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    state = tmp_path / "state"
    with ExitStack() as stack:
        session = stack.enter_context(open_session(zookeeper_hosts))
        runner: Runner
        if request.param == "scripted":
            backend = stack.enter_context(Backend(state, zookeeper_hosts))
            runner, ledger = ScriptedRunner(state), backend.store.ledger
            made = Kit(runner, session, zookeeper_root, ledger, lambda program: program)
        else:
            ledger = Ledger(tmp_path / "ledger.jsonl")
            submit = STAND_IN if request.param == "stand-in" else None
            runner = LocalRunner(SparkSubmits(state, spark_submit=submit), driver_main=DRIVER_MAIN)
            made = Kit(
                runner,
                session,
                zookeeper_root,
                ledger,
                lambda program: for_real_drivers(program, ledger.path),
            )
        yield made
        for run in {line["run"] for line in ledger.lines()}:
            runner.kill(run, grace_seconds=0)


@without_spark
def test_the_place_of_a_runner_is_within_its_own_reach_and_names_its_backend(kit: Kit) -> None:
    place = kit.runner.place()
    assert place.backend == kit.runner.backend
    assert kit.runner.reaches(place)


@without_spark
def test_a_run_that_nobody_submitted_is_empty_and_can_be_killed_and_removed(kit: Kit) -> None:
    run = run_name(str(uuid.uuid4()), 1)
    assert kit.runner.find(run) == []
    assert kit.runner.poll_many([run]) == {run: []}
    assert kit.runner.logs(run) == []
    kit.runner.kill(run, grace_seconds=1)
    kit.runner.cleanup(run)


@with_spark
def test_a_driver_takes_its_attempt_records_its_outcome_and_exits_with_zero(kit: Kit) -> None:
    attempt = kit.attempt()
    submitted = kit.submit(attempt, "say('here')")
    assert (submitted.run, submitted.state) == (attempt.run, RunState.RUNNING)
    (ended,) = kit.wait_ended(attempt.run)
    assert (ended.incarnation, ended.state, ended.exit_code) == (submitted.incarnation, RunState.EXITED, 0)
    after = kit.read(attempt.path)
    assert (after.state, after.incarnation) == (AttemptState.SUCCEEDED, submitted.incarnation)
    assert kit.ledger.starts() == {attempt.run: 1}
    words = {log.stream: log.path.read_text("utf-8") for log in kit.runner.logs(attempt.run)}
    assert words["stdout"] == "here\n"
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


@without_spark
def test_of_two_submissions_of_an_attempt_one_runs_and_the_other_exits_with_75(kit: Kit) -> None:
    attempt = kit.attempt()
    first, second = kit.request(attempt, "sleep(0.5)"), kit.request(attempt, "sleep(0.5)")
    kit.runner.submit(first)
    kit.runner.submit(second)
    ended = kit.wait_ended(attempt.run)
    assert sorted(found.exit_code or 0 for found in ended) == [0, exit_codes.SUPERSEDED]
    assert kit.ledger.starts() == {attempt.run: 1}
    (ran,) = [found.incarnation for found in ended if not found.exit_code]
    after = kit.read(attempt.path)
    assert (after.state, after.incarnation) == (AttemptState.SUCCEEDED, ran)


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


@with_spark
def test_kill_ends_the_driver_for_certain_and_may_be_asked_twice(kit: Kit) -> None:
    attempt = kit.attempt()
    kit.submit(attempt, "hang()")
    kit.wait_started(attempt)
    kit.runner.kill(attempt.run, grace_seconds=5)
    killed = kit.only(attempt.run)
    assert killed.state is RunState.EXITED
    assert killed.exit_code
    kit.runner.kill(attempt.run, grace_seconds=5)
    assert kit.only(attempt.run) == killed
    assert kit.read(attempt.path).state is AttemptState.STARTED, "the verdict is the worker's to write"


@without_spark
def test_a_driver_that_left_nothing_is_gone_and_one_that_lives_is_not(kit: Kit) -> None:
    vanished, living = kit.attempt(), kit.attempt()
    kit.submit(living, "hang()")
    kit.submit(vanished, "vanish()")
    (gone,) = kit.wait_ended(vanished.run)
    assert (gone.state, gone.exit_code) == (RunState.GONE, None)
    kit.wait_started(living)
    assert kit.only(living.run).state is RunState.RUNNING


@without_spark
def test_what_a_running_driver_has_is_not_removed_and_what_an_ended_one_left_is(kit: Kit) -> None:
    attempt = kit.attempt()
    kit.submit(attempt, "say('up')\nhang()")
    kit.wait_started(attempt)
    with pytest.raises(SparkRunnerError, match="kill it before"):
        kit.runner.cleanup(attempt.run)
    assert kit.only(attempt.run).state is RunState.RUNNING
    kit.runner.kill(attempt.run, grace_seconds=5)
    kit.runner.cleanup(attempt.run)
    assert kit.runner.find(attempt.run) == []
    assert kit.runner.logs(attempt.run) == []
    kit.runner.cleanup(attempt.run)


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
