"""The value of a reference is in nothing that a run leaves behind, on this host and on a cluster."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from queues.session import Session, SessionSettings
from tests.acceptance.support import COMMAND_TIMEOUT_S, Shell
from tests.kubernetes_support import KubernetesSite
from tests.runner_kits import open_kit
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SECRET = "word-of-the-references-Q7tR2mP4"  # noqa: S105 - a secret of a test
TAIL = "tail-of-the-environment-Q7tR2mP4"
SMALL = {"driver": {"memory": "512m"}, "executor": {"instances": 1, "cores": 1, "memory": "512m"}}

# A row of the file has the secret: it is NULL only for a driver that knows the value. The table without the
# option shows it as data: in a preview, on standard output, and in an error of Spark.
SCRIPT = """\
CREATE TABLE known (a STRING) WITH ('connection' = 'files', 'path' = 'data/in.csv');
CREATE TABLE plain (a STRING) USING csv OPTIONS (path 'data/in.csv', header false);
CREATE TABLE shown USING print;
EXPLAIN EXTENDED SELECT * FROM known;
ASSERT (SELECT count(*) FROM known WHERE a IS NULL) = 1, 'the driver does not know the secret';
INSERT INTO shown SELECT 'it is ' || a FROM plain;
"""
FAILING = "SELECT raise_error('the server refuses ' || a) FROM plain WHERE a LIKE 'word%';\n"


def files(folder: Path) -> Iterator[tuple[str, str]]:
    for parent, _, names in os.walk(folder):  # which passes over folders that a worker removes meanwhile
        for path in (Path(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    yield str(path), path.read_bytes().decode("utf-8", "replace")


def nodes(shell: Shell) -> Iterator[tuple[str, str]]:
    with Session(SessionSettings(shell.environment["ZOOKEEPER_HOSTS"])) as session:
        waiting = [shell.environment["ORCHESTRATOR_ROOT"]]
        while waiting:
            path = waiting.pop()
            if (found := session.get(path)) is not None:
                yield path, found[0].decode("utf-8", "replace")
            waiting += [f"{path}/{name}" for name in session.children(path) or ()]


def kept_secret(site: KubernetesSite, shell: Shell) -> dict[str, str]:
    """Store a secret of Kubernetes, as an operator does; returns the source of its scope."""
    shell.environment["KUBECONFIG"] = str(site.kubeconfig)
    secret = {"metadata": {"name": "crm"}, "stringData": {"null": SECRET}}
    site.cluster.api.create(f"/api/v1/namespaces/{site.namespace}/secrets", secret)
    return {"kubernetes": "crm"}


def objects(site: KubernetesSite | None) -> Iterator[tuple[str, str]]:
    """What Kubernetes shows to all who may not read secrets."""
    for kind in ("pods", "configmaps", "events", "services") if site else ():
        assert site is not None
        found = site.cluster.api.text(f"/api/v1/namespaces/{site.namespace}/{kind}")
        assert kind != "pods" or "-driver" in found, "the pod of the driver is there"
        yield kind, found


def leaks_in(shown: dict[str, str]) -> list[tuple[str, str]]:
    """The texts with a secret."""
    return [
        (source, text[max(0, text.index(part) - 200) :][:300])
        for source, text in shown.items()
        for part in (SECRET, TAIL)
        if part in text
    ]


def said_of(shell: Shell, name: str) -> dict[str, str]:
    """What the commands say of a job."""
    commands = (("job", "show", name, "-o", "json"), ("job", "logs", name), ("job", "history", name))
    ended = {" ".join(command): shell.type(*command) for command in commands}
    return {command: done.stdout + done.stderr for command, done in ended.items()}


@pytest.mark.parametrize("kind", ["local", "standalone-cluster", "kubernetes"])
def test_the_value_of_a_reference_is_nowhere(
    request: pytest.FixtureRequest, shared_shell: Shell, tmp_path: Path, kind: str
) -> None:
    shell = shared_shell
    scope, events = tmp_path / "scope", tmp_path / "events"
    for folder in (scope, events, shell.directory / "data"):
        folder.mkdir()
    (scope / "null").write_text(f"{SECRET}\n")
    # Of a driver in cluster mode the nodes of the cluster decide the environment.
    value, known = SECRET, "${secret:files/null}"
    if kind == "local":
        value, known = f"{SECRET}-{TAIL}", f"{known}-${{env:CRM_TAIL}}"
        shell.environment |= {"CRM_TAIL": TAIL, "ORCHESTRATOR_DRIVERS__ENVIRONMENT": "CRM_TAIL"}
    shell.write("data/in.csv", f"x\n{value}\n")
    site: KubernetesSite | None = request.getfixturevalue("kubernetes_site") if kind == "kubernetes" else None
    where = {"folder": str(scope)} if site is None else kept_secret(site, shell)
    sources = {"environment": ["CRM_*"], "secrets": {"files": where}}
    shell.environment["ORCHESTRATOR_REFERENCES"] = json.dumps(sources)
    shell.environment["ORCHESTRATOR_RETENTION"] = "1h"
    hosts, root = (shell.environment[name] for name in ("ZOOKEEPER_HOSTS", "ORCHESTRATOR_ROOT"))
    shown: dict[str, str] = {}
    with open_kit(kind, request, hosts=hosts, root=f"{root}/kit", folder=tmp_path / "kit") as kit:
        target = kit.target
        logged = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
        conf = {**kit.conf, **{f"spark.eventLog.{name}": value for name, value in logged.items()}}
        spark = {"master": target.master, "deploy_mode": target.deploy_mode, "conf": conf, **SMALL}
        if target.options:
            spark[target.backend] = dict(target.options)
        # In executors of a cluster, data is data: their logs are not masked.
        jobs = {"good": SCRIPT} | ({"bad": SCRIPT + FAILING} if kind == "local" else {})
        for name, script in jobs.items():
            if name == "bad":  # Spark's event log has errors of tasks as they are: docs/connections.md
                spark["conf"] = kit.conf
            definition = {"name": name, "script": {"text": script}, "spark": spark, "retry": {"attempts": 1}}
            shell.write(f"{name}.yaml", yaml.safe_dump(definition))
        worker = shell.start("worker", "--slots", "1", "-vv")
        worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
        options = (f"null_value={known}", "header=false")
        assert shell.type("connection", "set", "files", "csv", *options).code == 0
        for name in jobs:
            ended = shell.type("job", "submit", f"{name}.yaml", "--id", name, "--wait", timeout=180)
            shown[f"submit {name}"] = ended.stdout + ended.stderr
            shown |= said_of(shell, name)
            assert ended.code == (0 if name == "good" else 1), "\n".join(shown.values())
        shown |= {f"ZooKeeper {path}": text for path, text in nodes(shell)}
        shown |= {**dict(objects(site)), **dict(files(shell.state_dir))}  # the archive removes files of runs
        for name in jobs:
            assert shell.type("queue", "requeue", name, "--delay", "0s").code == 0
        archive = shell.state_dir / "archive"
        wait_until(lambda: sum(text.count("\n") for _, text in files(archive)) >= len(jobs), 60, "archived")
        shown |= dict(files(shell.state_dir)) | dict(files(events)) | dict(files(tmp_path / "kit"))
    worker.terminate()
    worker.wait()
    shown |= {"worker": worker.stdout + worker.stderr}
    assert "it is ***" in shown["job logs good"]
    assert any("SparkListenerSQLExecutionStart" in text for text in shown.values())
    if kind == "local":
        assert "the server refuses ***" in shown["job show bad -o json"]
    assert leaks_in(shown) == []
