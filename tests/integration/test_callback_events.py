"""Events of a job before its end: in order, at least once, and without delaying the job."""

from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from orchestrator.callbacks.callback import CallbackError, Callbacks, CallbacksBusy
from orchestrator.cli.job.listing import list_row
from orchestrator.cli.job.show import show_detail
from orchestrator.cli.options import OutputFormat
from orchestrator.handlers import notices
from orchestrator.model.definition import build_definition
from orchestrator.model.definition_parts import Callback
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job import CallbackState, Undelivered
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from queues.model.codec import timestamp
from spark_runner.runners.base import Submission
from tests.crash_points import Point
from tests.jobs_support import Deployment, ScriptedDeployment, poll_often, python_job
from tests.operators_support import JOB, Stage
from tests.receiver import ACKNOWLEDGED, REFUSED, Answerer, Receiver, override, receiver
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

ALL = ["running", "warn", "end"]


@pytest.fixture
def deployment(scripted_deployment: ScriptedDeployment) -> Deployment:
    return scripted_deployment


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this process retry failed callbacks at once."""
    monkeypatch.setattr(notices, "FIRST_DELAY_SECONDS", 0.05)


def submit(deployment: Deployment, there: Receiver, program: str = "pass", **fields: object) -> str:
    callback = {"url": there.url, "on": ALL, **dict(fields.pop("callback", {}))}  # type: ignore[call-overload]  # of a mapping
    return deployment.submit(program, callback=callback, **fields)


def ended(deployment: Deployment, job_id: str) -> JobView:
    return deployment.wait(job_id, 60).job


def events_of(there: Receiver) -> list[tuple[str, str, int]]:
    return [(each.body["event"], each.body["status"], each.body["attempt"]) for each in there.requests]


def tries(deployment: Deployment, job_id: str) -> list[int]:
    """The failed tries of each event that waits for its delivery."""
    return [notice.tries for notice in deployment.state(job_id).outbox]


def keys(there: Receiver) -> list[str]:
    return [each.headers["Idempotency-Key"] for each in there.requests]


def held_back(there: Callable[[], Receiver]) -> Answerer:
    def wait(request: BaseHTTPRequestHandler) -> None:
        there().released.wait(60)
        ACKNOWLEDGED(request)

    return wait


# ---------------------------------------------------------------------- order
def test_a_job_reports_that_it_runs_and_then_that_it_has_ended(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    go = tmp_path / "go"
    with receiver() as there:
        job_id = submit(deployment, there, f"until({str(go)!r})", labels={"team": "x"})
        (running,) = there.wait_requests(1)
        go.touch()
        view = ended(deployment, job_id)
    assert events_of(there) == [("running", "RUNNING", 1), ("end", "SUCCESS", 1)]
    body = running.body
    assert (body["previous_status"], body["application_id"], body["labels"]) == (
        "ACCEPT",
        "scripted",
        {"team": "x"},
    )
    assert body["times"] == {
        "created": view.created,
        "first_started": view.started,
        "started": view.started,
        "ended": None,
    }
    assert set(body) == set(there.requests[1].body)
    assert there.requests[1].body["previous_status"] == "RUNNING"
    assert [each.body["number"] for each in there.requests] == [1, 2]


def test_each_attempt_reports_that_it_runs_however_short_it_was(deployment: Deployment) -> None:
    deployment.worker()
    with receiver() as there:
        retry = {"attempts": 3, "delay": 0, "on": ["user"]}
        view = ended(deployment, submit(deployment, there, "if attempt < 3: fail('x')", retry=retry))
    runs = [("running", "RUNNING", number) for number in (1, 2, 3)]
    assert events_of(there) == [*runs, ("end", "SUCCESS", 3)]
    assert len(set(keys(there))) == 4
    first = there.requests[0].body["times"]["started"]
    assert {each.body["times"]["first_started"] for each in there.requests} == {first}
    assert view.started != first


@pytest.mark.usefixtures("soon")
def test_no_event_overtakes_one_that_is_tried_again(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(REFUSED, REFUSED, ACKNOWLEDGED) as there:
        view = ended(deployment, submit(deployment, there))
    assert [event for event, *_ in events_of(there)] == ["running"] * 3 + ["end"]
    assert len({(each.data, each.headers["Idempotency-Key"]) for each in there.requests[:3]}) == 1
    assert view.undelivered == ()


@pytest.mark.usefixtures("soon")
def test_an_event_that_is_given_up_is_on_record_and_the_next_one_is_delivered(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(REFUSED, REFUSED, ACKNOWLEDGED) as there:
        view = ended(deployment, submit(deployment, there, callback={"attempts": 2}))
    assert [event for event, *_ in events_of(there)] == ["running", "running", "end"]
    assert [(lost.event, lost.number, lost.tries) for lost in view.undelivered] == [("running", 1, 2)]
    assert '"BUSY"' in view.undelivered[0].error
    assert view.callback.done
    assert view.callback.error is None


@pytest.mark.usefixtures("soon")
def test_an_end_that_is_given_up_is_on_record(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(REFUSED) as there:
        view = ended(deployment, submit(deployment, there, callback={"attempts": 2, "on": ["end"]}))
    assert [(lost.event, lost.number, lost.tries) for lost in view.undelivered] == [("end", 1, 2)]


def test_only_requested_events_are_reported_and_only_the_end_has_an_answer(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(override("ERROR_FAIL")) as there:
        view = ended(deployment, submit(deployment, there, callback={"on": ["running"]}))
    assert view.status is Status.SUCCESS
    assert events_of(there) == [("running", "RUNNING", 1)]


def test_a_warning_is_reported_while_the_job_runs(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    go = tmp_path / "go"
    with receiver() as there:
        job_id = submit(deployment, there, f"until({str(go)!r})", timeout={"stall": 0.5})
        there.wait_requests(2)
        go.touch()
        ended(deployment, job_id)
    assert events_of(there)[:2] == [("running", "RUNNING", 1), ("warn", "RUNNING_WARN", 1)]
    warn = there.requests[1].body
    assert (warn["previous_status"], "no progress" in warn["warning"]) == ("RUNNING", True)
    assert events_of(there)[-1] == ("end", "SUCCESS", 1)


# ---------------------------------------------------------------------- a slow receiver
def test_a_receiver_that_is_silent_keeps_no_job_from_its_outcome(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    go = tmp_path / "go"
    with receiver(held_back(lambda: there), ACKNOWLEDGED) as there:
        job_id = submit(deployment, there, f"until({str(go)!r})", callback={"timeout": 60})
        there.wait_requests(1)
        go.touch()
        wait_until(
            lambda: deployment.client.get(job_id).queue is Queue.SUCCESS, 30, "its outcome is on record"
        )
        assert len(there.requests) == 1
        there.released.set()
        ended(deployment, job_id)
    assert [event for event, *_ in events_of(there)] == ["running", "end"]


def test_a_receiver_that_is_silent_keeps_no_job_from_being_killed(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(held_back(lambda: there), ACKNOWLEDGED) as there:
        job_id = submit(deployment, there, "hang()", callback={"timeout": 60})
        there.wait_requests(1)
        deployment.client.kill(job_id)
        wait_until(lambda: deployment.client.get(job_id).status is Status.KILL, 30, "it is killed")
        there.released.set()
        assert ended(deployment, job_id).status is Status.KILL
    assert events_of(there) == [("running", "RUNNING", 1), ("end", "KILL", 1)]


def test_a_killed_job_that_waits_to_report_that_it_ran_does_not_delay_others_of_its_name(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "FIRST_DELAY_SECONDS", 250.0)
    deployment.worker()
    with receiver(REFUSED) as there:
        job_id = submit(deployment, there, "hang()", name="one", concurrency=1)
        # A kill that comes before the result of the first try is on record makes no second one.
        wait_until(lambda: tries(deployment, job_id) == [1], 30, "a try has failed")
        deployment.client.kill(job_id)
        there.wait_requests(2)
        assert (
            ended(deployment, deployment.submit("pass", name="one", concurrency=1)).status is Status.SUCCESS
        )
        assert deployment.client.get(job_id).queue is Queue.KILL
        deployment.client.kill(job_id)  # a second request is effective at once
        there.wait_requests(4)
        wait_until(lambda: deployment.client.get(job_id).callback.attempts == 1, 30, "its end waits, too")
        deployment.client.kill(job_id)
        view = ended(deployment, job_id)
    assert [event for event, *_ in events_of(there)] == ["running"] * 3 + ["end"] * 2
    assert (view.status, [lost.tries for lost in view.undelivered]) == (Status.KILL, [3, 2])


def test_one_receiver_leaves_slots_for_others() -> None:
    callbacks, slow = Callbacks(at_once=4), Callback(url="http://slow/x")
    for _ in range(2):
        callbacks.reserve(slow)
    with pytest.raises(CallbacksBusy, match="to http://slow"):
        callbacks.reserve(slow)
    callbacks.reserve(Callback(url="http://quick/x"))


def test_a_free_slot_goes_to_the_first_waiter_that_still_wants_it() -> None:
    callbacks, slow = Callbacks(at_once=2), Callback(url="http://127.0.0.1:1/x")
    called = list[str]()

    def ask(name: str, *, is_wanted: bool) -> Callable[[], bool]:
        def on_free() -> bool:
            called.append(name)
            return is_wanted

        return on_free

    asks = [ask("gone", is_wanted=False), ask("first", is_wanted=True), ask("second", is_wanted=True)]
    callbacks.reserve(slow)
    for on_free in asks:
        with pytest.raises(CallbacksBusy):
            callbacks.reserve(slow, on_free)
    body = dict.fromkeys(("run_key", "pool", "attempt", "event", "status", "number"), "x")
    with pytest.raises(CallbackError):
        callbacks.call_reserved(slow, body)
    assert called == ["gone", "first"]


def test_jobs_that_wait_for_a_slot_are_not_handled_again_and_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poll_often(monkeypatch, 0.5)
    polls, asked = list[int](), list[Callback]()
    poll_many, reserve = ScriptedRunner.poll_many, Callbacks.reserve

    def count_polls(runner: ScriptedRunner, runs: Sequence[str]) -> dict[str, list[Submission]]:
        polls.append(len(runs))
        return poll_many(runner, runs)

    def count_asked(callbacks: Callbacks, callback: Callback, *on_free: Callable[[], bool]) -> None:
        asked.append(callback)
        reserve(callbacks, callback, *on_free)

    monkeypatch.setattr(ScriptedRunner, "poll_many", count_polls)
    monkeypatch.setattr(Callbacks, "reserve", count_asked)
    worker = deployment.worker(slots=6)
    go = tmp_path / "go"
    with receiver(held_back(lambda: there)) as there:
        jobs = [submit(deployment, there, f"until({str(go)!r})", callback={"timeout": 60}) for _ in range(6)]
        there.wait_requests(4)
        wait_until(lambda: len(worker.dispatcher.timers.parked()) == 6 and len(polls) >= 3, 30, "all wait")
        seen, seen_asked = len(polls), len(asked)
        wait_until(lambda: len(polls) >= seen + 3, 30, "some time has passed")
        assert len(asked) == seen_asked
        there.released.set()
        there.wait_requests(6)
        go.touch()
        for job_id in jobs:
            ended(deployment, job_id)


def test_killed_jobs_that_wait_for_a_slot_are_not_killed_again_and_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills, kill = Counter[str](), ScriptedRunner.kill

    def count(runner: ScriptedRunner, run: str, *, grace_seconds: float) -> None:
        kills[run] += 1
        kill(runner, run, grace_seconds=grace_seconds)

    monkeypatch.setattr(ScriptedRunner, "kill", count)
    worker = deployment.worker(slots=6)
    with receiver(held_back(lambda: there)) as there:
        fields = {"callback": {"on": ["end"], "timeout": 60}}
        jobs = [submit(deployment, there, "hang()", **fields) for _ in range(6)]
        for job_id in jobs:
            wait_until(lambda: deployment.client.get(job_id).queue is Queue.RUNNING, 30, "it has an attempt")  # noqa: B023
            deployment.client.kill(job_id)
        there.wait_requests(4)
        wait_until(lambda: len(kills) == 6 and len(worker.dispatcher.timers.parked()) == 2, 30, "two wait")
        before = kills.total()
        marker = deployment.submit("fail('x')", retry={"attempts": 2, "delay": 3, "on": ["user"]})
        ended(deployment, marker)  # some time has passed
        assert kills.total() <= before + 4  # each new list of stop requests causes a check
        there.released.set()
        for job_id in jobs:
            ended(deployment, job_id)


# ---------------------------------------------------------------------- faults
def test_after_a_worker_was_killed_during_a_running_event_another_one_reports_the_same(
    deployment: Deployment, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    settings = deployment.settings
    first = WorkerProcess("first", tmp_path, worker_config(settings, "scripted"), settings.zookeeper_hosts)
    with receiver(held_back(lambda: there), ACKNOWLEDGED) as there:
        with worker_processes(first):
            job_id = submit(deployment, there, f"until({str(go)!r})", callback={"timeout": 60})
            there.wait_requests(1)
            first.kill()
        first.end_session()
        deployment.worker()
        there.wait_requests(2)
        go.touch()
        ended(deployment, job_id)
    assert there.requests[0] == there.requests[1]
    assert events_of(there)[1:] == [("running", "RUNNING", 1), ("end", "SUCCESS", 1)]


@pytest.mark.parametrize("event", ["running", "end"])
def test_after_a_worker_died_between_an_answer_and_its_transition_another_one_reports_the_same(
    deployment: Deployment, tmp_path: Path, event: str
) -> None:
    settings = deployment.settings
    config = worker_config(settings, "scripted", die_at=Point("call", after=True))
    first = WorkerProcess("first", tmp_path, config, settings.zookeeper_hosts)
    with receiver() as there:
        with worker_processes(first):
            job_id = submit(deployment, there, callback={"on": [event]})
            wait_until(lambda: not first.is_running, 60, "it has died")
        assert len(there.requests) == 1
        first.end_session()
        deployment.worker()
        view = ended(deployment, job_id)
    assert there.requests[0] == there.requests[1]
    assert len(there.requests) == 2
    assert (view.status, view.undelivered) == (Status.SUCCESS, ())


# ---------------------------------------------------------------------- keys
def test_a_job_that_an_operator_retries_is_reported_under_other_keys(deployment: Deployment) -> None:
    deployment.worker()
    with receiver() as there:
        deployment.client.pause("default")
        job_id = deployment.client.submit(python_job("pass", callback={"url": there.url})).id
        for _ in range(2):  # without an attempt, so that nothing else distinguishes them
            deployment.client.kill(job_id)
            assert ended(deployment, job_id).status is Status.CANCEL
            deployment.client.retry(job_id)
    assert events_of(there) == [("end", "CANCEL", 0)] * 2
    assert len(set(keys(there))) == 2


@pytest.mark.parametrize("act", ["retry", "move", "replay"])
def test_bringing_a_job_back_counts_an_end_that_may_have_been_reported(stage: Stage, act: str) -> None:
    acts: dict[str, Callable[[], object]] = {
        "retry": lambda: (stage.put(Queue.FINISH, Status.CANCEL), stage.client.retry(JOB)),
        "move": lambda: (stage.put(Queue.FAIL), stage.client.move(JOB, Queue.ACCEPT)),
        "replay": lambda: (stage.put(Queue.DEAD), stage.client.replay([JOB])),
    }
    acts[act]()
    assert stage.state().status is Status.ACCEPT
    number = stage.state().notices
    assert number == 1
    stage.client.move(JOB, Queue.DEAD)
    stage.client.replay([JOB])
    assert stage.state().notices == number + 1


# ---------------------------------------------------------------------- definitions
def test_an_event_that_is_not_known_is_refused_with_the_nearest() -> None:
    document = {"name": "x", "python": "pass", "callback": {"url": "http://x", "on": ["runing"]}}
    with pytest.raises(DefinitionError, match=r"callback\.on\.0.*not 'runing'; did you mean 'running'\?"):
        build_definition(document, "test")
    with pytest.raises(DefinitionError, match="at least 1 item"):
        build_definition(document | {"callback": {"on": []}}, "test")


# ---------------------------------------------------------------------- display
def test_a_callback_that_was_given_up_shows_in_the_list_and_on_the_page_of_its_job(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Undelivered(event="end", number=1, tries=5, error="http://there: HTTP 500", at=timestamp())
    stage.put(Queue.FINISH, Status.SUCCESS, undelivered=(lost,))
    tried = CallbackState(attempts=2, error="http://there: HTTP 503")
    stage.put(Queue.SUCCESS, job_id="tried", callback=tried)
    rows = {view.id: list_row(view, OutputFormat.TABLE)["callback_shown"] for view in stage.client.list()}
    assert rows == {JOB: "given up", "tried": ""}
    documents = {view.id: list_row(view, OutputFormat.JSON) for view in stage.client.list()}
    assert documents[JOB]["undelivered"] == [lost.model_dump()]
    show_detail(stage.client.detail(JOB))
    assert "callback: given up: end after 5 tries" in capsys.readouterr().out
    show_detail(stage.client.detail("tried"))
    shown = "the callback of the end is not delivered yet, after 2 tries: http://there: HTTP 503"
    assert shown in capsys.readouterr().out
