"""The steps in deploy/README.md fit the files beside it."""

import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
README = (DEPLOY / "README.md").read_text("utf-8")


def clients_of_compose() -> str:
    loaded = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    hosts: str = loaded["x-worker"]["environment"]["ORCHESTRATOR_ZOOKEEPER_HOSTS"]
    return hosts


def clients_of_kubernetes() -> str:
    worker = next(yaml.safe_load_all((DEPLOY / "kubernetes/worker.yaml").read_text("utf-8")))
    hosts: str = tomllib.loads(worker["data"]["config.toml"])["zookeeper_hosts"]
    return hosts


def clients_of_systemd() -> str:
    config = re.search(r"^```toml\n(zookeeper_hosts.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert config is not None
    hosts: str = tomllib.loads(config[1])["zookeeper_hosts"]
    return hosts


@pytest.mark.parametrize(
    ("section", "clients"),
    [
        ("## systemd", clients_of_systemd),
        ("## Compose", clients_of_compose),
        ("## Kubernetes", clients_of_kubernetes),
    ],
    ids=["systemd", "compose", "kubernetes"],
)
def test_the_certificate_of_the_steps_names_each_host_of_the_clients(
    section: str, clients: Callable[[], str], tmp_path: Path
) -> None:
    steps = README.partition(f"\n{section}\n")[2]
    command = next(line for line in steps.splitlines() if line.startswith("deploy/make-secrets.sh"))
    words = command.partition("#")[0].split()
    command = " ".join([str(DEPLOY / "make-secrets.sh"), str(tmp_path), *words[2:]])
    subprocess.run(["bash", "-c", command], check=True, capture_output=True)
    for address in clients().split(","):
        host, port = address.split(":")
        assert port == "2181"
        checked = subprocess.run(
            ["openssl", "x509", "-in", tmp_path / "ensemble.crt", "-noout", "-checkhost", host],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "does match" in checked.stdout, checked.stdout


@pytest.mark.parametrize("name", ["build.txt", "image.txt"])
def test_the_image_is_installed_as_the_steps_for_a_host_do(name: str) -> None:
    options = re.compile(rf"--require-hashes .*-r requirements/{re.escape(name)}")
    found = [options.findall(text) for text in (README, (DEPLOY / "Dockerfile").read_text("utf-8"))]
    assert len(found[0]) == 1
    assert found[0] == found[1]


def test_the_credentials_of_the_units_are_those_that_the_steps_make() -> None:
    made = {"ensemble.pem", "ensemble.crt", "zookeeper-password"}
    for name in ("orchestrator-zookeeper.service", "orchestrator-worker.service"):
        text = (DEPLOY / name).read_text("utf-8")
        loaded = re.findall(r"^#?LoadCredential=\S+:/etc/spark-job-orchestrator/(\S+)$", text, re.MULTILINE)
        assert loaded, name
        assert set(loaded) <= made, name


def test_the_health_check_of_elasticsearch_logs_in_without_the_password_on_a_command_line(
    tmp_path: Path,
) -> None:
    loaded = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    kind, command = loaded["services"]["elasticsearch"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    (tmp_path / "password").write_text("hunter2222\n", "utf-8")
    curl = tmp_path / "curl"  # what other users see of the real one, and what it reads
    curl.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\ncat >{tmp_path}/config\n', "utf-8")
    curl.chmod(0o700)
    command = command.replace("$$", "$").replace(
        "/run/secrets/elasticsearch-password", f"{tmp_path}/password"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", command], check=True, env=environment)
    arguments = (tmp_path / "arguments").read_text("utf-8")
    assert "hunter2222" not in arguments
    assert "--config -" in arguments
    assert (tmp_path / "config").read_text("utf-8") == 'user = "elastic:hunter2222"'
