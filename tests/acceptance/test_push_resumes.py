"""A job whose push fails goes on in its next attempt with the rows that are not delivered."""

import json

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.servers.web import Received, Reply, web_server
from tests.waiting import wait_until

ROWS, TAKEN = 6000, 4000
SCRIPT = """\
CREATE TABLE items (id BIGINT) USING http OPTIONS (
  url '{url}/items', concurrency '8', parallelism '1', retry_timeout '1'
);
INSERT INTO items SELECT id FROM range({rows});
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_next_attempt_sends_the_rows_that_are_not_delivered(shared_shell: Shell) -> None:
    shell, is_down = shared_shell, False

    def reply(_: Received) -> Reply:
        nonlocal is_down
        is_down = is_down or len(server.received) == TAKEN
        return Reply(503 if is_down else 200)

    with web_server(reply) as server:
        definition = {
            "name": "resumed",
            "script": {"text": SCRIPT.format(url=server.url, rows=ROWS)},
            "spark": {"master": "local[1]", "driver": {"memory": "512m"}},
            "retry": {"attempts": 2, "delay": "1s"},
        }
        shell.write("resumed.yaml", yaml.safe_dump(definition))
        worker = shell.start("worker", "--slots", "1")
        worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
        assert shell.type("job", "submit", "resumed.yaml", "--id", "resumed-1").code == 0
        wait_until(lambda: is_down, SPARK_TIMEOUT_S, "the server is down")
        wait_until(
            lambda: shell.job("resumed-1")["attempt"] == 2, SPARK_TIMEOUT_S, "there is another attempt"
        )
        server.reply = lambda _: Reply()
        first = len(server.received)
        ended = shell.type("job", "wait", "resumed-1", "--timeout", "5m")
        assert ended.code == 0, ended.stderr
        again = len(server.received) - first
    assert {json.loads(each.body)["id"] for each in server.received} == set(range(ROWS))
    assert again < ROWS - TAKEN // 2, "most of what was delivered is not sent again"
