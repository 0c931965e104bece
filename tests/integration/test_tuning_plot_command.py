"""`orchestrator tuning plot` on a history in ZooKeeper."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.app import run_app
from orchestrator.cli.exits import Exit
from orchestrator.history.history import History
from tests.operators_support import Stage
from tests.unit.test_tuning_plot_data import run

Show = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """Run the command on three runs; returns its exit code and output."""
    settings = stage.deployment.settings
    monkeypatch.setenv("ZOOKEEPER_HOSTS", settings.zookeeper_hosts)
    monkeypatch.setenv("ORCHESTRATOR_ROOT", settings.root)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(settings.state_dir))
    history = History(stage.session, stage.nodes)
    for each in (run(1), run(2, "2048m"), run(3, "2048m", state="failed", short_of="executor.heap")):
        history.record("flights", each)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run_app(["tuning", "plot", *arguments])
        return code, *capsys.readouterr()

    return call


def test_the_plot_is_readable_in_a_pipe(show: Show) -> None:
    code, out, _ = show("flights", "--resource", "executor.memory")
    assert code == 0
    assert out.startswith("flights: executor.memory of 3 runs\n")
    assert "v lowered   ! out of memory" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_first_measured_resource_is_shown_without_a_choice(show: Show) -> None:
    code, out, _ = show("flights")
    assert (code, out.startswith("flights: executor.memory of 3 runs")) == (0, True)


def test_the_svg_is_written_instead(show: Show, tmp_path: Path) -> None:
    file = tmp_path / "flights.svg"
    assert show("flights", "--svg", str(file))[:2] == (0, "")
    assert "executor.memory in MiB" in file.read_text("utf-8")


def test_the_numbers_are_printed_as_json(show: Show) -> None:
    _, out, _ = show("flights", "-o", "json")
    found = json.loads(out)
    assert [each["allocated"] for each in found["runs"]] == [4096, 2048, 2048]
    assert found["runs"][2]["marks"] == ["out of memory"]


def test_a_resource_that_no_run_had_is_refused_with_those_that_can_be_shown(show: Show) -> None:
    code, out, err = show("flights", "--resource", "executor.cores")
    assert (code, out) == (Exit.USAGE, "")
    assert "choose one of executor.memory" in err


def test_an_unknown_name_is_not_found(show: Show) -> None:
    assert show("nobody")[0] == Exit.NOT_FOUND
