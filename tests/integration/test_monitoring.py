"""Rules, dashboard and documents name the metrics that a worker serves."""

import json
import re
import urllib.request
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.main import get_command

from orchestrator.cli.app import app
from orchestrator.config.listening import Listening
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.metrics.server import serving
from tests.jobs_support import ScriptedDeployment
from tests.promql import Served, labels_asked
from tests.waiting import wait_until

_PROJECT = Path(__file__).parents[2]
MONITORING = _PROJECT / "deploy" / "monitoring"
DOCUMENT = _PROJECT / "docs" / "metrics.md"
NOBODY = "http://127.0.0.1:9"  # the target of logs: records wait


@pytest.fixture
def text(
    scripted_deployment: ScriptedDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The metrics of a leading worker after its first job."""
    monkeypatch.setattr("orchestrator.leader.queues._LOOK_SECONDS", 0.1)
    close = Shipper.close
    monkeypatch.setattr(
        Shipper, "close", lambda shipper: close(shipper, 0.1)
    )  # no server is there to wait for
    with LogPipeline(LogSettings(url=NOBODY), tmp_path / "logs", "orchestrator") as logs:
        worker = scripted_deployment.worker(logs=logs)
        scripted_deployment.wait(scripted_deployment.submit("pass"))
        finished = {"queue": "finish", "pool": "default"}
        wait_until(
            lambda: worker.metrics.registry.get_sample_value("orchestrator_queue_depth", finished),
            30,
            "it is counted",
        )
        with (
            serving(Listening(address="127.0.0.1:0"), worker.metrics.registry, worker.probes) as url,
            urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer,  # noqa: S310 - our own
        ):
            yield answer.read().decode()


@pytest.fixture
def served(text: str) -> Served:
    samples: dict[str, dict[str, set[str]]] = {"up": {}}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = samples.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return Served(samples)


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((MONITORING / "alerts.yml").read_text("utf-8"))
    return list(chain.from_iterable(group["rules"] for group in document["groups"]))


def panels() -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
    found: list[dict[str, Any]] = document["panels"]
    return found


def test_each_rule_asks_for_what_is_served_and_says_what_to_do(served: Served) -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) > 10
    for rule in found:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
        asked = labels_asked(rule["expr"], served)
        words = rule["annotations"]
        assert set(words) == {"summary", "action"}
        used = {*re.findall(r"\$labels\.(\w+)", " ".join(words.values()))}
        assert used <= asked, f"{rule['alert']}: {used} of {asked}"


def test_each_command_in_a_rule_is_one() -> None:
    commands = re.findall(r"`orchestrator ([^`]+)`", (MONITORING / "alerts.yml").read_text("utf-8"))
    assert len(commands) > 5
    for line in commands:
        command: Any = get_command(app)
        words = line.split()
        while words and hasattr(command, "get_command"):
            command = command.get_command(None, words.pop(0))
        options = {option for each in command.params for option in each.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_each_panel_asks_for_what_is_served(served: Served) -> None:
    found = panels()
    assert len({panel["title"] for panel in found}) == len(found) > 10
    assert len({panel["id"] for panel in found}) == len(found)
    for panel in found:
        for target in panel["targets"]:
            asked = labels_asked(target["expr"], served)
            shown = {*re.findall(r"{{\s*(\w+)\s*}}", target.get("legendFormat", ""))}
            assert shown <= asked, f"{panel['title']}: {shown} of {asked}"


def test_the_document_has_all_metrics_and_no_others(text: str) -> None:
    documented = set(
        re.findall(r"^\| `orchestrator_([a-z_]+)` \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    )
    assert documented == set(_families(text))


def _families(text: str) -> Iterable[str]:
    for family in text_string_to_metric_families(text):
        if family.name.startswith("orchestrator_") and not family.name.endswith("_created"):
            name = family.name.removeprefix("orchestrator_")
            yield f"{name}_total" if family.type == "counter" else name
