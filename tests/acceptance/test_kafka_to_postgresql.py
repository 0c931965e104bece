"""The steps of docs/kafka-to-postgresql.md, on a real Kafka and a real PostgreSQL."""

import random
import re
from pathlib import Path

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Shell
from tests.jobs_support import command_line, marked_processes
from tests.tutorial_servers import Orders, Tutorial, tutorial
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "orders.sql"
PAGE = ROOT / "docs" / "kafka-to-postgresql.md"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drawn("tutorials"),
    pytest.mark.campaign,
    pytest.mark.timeout(900),
]  # three drivers


def test_the_script_of_the_page_is_that_of_the_example() -> None:
    (shown,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown in SCRIPT.read_text("utf-8")


def test_the_table_follows_the_topic_also_when_a_driver_is_killed(shell: Shell, process_mark: str) -> None:
    with tutorial(shell.directory / "servers") as found:
        shell.environment["ORCHESTRATOR_CONFIG"] = str(found.config)
        orders = Orders(random.Random(1))  # noqa: S311 - so that a run can be repeated
        found.kafka.produce("orders", [orders.place() for _ in range(200)])
        assert shell.type("sql", "lint", str(SCRIPT)).code == 0
        preview = shell.type("sql", "preview", str(SCRIPT), "changes", *found.sets(), timeout=SPARK_TIMEOUT_S)
        assert "placed" in preview.stdout, preview.stderr
        ran = shell.type("run", str(SCRIPT), *found.sets(), timeout=2 * SPARK_TIMEOUT_S)
        assert ran.code == 0, ran.stderr
        assert rows(found) == expected(orders)

        up = shell.start("up")
        up.wait_for_words("Ctrl-C ends them")
        streaming = ("--set", "mode=streaming", *found.sets())
        assert shell.type("job", "submit", str(SCRIPT), "--id", "orders", *streaming).code == 0
        found.kafka.produce("orders", [orders.change() for _ in range(300)])
        wait_until(lambda: rows(found) == expected(orders), SPARK_TIMEOUT_S, "the table follows the topic")

        for process in marked_processes(process_mark):
            if "org.apache.spark.deploy.SparkSubmit" in command_line(process):
                process.kill()
        found.kafka.produce("orders", [b"no order", *(orders.change() for _ in range(300))])
        wait_until(lambda: rows(found) == expected(orders), 2 * SPARK_TIMEOUT_S, "the next attempt goes on")
        assert shell.job("orders")["attempt"] == 2
        assert shell.type("job", "kill", "orders", "--graceful").code == 0
        ended = shell.type("job", "wait", "orders", timeout=SPARK_TIMEOUT_S)
        assert (ended.code, ended.stderr, ended.stdout.splitlines()[-1]) == (0, "", "orders: SUCCESS")
        up.press_ctrl_c()
        up.wait(60)


def rows(found: Tutorial) -> dict[int, str]:
    return {int(number): status for number, status in found.database.run("SELECT id, status FROM orders")}


def expected(orders: Orders) -> dict[int, str]:
    """The status of each order that is not cancelled."""
    states = {number: str(order["status"]) for number, order in orders.states.items()}
    return {number: status for number, status in states.items() if status != "cancelled"}
