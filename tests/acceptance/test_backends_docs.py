"""The definitions of docs/backends.md run unchanged, except for addresses and sizes."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, Shell
from tests.runner_kits import open_kit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DOCS = Path(__file__).parents[2] / "docs" / "backends.md"
SCRIPT = """
CREATE TABLE numbers (n BIGINT) WITH ('connector'='print');
INSERT INTO numbers SELECT count(*) FROM range(1000);
"""
FOUND_BY = {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "KUBECONFIG", "PYSPARK_PYTHON"}
SMALL = {"driver": {"memory": "512m"}, "executor": {"instances": 1, "cores": 1, "memory": "512m"}}


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("Local", "local"),
        ("Standalone", "standalone-cluster"),
        ("YARN", "yarn"),
        ("Kubernetes", "kubernetes"),
    ],
)
def test_the_definition_of_a_backend_ends_well(
    request: pytest.FixtureRequest, shared_shell: Shell, heading: str, kind: str
) -> None:
    section = DOCS.read_text("utf-8").partition(f"\n## {heading}\n")[2]
    found = re.search(r"```yaml\n(name: .*?)```", section, re.DOTALL)
    assert found is not None, f"{heading} has no definition"
    definition = yaml.safe_load(found[1])
    hosts, root = (shared_shell.environment[name] for name in ("ZOOKEEPER_HOSTS", "ORCHESTRATOR_ROOT"))
    with open_kit(kind, request, hosts=hosts, root=f"{root}/kit", folder=shared_shell.directory) as kit:
        # The location of a cluster: HADOOP_CONF_DIR, KUBECONFIG.
        shared_shell.environment |= {name: os.environ[name] for name in os.environ.keys() & FOUND_BY}
        spark, target = definition["spark"], kit.target
        named = spark.pop(target.backend, {})
        assert named.keys() <= {*target.options, "queue"}, "a test can replace each option that it names"
        spark |= {"master": target.master, "conf": kit.conf, **SMALL}
        if options := {**named, **target.options}:
            spark[target.backend] = options
        shared_shell.write("flights.sql", SCRIPT)
        shared_shell.write("job.yaml", yaml.safe_dump({**definition, "retry": {"attempts": 1}}))
        worker = shared_shell.start("worker", "--slots", "1")
        worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
        submitted = shared_shell.type("job", "submit", "job.yaml", "--id", "job", "--wait", timeout=120)
        assert submitted.code == 0, submitted.stderr + worker.stderr
        shown = shared_shell.type("job", "show", "job").stdout
    assert "SUCCESS" in shown
    where = os.uname().nodename if target.backend == "local" else target.backend
    assert re.search(rf"1 +succeeded .* {re.escape(where)} *$", shown, re.MULTILINE), shown
