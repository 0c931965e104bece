"""A further job of a name that runs: the rule that applies, and where it is said."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.admission import same_name
from orchestrator.admission.same_name import rule_applied
from orchestrator.cli.app import run_app
from orchestrator.client.jobs import Jobs
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason
from queues.model.errors import Unreachable
from queues.model.operations import Create, Set
from queues.store.commit import commit
from tests.integration.test_waits import occupied, waits
from tests.jobs_support import ScriptedDeployment
from tests.operators_support import Stage

NAME = "invoices"
Type = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(
    scripted_deployment: ScriptedDeployment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Type:
    """The command line at the root of the deployment: its exit code, stdout and stderr."""
    settings = scripted_deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run_app(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def definition(folder: Path, concurrency: int) -> str:
    path = folder / f"invoices-{concurrency}.json"
    path.write_text(json.dumps({"name": NAME, "python": {"text": "pass"}, "concurrency": concurrency}))
    return str(path)


def submit(typed: Type, folder: Path, job_id: str, concurrency: int, *options: str) -> str:
    """Submit a job; returns what stderr says."""
    code, out, error = typed("job", "submit", definition(folder, concurrency), "--id", job_id, *options)
    assert (code, out) == (0, f"{job_id}\n")
    return error


# ---------------------------------------------------------------------- concurrency
def test_at_its_concurrency_a_second_job_waits_and_each_command_names_the_rule_and_the_first(
    typed: Type, scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    scripted_deployment.worker()
    first = occupied(scripted_deployment, tmp_path / "go", name=NAME, concurrency=1)
    said = submit(typed, tmp_path, "second", 1)
    assert said == f"second waits: concurrency is 1 for jobs named invoices, and {first} runs\n"

    waiting = waits(scripted_deployment, "second", Reason.CONCURRENCY)
    assert waiting.message.endswith(
        f": concurrency is 1 for jobs named invoices, and 1 runs; running now: {first}"
    )
    shown = typed("job", "show", "second")[1]
    assert "at once:  concurrency is 1 for jobs named invoices\n" in shown
    assert f"running now: {first}" in shown
    (tmp_path / "go").touch()
    assert scripted_deployment.wait("second").job.status is Status.SUCCESS
    assert submit(typed, tmp_path, "third", 1) == ""


def test_below_its_concurrency_a_second_job_starts_and_the_rule_is_said(
    typed: Type, scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    scripted_deployment.worker()
    first = occupied(scripted_deployment, tmp_path / "go", name=NAME, concurrency=2)
    said = submit(typed, tmp_path, "second", 2)
    assert said == f"second may run beside {first}: concurrency is 2 for jobs named invoices\n"
    assert scripted_deployment.wait("second").job.status is Status.SUCCESS
    assert scripted_deployment.client.get(first).status is Status.RUNNING
    (tmp_path / "go").touch()


def test_without_concurrency_a_second_job_starts_and_that_is_said(
    typed: Type, scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    scripted_deployment.worker(slots=3)
    occupied(scripted_deployment, tmp_path / "go", name="others")
    first = occupied(scripted_deployment, tmp_path / "go", name=NAME)
    said = submit(typed, tmp_path, "second", 0)
    assert said == (
        f"{first} (also named invoices) has not ended: second may run beside it; "
        "`concurrency: 1` in the definition runs one at a time\n"
    )
    assert scripted_deployment.wait("second").job.status is Status.SUCCESS
    assert "at once:" not in typed("job", "show", "second")[1]
    (tmp_path / "go").touch()


@pytest.mark.parametrize("concurrency", [0, 1])
def test_nothing_is_said_without_another_job_of_the_name_or_if_quiet(
    typed: Type, scripted_deployment: ScriptedDeployment, tmp_path: Path, concurrency: int
) -> None:
    assert submit(typed, tmp_path, "alone", concurrency) == ""
    scripted_deployment.worker(slots=1)
    assert scripted_deployment.wait("alone").job.status is Status.SUCCESS
    occupied(scripted_deployment, tmp_path / "go", name=NAME, concurrency=concurrency)
    assert submit(typed, tmp_path, "second", concurrency, "-q") == ""
    (tmp_path / "go").touch()


def test_a_job_is_enqueued_though_the_rule_cannot_be_read(
    typed: Type, scripted_deployment: ScriptedDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise Unreachable("no answer", 1.0)

    monkeypatch.setattr(Jobs, "rule_applied", fails)
    assert submit(typed, tmp_path, "second", 1) == ""
    assert scripted_deployment.client.get("second").status is Status.ACCEPT


# ---------------------------------------------------------------------- what the sentence rests on
def rule(stage: Stage, concurrency: int, job_id: str = "own", pool: str = "default") -> str:
    return rule_applied(
        stage.session, stage.queues.layout, job_id=job_id, name=NAME, pool=pool, concurrency=concurrency
    )


def test_many_jobs_are_counted_and_the_job_itself_is_not_among_them(stage: Stage) -> None:
    folder = stage.nodes.name_slots(NAME)
    stage.session.ensure_path(folder)
    for number, owner in enumerate(["e", "d", "own", "b", "a"]):
        stage.make(f"{folder}/{number}", {"id": owner})
    assert rule(stage, 4) == "own waits: concurrency is 4 for jobs named invoices, and a, b, d and 1 more run"
    assert rule(stage, 5).startswith("own may run beside a, b, d and 1 more: ")


def test_more_jobs_than_are_read_are_counted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_name, "_MOST_READ", 4)
    folder = stage.nodes.name_slots(NAME)
    stage.session.ensure_path(folder)
    for number in range(6):
        stage.make(f"{folder}/{number}", {"id": f"job-{number}"})
    named = "job-0, job-1, job-2 and 3 more"
    assert rule(stage, 6) == f"own waits: concurrency is 6 for jobs named invoices, and {named} run"
    assert rule(stage, 7) == f"own may run beside {named}: concurrency is 7 for jobs named invoices"


def test_slots_of_operators_and_damaged_ones_are_no_jobs(stage: Stage) -> None:
    folder = stage.nodes.name_slots(NAME)
    stage.session.ensure_path(folder)
    stage.make(f"{folder}/0", {"operator": "desk-1"})
    commit(stage.session, [Create(f"{folder}/1", b"\xff")])
    assert rule(stage, 1) == ""


def test_running_jobs_of_the_pool_and_its_low_lane_are_found_beside_damaged_ones(stage: Stage) -> None:
    for pool in ("team", "team.low"):
        stage.queues.ensure_pool(pool)
    stage.put(Queue.RUNNING, job_id="a", pool="team", name=NAME)
    stage.put(Queue.RUNNING, job_id="b", pool="team.low", name=NAME)
    stage.put(Queue.RUNNING, job_id="c", pool="team", name="another")
    stage.put(Queue.RUNNING, job_id="d", name=NAME)
    stage.put(Queue.RUNNING, job_id="damaged", pool="team", name=NAME)
    commit(stage.session, [Set(stage.queues.layout.record("damaged"), b"[", -1)])
    commit(stage.session, [Create(f"{stage.queues.layout.queue(Queue.RUNNING, 'team')}/foreign", b"")])
    assert rule(stage, 0, pool="team").startswith("a, b (also named invoices) have not ended: own may ")
    assert rule(stage, 0, pool="team.low").startswith("a, b (also named invoices) ")
    assert rule(stage, 0, pool="none") == ""
