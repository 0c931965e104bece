"""`job history`: the resources of the last runs of a name."""

import json

import pytest

from orchestrator.cli.exits import Exit
from orchestrator.history.history import History
from tests.acceptance.support import Shell
from tests.operators_support import Stage

TIMES = {"started": "2026-01-01T00:00:00.000Z", "ended": "2026-01-01T00:01:30.000Z", "seconds": 90.0}
METRICS = {
    "input_bytes": 3 << 20,
    "gc_share": 0.0253,
    "skew": {"ratio": 1.5},
    "driver": {"heap_peak_bytes": 2 << 30, "rss_peak_bytes": 3 << 30},
    "executors": {"heap_peak_bytes": 1 << 30},
}


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    history = History(stage.session, stage.nodes)
    failed = {"run": "a-1", "job": "a", "attempt": 1, "state": "failed", "class": "memory", **TIMES}
    history.record("flights", {**failed, "metrics": METRICS})
    history.record("flights", {"run": "b-1", "job": "b", "state": "succeeded", "class": None, "ended": "9"})
    return shared_shell


def test_the_last_runs_of_a_name_are_shown_as_a_table_and_as_json(operator: Shell) -> None:
    shown = operator.type("job", "history", "flights")
    assert shown.code == 0, shown.stderr
    assert shown.stdout.index("failed (memory)") < shown.stdout.index("succeeded")
    for cell in ("1 min 30 s", "3.0 MiB", "2.0 GiB", "3.0 GiB", "2.5%", "1.5"):
        assert cell in shown.stdout
    last = operator.type("job", "history", "flights", "--limit", "1", "-o", "json")
    assert [each["run"] for each in json.loads(last.stdout)] == ["b-1"]
    lines = operator.type("job", "history", "flights", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a-1", "b-1"]
    assert json.loads(lines[0])["metrics"] == METRICS


def test_a_name_without_runs_is_not_found(operator: Shell) -> None:
    ended = operator.type("job", "history", "nobody")
    assert (ended.code, ended.stdout) == (Exit.NOT_FOUND, "")
    assert "no run of a job named 'nobody' is known" in ended.stderr
