"""deploy/compose.yaml: valid by the specification, closed to other hosts, and with settings that work."""

import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.ensemble import FOLDER
from orchestrator.config.settings import load_settings
from queues import own_id, parse_members
from tests.servers.compose import InvalidCompose, load_compose

FILE = Path(__file__).parents[2] / "deploy/compose.yaml"

pytestmark = pytest.mark.timeout(1000)


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load_compose(FILE)["services"]
    return found


def test_the_file_is_valid_and_a_misspelt_key_is_not(tmp_path: Path) -> None:
    assert set(load_compose(FILE)["services"]) == {
        *(f"zk{number}" for number in (1, 2, 3)),
        *("worker-1", "worker-2", "elasticsearch"),
    }
    misspelt = tmp_path / "compose.yaml"
    misspelt.write_text(FILE.read_text("utf-8").replace("cap_drop", "cap_drops"), "utf-8")
    with pytest.raises(InvalidCompose, match="cap_drops"):
        load_compose(misspelt)


def test_no_service_is_open_or_has_rights_that_it_does_not_need(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        assert "ports" not in service, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert name.startswith("worker") or service["healthcheck"]["test"], name  # workers: the image's
        assert service["mem_limit"], name
        assert len(service["volumes"]) == 1, name
        assert not {"privileged", "user", "network_mode", "pid"} & set(service), name
        networks = {"internal", "outside"} if name.startswith("worker") else {"internal"}
        assert set(service["networks"]) == networks, name
        assert ("ensemble.pem" in {secret["source"] for secret in service["secrets"]}) == name.startswith(
            "zk"
        )


def test_each_server_finds_itself_in_the_ensemble(services: dict[str, dict[str, Any]]) -> None:
    for number in (1, 2, 3):
        service = services[f"zk{number}"]
        options = dict(option.removeprefix("--").split("=") for option in service["command"][1:])
        assert service["command"][0] == "zookeeper"
        assert own_id(parse_members(options["ensemble"]), service["hostname"]) == number
        secrets = {secret["target"] for secret in service["secrets"]}
        assert {options["certificate"], options["password-file"]} == secrets
        assert service["healthcheck"]["test"][-1].endswith(f"/state/{FOLDER}/server.json")


def test_the_settings_of_workers_are_valid(
    services: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = services["worker-1"]
    assert {secret["target"] for secret in worker["secrets"]} == {
        value for value in worker["environment"].values() if value.startswith("/run/secrets/")
    }
    for name, value in worker["environment"].items():
        monkeypatch.setenv(name, re.sub("^/run/secrets/", f"{tmp_path}/", value))
    for secret in worker["secrets"]:
        (tmp_path / Path(secret["target"]).name).write_text("x", "utf-8")
    settings = load_settings()
    assert settings.zookeeper_hosts == "zk1:2181,zk2:2181,zk3:2181"
    assert settings.zookeeper_login is not None
    assert settings.zookeeper_login.scheme == "digest"
    assert settings.logs.urls == ["http://elasticsearch:9200"]
