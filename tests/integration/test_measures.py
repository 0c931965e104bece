"""Metrics of a worker after real events, and its probes."""

import threading
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client import CollectorRegistry

from orchestrator.admission.guard import Guard
from orchestrator.config.listening import Listening
from orchestrator.config.settings import Settings
from orchestrator.handlers.job_context import JobContext
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.settings import LogSettings
from orchestrator.metrics.pages import Probe
from orchestrator.metrics.server import serving
from orchestrator.model.job import JobError, JobState
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Waiting
from orchestrator.worker import dispatcher
from orchestrator.worker.measures import JobMeasures
from orchestrator.worker.worker import Worker
from queues.embedded import EmbeddedZooKeeper, ServerConfig
from queues.session import SessionState
from tests.claims_support import SOON
from tests.jobs_support import ScriptedOffice, python_job
from tests.queues_support import expire
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until


def value(worker: Worker, name: str, **labels: str) -> float | None:
    return worker.metrics.registry.get_sample_value(f"orchestrator_{name}", labels)


def probe(worker: Worker, name: str) -> Probe:
    return next(each for each in worker.probes if each.name == name)


def failing(worker: Worker, name: str) -> list[str]:
    return [line for line in probe(worker, name).report().lines if line.startswith("[-]")]


def _runs(office: ScriptedOffice, job_id: str) -> bool:
    return [attempt["state"] for attempt in office.client.detail(job_id).attempts] == ["started"]


@pytest.fixture(autouse=True)
def _prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.leader.queues._LOOK_SECONDS", 0.1)


# ---------------------------------------------------------------------- metrics
def test_transitions_of_jobs_are_counted(scripted_office: ScriptedOffice) -> None:
    worker = scripted_office.worker(slots=3)
    well = scripted_office.submit("pass")
    failed = scripted_office.submit("fail('no rows')", retry={"attempts": 2, "delay": "10ms"})
    killed = scripted_office.submit("hang()")
    wait_until(lambda: _runs(scripted_office, killed), 30, "it runs")
    assert value(worker, "slots") == 3
    assert (value(worker, "drivers", reach="within") or 0) >= 1
    scripted_office.client.kill(killed)
    for job_id in (well, failed, killed):
        scripted_office.wait(job_id)
    wait_until(lambda: value(worker, "drivers", reach="within") == 0, 30, "all are let go")
    statuses = ("SUCCESS", "ERROR_FAIL", "KILL")
    wait_until(  # a job is counted after its move, which its client may see before
        lambda: [value(worker, "jobs_finished_total", status=status) for status in statuses] == [1, 1, 1],
        30,
        "each is counted",
    )
    ends = {end: value(worker, "attempts_total", end=end) for end in ("success", "user", "kill", "lost")}
    assert ends == {"success": 1, "user": 2, "kill": 1, "lost": 0}
    assert value(worker, "state_seconds_count", queue="running") == 4
    assert (value(worker, "claims_total", queue="accept") or 0) >= 4
    assert (value(worker, "commits_total", kind="move") or 0) >= 12
    assert (value(worker, "zookeeper_multi_seconds_count", kind="commit") or 0) >= 12
    assert value(worker, "handler_errors_total") == 0
    wait_until(lambda: value(worker, "leader") == 1, 30, "it leads")
    wait_until(lambda: value(worker, "queue_depth", queue="finish", pool="default") == 3, 30, "it counts")


def test_an_attempt_that_ends_without_an_outcome_is_counted_as_such(scripted_office: ScriptedOffice) -> None:
    worker = scripted_office.worker()
    scripted_office.submit("leave(0)", retry={"attempts": 1})
    wait_until(lambda: value(worker, "attempts_total", end="no_outcome") == 1, 30, "it is counted")


def test_reasons_that_delay_jobs_are_counted(scripted_office: ScriptedOffice) -> None:
    worker = scripted_office.worker(slots=1, memory_guard=True)
    scripted_office.submit("pass", spark={"driver": {"memory": "900000g"}})
    wait_until(lambda: value(worker, "jobs_declined_total", reason="memory"), 30, "it is left")
    wait_until(lambda: value(worker, "refuses", reason="slots") == 0, 30, "its slot is free again")
    scripted_office.submit("hang()")
    wait_until(lambda: value(worker, "refuses", reason="slots") == 1, 30, "its slot is taken")
    assert value(worker, "refuses", reason="pressure") == 0


def test_each_reason_to_take_no_job_is_counted(
    scripted_office: ScriptedOffice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy: list[str] = []
    monkeypatch.setattr(Guard, "refusal", lambda _self: busy[0] if busy else None)
    worker = scripted_office.worker(slots=3)
    wait_until(lambda: not failing(worker, "readyz"), 30, "it is ready")
    go = tmp_path / "go"
    first = scripted_office.submit(f"until({str(go)!r})", name="alone", concurrency=1)
    wait_until(lambda: _runs(scripted_office, first), 30, "it runs")
    scripted_office.submit("pass", name="alone", concurrency=1)
    wait_until(lambda: value(worker, "jobs_declined_total", reason="concurrency"), 30, "it is left")
    busy.append("the host is busy")
    worker.look_again()
    wait_until(lambda: value(worker, "refuses", reason="pressure") == 1, 30, "it is refused")
    busy.clear()
    worker.look_again()
    wait_until(lambda: value(worker, "refuses", reason="pressure") == 0, 30, "it is well again")
    go.touch()
    scripted_office.wait(first)
    worker.stop_taking()
    worker.look_again()
    wait_until(lambda: value(worker, "refuses", reason="draining") == 1, 30, "it is about to end")


def test_a_job_that_is_taken_by_force_and_a_failing_handler_are_counted(
    scripted_office: ScriptedOffice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted_office.worker()
    job_id = scripted_office.submit(f"until({str(tmp_path / 'go')!r})")
    wait_until(lambda: _runs(scripted_office, job_id), 30, "it runs")
    scripted_office.queues.move(job_id, Queue.RUNNING, force=True)
    (tmp_path / "go").touch()  # its holder has a change to commit
    wait_until(lambda: value(worker, "claims_lost_total", reason="taken") == 1, 30, "the claim is lost")
    assert value(worker, "claims_lost_total", reason="session") == 0
    assert scripted_office.wait(job_id).job.status is Status.SUCCESS

    def broken(_self: object) -> None:
        raise RuntimeError("no place")

    monkeypatch.setattr(ScriptedRunner, "place", broken)
    scripted_office.submit("pass")
    wait_until(lambda: value(worker, "handler_errors_total"), 30, "its handler has failed")


def test_a_job_that_a_schedule_enqueues_is_counted(scripted_office: ScriptedOffice) -> None:
    worker = scripted_office.worker()
    assert value(worker, "puts_total") == 0
    scripted_office.client.schedules.put(python_job("pass", name="tick", schedule={"every": "1s"}))
    wait_until(lambda: value(worker, "puts_total"), 30, "its job is enqueued")


def test_a_session_that_ends_shows(scripted_office: ScriptedOffice) -> None:
    worker = scripted_office.worker()
    scripted_office.submit("hang()")
    wait_until(lambda: value(worker, "jobs_held", queue="running"), 30, "it runs")
    before = value(worker, "zookeeper_sessions_lost_total")
    session = worker.sessions.first
    expire(session)
    wait_until(lambda: value(worker, "claims_lost_total", reason="session") == 1, 30, "the claim is lost")
    assert value(worker, "zookeeper_sessions_lost_total") == (before or 0) + 1
    assert value(worker, "zookeeper_session_changes_total", state="connected")
    wait_until(lambda: value(worker, "zookeeper_connected") == 1, SOON, "it is back")
    assert value(worker, "zookeeper_sessions") == 1


def test_the_spool_is_measured(scripted_office: ScriptedOffice, tmp_path: Path) -> None:
    with LogPipeline(LogSettings(), tmp_path / "logs", "orchestrator") as logs:
        worker = scripted_office.worker(logs=logs)
        assert value(worker, "spool_limit_bytes") == LogSettings().max_bytes
        wait_until(lambda: value(worker, "spool_bytes"), 30, "what it logs is spooled")


def test_words_of_drivers_make_no_series() -> None:
    registry = CollectorRegistry()
    measures = JobMeasures(registry)
    state = JobState.enqueued("x")
    before = sum(len(family.samples) for family in registry.collect())
    for number in range(50):
        error = JobError(error_class=f"class-{number}", message="")
        measures.after_outcome("x", state.evolve(status=Status.ERROR_FAIL, error=error))
        measures.after_decline("x", Waiting(reason=f"reason-{number}", message=""))
    odd = state.evolve(times={"accept": "tonight"})
    measures.after_transition("x", odd, odd.evolve(status=Status.RUNNING), Queue.RUNNING)
    for name, label in (("attempts", "end"), ("jobs_declined", "reason")):
        assert registry.get_sample_value(f"orchestrator_{name}_total", {label: "other"}) == 50
    after = sum(len(family.samples) for family in registry.collect())
    assert after - before <= 2, "`other` of declined, with the time since when it is there"


# ---------------------------------------------------------------------- probes
def test_a_worker_is_live_and_ready_until_it_drains(scripted_office: ScriptedOffice) -> None:
    worker = scripted_office.worker()
    wait_until(lambda: not failing(worker, "readyz"), 30, "it is ready")
    assert [line.partition(" ")[0] for line in probe(worker, "readyz").report().lines[:-1]] == [
        "[+]zookeeper",
        "[+]draining",
        "[+]announced",
        "[+]claims",
    ]
    assert failing(worker, "livez") == []
    worker.drain()
    assert failing(worker, "readyz")[0] == "[-]draining failed: it accepts no new jobs any more"
    assert failing(worker, "livez") == [], "its loops have ended because they were asked to"


def test_without_zookeeper_a_worker_is_live_and_not_ready(tmp_path: Path) -> None:
    data = ServerConfig(tmp_path / "zookeeper", tick_ms=500)
    settings = Settings(state_dir=tmp_path / "state", session_timeout=2.0)
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedZooKeeper(data))
        office = ScriptedOffice(settings.model_copy(update={"zookeeper_hosts": server.hosts}))
        stack.callback(office.close)
        worker = office.worker()
        served = serving(Listening(address="127.0.0.1:0"), worker.metrics.registry, worker.probes)
        url = stack.enter_context(served)
        wait_until(lambda: read(url, "/readyz") == (200, "ok\n"), 30, "it is ready")
        server.stop()
        wait_until(lambda: read(url, "/readyz")[0] == 500, 30, "it is not ready")
        assert "[-]zookeeper failed: its session is " in read(url, "/readyz?verbose")[1]
        wait_until(lambda: value(worker, "zookeeper_away_seconds") or 0, 30, "time without it is measured")
        assert value(worker, "zookeeper_connected") == 0
        assert value(worker, "check", probe="readyz", check="zookeeper") == 0
        wait_until(lambda: worker.sessions.first.state is SessionState.LOST, 30, "its session has ended")
        assert read(url, "/livez") == (200, "ok\n"), "a restart would not bring ZooKeeper back"
        stack.enter_context(EmbeddedZooKeeper(data))
        wait_until(lambda: read(url, "/readyz") == (200, "ok\n"), 60, "it is ready again")
        assert (value(worker, "zookeeper_connected"), value(worker, "zookeeper_away_seconds")) == (1, 0)


def read(url: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url + path, timeout=30) as answer:  # noqa: S310 - our own
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_a_worker_whose_looks_at_the_queues_fail_is_not_ready(
    scripted_office: ScriptedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted_office.worker()
    wait_until(lambda: not failing(worker, "readyz"), 30, "it is ready")

    def broken(_self: object) -> None:
        raise RuntimeError("no such pool")

    monkeypatch.setattr("queues.consumer.pool_views.PoolViews.refresh", broken)
    worker.look_again()
    wait_until(lambda: failing(worker, "readyz"), 30, "it says so")
    assert failing(worker, "readyz") == ["[-]claims failed: RuntimeError: no such pool"]
    monkeypatch.undo()
    wait_until(lambda: not failing(worker, "readyz"), 30, "it is ready again")


def test_a_worker_whose_threads_for_jobs_all_hang_is_not_live(
    scripted_office: ScriptedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "STUCK_SECONDS", 0.05)
    go = threading.Event()
    worker = scripted_office.worker(slots=20)
    hands = worker.dispatcher._quick  # noqa: SLF001 - the judged part
    look, threads = hands._work, hands._threads  # noqa: SLF001 - likewise

    def hang(job: JobContext) -> None:
        go.wait(30)
        look(job)

    monkeypatch.setattr(hands, "_work", hang)
    jobs = [scripted_office.submit("pass", pool="p0")]
    try:
        wait_until(lambda: _stuck(worker), 30, "one hangs")
        assert failing(worker, "livez") == [], "the others go on"
        jobs += [scripted_office.submit("pass", pool=f"p{number}") for number in range(1, len(threads))]
        (words,) = wait_until(lambda: failing(worker, "livez"), 30, "all hang")
        assert words.startswith(
            f"[-]handlers failed: none of {len(threads)} threads makes progress; of one, one step"
        )
        assert value(worker, "check", probe="livez", check="handlers") == 0
    finally:
        go.set()
    for job_id in jobs:
        scripted_office.wait(job_id)
    wait_until(lambda: not failing(worker, "livez"), 30, "it is live again")


def _stuck(worker: Worker) -> list[str]:
    return [words for beat in worker.dispatcher._quick._heartbeats if (words := beat.trouble())]  # noqa: SLF001 - the judged part


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)  # the one that is made here
def test_a_worker_whose_loop_has_died_is_not_live(
    scripted_office: ScriptedOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted_office.worker()
    wait_until(lambda: not failing(worker, "readyz"), 30, "it is ready")

    def die(_self: object) -> None:
        raise SystemExit  # no loop catches it, as it ends the whole process

    monkeypatch.setattr("queues.consumer.pool_views.PoolViews.refresh", die)
    worker.look_again()
    wait_until(lambda: failing(worker, "livez"), 30, "it says so")
    assert failing(worker, "livez") == ["[-]consumer failed: its thread has ended"]
