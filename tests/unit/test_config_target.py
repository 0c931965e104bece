from pathlib import Path

import pytest

from orchestrator.cli.app import run_app
from orchestrator.cli.config.commands import Target
from orchestrator.model.errors import OrchestratorError
from queues.model.errors import QueueError


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("retentoin", "did you mean retention?"),
        ("pool.default.wieght", "did you mean pool.default.weight?"),
        ("pol.default.weight", "did you mean pool.POOL.weight?"),
        ("pool.default", "there is no limit 'pool.default'"),
        ("pool..cap", "pool '' is not valid"),
        ("pool.a.b.cap", "pool 'a.b' is not valid"),
        ("xyzzy", "there are retention, retention_count"),
        ("", "there is no limit ''"),
        ("slots", "slots is a setting of each process: set ORCHESTRATOR_SLOTS"),
        ("zookeeper_hosts", "set ORCHESTRATOR_ZOOKEEPER_HOSTS, or zookeeper_hosts in "),
        ("zookeeper_login.user", "zookeeper_login is a setting of each process"),
    ],
)
def test_a_name_that_is_none_is_refused_with_what_to_write(name: str, words: str) -> None:
    with pytest.raises((OrchestratorError, QueueError)) as refused:
        Target.parse(name)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("retention", "30", "'30' is not a duration"),
        ("retention", "1s", "field 'retention'"),
        ("handler_errors", "many", "field 'handler_errors'"),
        ("handler_errors", "true", "field 'handler_errors'"),
        ("cpu_pressure_limit", "nan", "field 'cpu_pressure_limit'"),
        ("memory_guard", "perhaps", "field 'memory_guard'"),
        ("pool.default.weight", "0", "a whole number from 1 to 1,000"),
        ("pool.default.weight", "1.5", "a whole number from 1 to 1,000"),
        ("pool.default.cap", "many", "cap = 'many' is not valid"),
        ("pool.default.paused", "perhaps", "it must be true or false"),
        ("pool.default.low_share", "2", "a number from 0 to 1"),
        ("pool.default.low_share", "nan", "a number from 0 to 1"),
        ("pool.default.high_water", "80", "a number from 0 to 1; 0 = no limit"),
        ("pool.default.high_water", "-0.1", "a number from 0 to 1; 0 = no limit"),
        ("pool.default.high_water", "nan", "a number from 0 to 1; 0 = no limit"),
        ("pool.default.high_water", "80%", "high_water = '80%' is not valid"),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_one_sentence(name: str, value: str, words: str) -> None:
    with pytest.raises((OrchestratorError, QueueError)) as refused:
        Target.parse(name).value(value)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention", "3d", "3d"),  # the model reads it
        ("pool.team.weight", "3", 3),
        ("pool.team.low.cap", "3", 3),
        ("pool.team.paused", "on", True),
        ("pool.team.paused", "false", False),
        ("pool.team.low_share", "1", 1.0),
        ("pool.team.high_water", "0.8", 0.8),
    ],
)
def test_a_value_is_read_as_what_its_limit_is(name: str, text: str, value: object) -> None:
    found = Target.parse(name).value(text)
    assert (found, type(found)) == (value, type(value))


def test_a_pool_may_have_a_low_lane_with_limits_of_its_own() -> None:
    target = Target.parse("pool.team.low.cap")
    assert (target.pool, target.limit) == ("team.low", "cap")


def test_durations_are_shown_alike_in_every_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.toml").write_text('[event_logs."*"]\nurl = "file:///logs"\nretention = "36h"\n')
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(tmp_path / "settings.toml"))
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("ZOOKEEPER_HOSTS", raising=False)
    assert run_app(["config", "show", "-q"]) == 0
    values = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines()[2:])
    shown = {name: values[name] for name in ("connect_timeout", "warm.age", "event_logs.*.retention")}
    assert shown == {"connect_timeout": "10s", "warm.age": "4h", "event_logs.*.retention": "36h"}
