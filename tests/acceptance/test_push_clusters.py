"""Tasks on each cluster report to their driver, and follow the limits that an operator sets."""

import os

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.acceptance.test_adjust import FOLLOWS_S, Target, adjust, wait_for_push
from tests.acceptance.test_backends_docs import FOUND_BY, SMALL
from tests.runner_kits import open_kit
from tests.waiting import wait_until

ROWS = 3000
SCRIPT = """\
CREATE TABLE items (id BIGINT) USING http OPTIONS (url '{url}/items', concurrency '6', parallelism '2');
INSERT INTO items SELECT id FROM range({rows});
"""


@pytest.mark.drawn("jobs on clusters")
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["standalone-client", "standalone-cluster", "yarn", "kubernetes"])
def test_an_operator_slows_a_push_down_on_each_cluster(
    request: pytest.FixtureRequest, shared_shell: Shell, kind: str
) -> None:
    shell, target = shared_shell, Target()
    hosts, root = (shell.environment[name] for name in ("ZOOKEEPER_HOSTS", "ORCHESTRATOR_ROOT"))
    with (
        open_kit(kind, request, hosts=hosts, root=f"{root}/kit", folder=shell.directory) as kit,
        target.serve(),
    ):
        shell.environment |= {name: os.environ[name] for name in os.environ.keys() & FOUND_BY}
        spark = {
            "master": kit.target.master,
            "deploy_mode": kit.target.deploy_mode,
            "conf": kit.conf,
            **SMALL,
        }
        if kit.target.options:
            spark[kit.target.backend] = dict(kit.target.options)
        script = SCRIPT.format(url=target.server.url, rows=ROWS)
        definition = {"name": "items", "script": {"text": script}, "spark": spark, "retry": {"attempts": 1}}
        shell.write("items.yaml", yaml.safe_dump(definition))
        worker = shell.start("worker", "--slots", "1")
        worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
        assert shell.type("job", "submit", "items.yaml", "--id", "items-1").code == 0
        wait_until(lambda: target.last(12, 0), SPARK_TIMEOUT_S, "rows arrive")
        push = wait_for_push(shell, lambda push: push.get("delivered", 0) > 0 and push["tasks"] > 0)
        assert push["stale"] == 0
        assert not target.is_one_at_a_time(0)

        adjust(shell, "--concurrency", "1")
        since = len(target.server.received)
        wait_until(lambda: target.is_one_at_a_time(since), FOLLOWS_S, "there is one request at a time")

        target.slow_s = 0.0
        adjust(shell, "--concurrency", "50")
        assert shell.type("job", "wait", "items-1", timeout=SPARK_TIMEOUT_S).code == 0
        assert sorted(row["id"] for row in target.rows()) == [*range(ROWS)]
        worker.terminate()
        assert worker.wait().code == 0
