"""`orchestrator tuning`: what past runs have needed, what the next one gets, and what operators set."""

import json
from typing import Any

import pytest

from orchestrator.history.history import History
from orchestrator.tuning.record import StoredDecision
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Ended, Shell
from tests.operators_support import Stage
from tests.tuning_support import entry, tuned_job

JOB = tuned_job("pass")
REASON = "mode: Input should be 'off', 'suggest' or 'apply'"
CHOICES = {
    "driver.memory": {
        "before": "4096m",
        "after": "2048m",
        "asked": "4096m",
        "rule": "shrink",
        "why": "it falls",
    },
    "driver.overhead": {
        "before": "410m",
        "after": "410m",
        "asked": "410m",
        "rule": "dead_band",
        "why": "it stays",
    },
}


@pytest.fixture
def operator(stage: Stage, shared_shell: Shell) -> Shell:
    """A shell at the root of the stage, where `flights` has two runs and a decision, and `trains` one run."""
    history = History(stage.session, stage.nodes)
    for number in (1, 2):
        history.record("flights", entry(JOB, number))
    history.record("trains", entry(JOB, 3))
    key = {"code": entry(JOB)["code"], "parameters": "-"}
    mode = {"mode": "suggest", "mode_from": "default"}
    said = {"at": "2026-01-01T00:03:00.000Z", "job": "earlier", **mode, **key, "runs": 2, "choices": CHOICES}
    stage.client.tunings.add("flights", StoredDecision.model_validate(said))
    return shared_shell


def listed(operator: Shell) -> dict[str, Any]:
    return {row["name"]: row for row in operator.type("tuning", "list", "-o", "json").json()}


def settings_of(operator: Shell) -> dict[str, Any]:
    (shown,) = operator.type("tuning", "show", "flights", "-o", "json").json()
    return {"mode": shown["mode"], "pins": shown["pins"], "caps": shown["caps"]}


# ---------------------------------------------------------------------- views
def test_the_names_with_decisions_are_listed_with_what_the_next_run_gets(operator: Shell) -> None:
    assert listed(operator) == {
        "flights": {
            "name": "flights",
            "mode": None,
            "runs": 2,
            "when": "2026-01-01T00:03:00.000Z",
            "changes": {"driver.memory": "2048m"},
            "saved": 0.4545,
            "error": None,
        }
    }
    shown = operator.type("tuning", "list")
    assert shown.code == 0
    for cell in ("flights", "suggest (default)", "driver.memory=2048m", "45%"):
        assert cell in shown.stdout
    assert "trains" not in shown.stdout, "nothing was decided about it"


def test_each_resource_is_shown_with_its_reason(operator: Shell) -> None:
    shown = operator.type("tuning", "show", "flights")
    assert shown.code == 0
    for cell in (
        "flights: mode suggest (default)",
        "the run after earlier",
        "2 past runs",
        "it falls",
        "it stays",
    ):
        assert cell in shown.stdout
    (document,) = operator.type("tuning", "show", "flights", "-o", "json").json()
    assert document["decisions"][0]["choices"] == CHOICES
    (line,) = operator.type("tuning", "show", "flights", "-o", "jsonl").stdout.splitlines()
    assert json.loads(line) == document
    operator.type("tuning", "mode", "flights", "off")
    assert "flights: mode off (operator)" in operator.type("tuning", "show", "flights").stdout
    empty = operator.type("tuning", "show", "trains")
    assert "trains: mode of its definition or pool; its next decision shows it" in empty.stdout
    assert (empty.code, "no decision yet" in empty.stdout) == (0, True)


def test_the_report_adds_up_what_the_last_decisions_save(operator: Shell) -> None:
    (row,) = operator.type("tuning", "report", "-o", "json").json()
    hours = 2 * 60 / 3600
    assert row["name"] == "flights"
    assert (row["runs"], row["short"]) == (2, 0)
    assert row["asked_gib_hours"] == pytest.approx(hours * 4506 / 1024, rel=1e-3)
    assert row["next_gib_hours"] == pytest.approx(hours * 2458 / 1024, rel=1e-3)
    table = operator.type("tuning", "report")
    assert table.code == 0
    assert "GiB h" in table.stdout
    assert table.stdout.splitlines()[-1].startswith("all ")


def test_past_runs_are_replayed_with_other_gains_and_another_start(operator: Shell) -> None:
    rows = operator.type("tuning", "simulate", "flights", "-o", "json").json()
    assert [row["had"] for row in rows] == [4096, 4096]
    assert rows[1]["given"] < rows[0]["given"] == 4096
    slow = operator.type("tuning", "simulate", "flights", "--gain", "idle_fall=0.01", "-o", "json").json()
    assert rows[1]["given"] < slow[1]["given"] < 4096
    small = operator.type("tuning", "simulate", "flights", "--start", "512m")
    assert small.code == 0
    assert "times out of memory" in small.stderr


def test_one_damaged_name_does_not_hide_the_others(operator: Shell, stage: Stage) -> None:
    stage.make(stage.nodes.tuning("trains"), {"mode": "always"})
    stage.make(stage.nodes.tuning("no name"), {})
    stage.make(stage.nodes.history("ships"), {"runs": 7})
    stage.make(stage.nodes.tuning("ships"), {"mode": "off"})
    found = listed(operator)
    assert [*found] == ["flights", "ships", "trains"]
    assert found["trains"]["error"] == REASON
    assert found["ships"]["mode"] == "off"
    table = operator.type("tuning", "list")
    assert table.code == 0
    assert f"cannot be read: {REASON}" in table.stdout
    report = operator.type("tuning", "report", "-o", "json")
    assert [row["name"] for row in report.json()] == ["flights"]
    assert f"trains is left out: {REASON}" in report.stderr
    assert_error(operator.type("tuning", "show", "trains"), 1, "tuning reset trains --all")
    assert_error(operator.type("tuning", "simulate", "ships"), 1, "the history of 'ships' cannot be read")
    assert operator.type("tuning", "reset", "trains", "--all", "--yes").code == 0
    assert operator.type("tuning", "show", "trains").code == 0


# ---------------------------------------------------------------------- acts
def test_what_an_operator_sets_is_confirmed_in_words_and_removed_again(operator: Shell) -> None:
    pinned = operator.type("tuning", "pin", "flights", "driver.memory=2g", "executor.instances=3")
    assert (pinned.code, pinned.stdout) == (0, "")
    assert "flights: pinned: driver.memory=2048m, executor.instances=3" in pinned.stderr
    assert operator.type("tuning", "cap", "flights", "driver.memory=8g").code == 0
    assert operator.type("tuning", "mode", "flights", "apply").code == 0
    assert settings_of(operator) == {
        "mode": "apply",
        "pins": {"driver.memory": 2048, "executor.instances": 3},
        "caps": {"driver.memory": 8192},
    }
    shown = operator.type("tuning", "show", "flights").stdout
    for words in (
        "flights: mode apply",
        "pinned: driver.memory=2048m",
        "capped: driver.memory=8192m",
        "changed by ip",
    ):
        assert words in shown
    removed = operator.type(
        "tuning", "pin", "flights", "--remove", "driver.memory", "--remove", "executor.instances"
    )
    assert "flights: pinned: nothing" in removed.stderr
    assert operator.type("tuning", "mode", "flights", "definition", "-q").stderr == ""
    assert settings_of(operator) == {"mode": None, "pins": {}, "caps": {"driver.memory": 8192}}


def test_a_reset_asks_first_and_forgets_what_was_known(operator: Shell) -> None:
    operator.type("tuning", "cap", "flights", "driver.memory=8g")
    refused = operator.type("tuning", "reset", "flights")
    assert refused.code == 2
    assert len(operator.type("tuning", "show", "flights", "-o", "json").json()[0]["decisions"]) == 1
    assert "flights begins anew" in operator.type("tuning", "reset", "flights", "--yes").stderr
    (document,) = operator.type("tuning", "show", "flights", "-o", "json").json()
    assert (document["forgotten"], document["decisions"]) == ("earlier-2", [])
    assert document["caps"] == {"driver.memory": 8192}
    assert operator.type("tuning", "reset", "flights", "--all", "-y").code == 0
    assert settings_of(operator)["caps"] == {}


BAD = {
    "pin flights driver.soul=2g": "'driver.soul' is no resource that is tuned: use one of driver.memory, ",
    "pin flights driver.memory=0": "write at least 512m, for example 2g",
    "pin flights driver.memory=-1g": "write at least 512m",
    "cap flights driver.memory=2q": "driver.memory=2q is not possible",
    "cap flights executor.instances=0": "write at least 1, for example 4",
    "cap flights driver.memory": "'driver.memory' is not RESOURCE=AMOUNT, for example executor.memory=2g",
    "cap flights driver.memory=2g driver.memory=3g": "driver.memory is given twice",
    "pin flights": "nothing to change: give RESOURCE=AMOUNT, or --remove RESOURCE",
    "pin flights --remove driver.memory": "driver.memory is not pinned",
    "cap flights --remove driver.soul": "'driver.soul' is no resource that is tuned",
    "pin flights driver.cores=9": "driver.cores would be pinned to 9 and capped at 8",
    "mode flights always": "always",
    "show flights --decisions 0": "greater than or equal to 1",
    "simulate flights --start 2q": "--start 2q: write an amount such as 2g",
    "simulate flights --resource executor.cores": "no run of flights has measured executor.cores",
    "simulate flights --resource soul": "soul",
    "simulate flights --gain spread": "'spread' is not NAME=VALUE",
    "simulate flights --gain spread=nan": "spread",
    "simulate flights --gain sprad=4": "did you mean",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_refused_with_a_sentence_and_changes_nothing(
    operator: Shell, stage: Stage, line: str
) -> None:
    stage.client.tunings.cap("flights", {"driver.cores": "8"})
    before = stage.client.tunings.read("flights")
    ended = operator.type("tuning", *line.split())
    assert (ended.code, ended.stdout) == (2, "")
    assert BAD[line] in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
    assert stage.client.tunings.read("flights") == before


@pytest.mark.parametrize(
    "line",
    [
        "show",
        "simulate",
        "mode {} off",
        "pin {} driver.memory=2g",
        "cap {} driver.memory=2g",
        "reset {} --yes",
    ],
)
def test_an_unknown_name_is_not_found(operator: Shell, line: str) -> None:
    for name in ("nobody", "no name", "../config") if line != "simulate" else ("nobody",):
        words = [
            name if word == "{}" else word for word in (line if "{}" in line else f"{line} {{}}").split()
        ]
        ended: Ended = operator.type("tuning", *words)
        assert (ended.code, ended.stdout) == (4, ""), ended.stderr
        assert f"no run of a job named {name!r} is known" in ended.stderr
