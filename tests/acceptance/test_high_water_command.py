"""A target that takes rows too slowly gets no further job: real Spark, a real server, the command line."""

import json

import pytest
import yaml

from orchestrator.model.states import Status
from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.acceptance.test_adjust import Target
from tests.waiting import wait_until

SLOW_S = 0.3
ROWS = 2000
SCRIPT = """\
CREATE TABLE items (id BIGINT) USING http OPTIONS (url '{url}/items', concurrency '2', buffer_records '100');
INSERT INTO items SELECT id FROM range({rows});
"""
POOL = "items-api"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_slow_target_delays_the_next_job_of_its_pool_until_it_is_quick_again(shared_shell: Shell) -> None:
    shell, target = shared_shell, Target()
    target.slow_s = SLOW_S
    with target.serve():
        definition = {
            "name": "items",
            "script": {"text": SCRIPT.format(url=target.server.url, rows=ROWS)},
            "pool": POOL,
            "spark": {"master": "local[1]", "driver": {"memory": "512m"}},
            "retry": {"attempts": 1},
        }
        shell.write("items.yaml", yaml.safe_dump(definition))
        shell.write("next.yaml", yaml.safe_dump({"name": "next", "python": {"text": "pass"}, "pool": POOL}))
        worker = shell.start("worker", "--slots", "3")
        worker.wait_for_words("3 slots", COMMAND_TIMEOUT_S)
        assert shell.type("job", "submit", "items.yaml", "--id", "items-1").code == 0
        said = shell.type("config", "set", f"pool.{POOL}.high_water", "0.8")
        assert (said.code, said.stderr) == (0, f"pool.{POOL}.high_water is 0.8 for all workers\n")

        def line() -> str:
            rows = json.loads(shell.type("queue", "pool", "list", "-o", "json").stdout)
            return next(row["water_line"] for row in rows if row["pool"] == POOL)  # type: ignore[no-any-return]  # JSON

        wait_until(lambda: target.server.received, SPARK_TIMEOUT_S, "rows arrive")
        wait_until(line, SPARK_TIMEOUT_S, "its buffer is full, and its worker reports that")
        assert shell.type("job", "submit", "next.yaml", "--id", "next-1").code == 0

        def reason() -> bool:
            return (shell.job("next-1")["waiting"] or {}).get("reason") == "high-water"

        wait_until(reason, COMMAND_TIMEOUT_S, "the next job waits for the target")
        assert (
            "items-1 of pool items-api has filled its buffer for items to "
            in shell.type("job", "show", "next-1").stdout
        )
        (shown,) = [
            row
            for row in shell.type("queue", "pool", "list").stdout.splitlines()
            if row.split()[:1] == [POOL]
        ]
        assert shown.split()[-2] == "0.8"
        assert 0.8 <= float(shown.split()[-1]) <= 1.0
        assert shell.job("next-1")["attempt"] == 0

        target.slow_s = 0.0
        assert shell.type("job", "wait", "next-1", timeout=SPARK_TIMEOUT_S).code == 0
        assert shell.type("job", "wait", "items-1", timeout=SPARK_TIMEOUT_S).code == 0
        assert shell.job("items-1")["status"] == Status.SUCCESS
        assert sorted(row["id"] for row in target.rows()) == [*range(ROWS)]
        worker.terminate()
        assert worker.wait().code == 0
