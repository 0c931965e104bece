"""The callback of a real run on a cluster."""

import json
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.receiver import receiver
from tests.servers.standalone import SMALL_APPLICATION, Standalone

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drawn("jobs on clusters"),
    pytest.mark.standalone,
    pytest.mark.timeout(600),
]

SCRIPT = """\
CREATE TABLE flights (carrier STRING, delay INT) USING csv OPTIONS (path 'flights', header 'true');
INSERT INTO flights SELECT * FROM VALUES ('AA', 3), ('UA', 12) AS v(carrier, delay);
"""
DOCUMENT = Path(__file__).parents[2] / "docs" / "callbacks.md"


def test_a_callback_has_every_fact_of_its_run(standalone: Standalone, shared_shell: Shell) -> None:
    settings = shared_shell.directory / "config.toml"
    events = {"url": f"file://{shared_shell.directory}/events", "history_server": "http://history:18080"}
    settings.write_text(f'event_logs = {{ "*" = {_inline(events)} }}', "utf-8")
    worker = shared_shell.start("worker", "--slots", "2", ORCHESTRATOR_CONFIG=str(settings))
    worker.wait_for_words("2 slots", COMMAND_TIMEOUT_S)
    spark = {"master": standalone.url, "standalone": {"ui": standalone.ui}, "conf": SMALL_APPLICATION}
    with receiver() as there:
        definition = {
            "name": "delays",
            "script": {"text": SCRIPT},
            "spark": spark,
            "labels": {"team": "data", "fire_time": "2026-11-23T04:00:00Z"},
            "callback": {"url": there.url, "on": ["running", "end"]},
        }
        (shared_shell.directory / "delays.yaml").write_text(yaml.safe_dump(definition), "utf-8")
        submitted = shared_shell.type("job", "submit", "delays.yaml")
        assert submitted.code == 0, submitted.stderr
        there.wait_requests(2, 2 * SPARK_TIMEOUT_S)
    running, end = (each.body for each in there.requests)
    assert [running["event"], end["event"]] == ["running", "end"]
    assert (end["status"], end["previous_status"]) == ("SUCCESS", "RUNNING")
    assert {name for name, value in end.items() if value is None} == {"warning", "error"}
    assert running["ui"] == end["ui"] == f"{standalone.ui}/app/?appId={end['application_id']}"
    assert end["history"] == f"http://history:18080/history/{end['application_id']}"
    with urlopen(end["ui"]) as page:  # noqa: S310 - of a master on loopback
        assert end["application_id"] in page.read().decode()
    assert end["times"]["started"] < end["times"]["ended"]
    assert end["monitor"]["polls"] > 0
    (table,) = end["written"]["tables"]
    assert (end["written"]["rows"], table["target"], table["rows"]) == (2, "flights", 2)
    assert end["written"]["bytes"] > 0
    example = json.loads(DOCUMENT.read_text("utf-8").partition("```json\n")[2].partition("```")[0])
    assert _shape(example) == _shape(end)


def _inline(values: dict[str, str]) -> str:
    """A table of TOML on one line."""
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items()) + " }"


def _shape(value: object) -> object:
    """The names of all fields, and the type of each value."""
    match value:
        case dict():
            return {name: _shape(each) for name, each in value.items()}
        case list():
            return [_shape(each) for each in value[:1]]
        case int() | float():
            return "number"
        case _:
            return type(value).__name__
