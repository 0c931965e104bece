"""A program that reads its source itself goes on where the last job of its name has come to."""

import json

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, Shell
from tests.servers.web import web_server

PROGRAM = """\
import json
import sys
import urllib.request

from pyspark.sql import SparkSession

from spark_runner.push import Order, Pusher, PushSettings


class Numbers(Pusher):
    def __init__(self, url, end):
        self.url, self.end = url, end

    def fetch(self, position):
        after = position["offset"]
        if after >= self.end:
            return None
        return list(range(after, after + 10)), {"offset": after + 10}

    def push(self, rows):
        urllib.request.urlopen(self.url, json.dumps(list(rows)).encode(), timeout=10).close()


url, end, fails = sys.argv[1:]
done = Numbers(url, int(end)).run_fetched(
    SparkSession.getActiveSession() or SparkSession.builder.getOrCreate(),
    "numbers",
    {"offset": 0},
    PushSettings(order=Order.STRICT, batch_records=10),
)
if fails == "yes":
    raise RuntimeError("it fails after its push")
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_next_job_of_the_name_goes_on_after_the_last_one(
    shared_shell: Shell, zookeeper_root: str
) -> None:
    shell = shared_shell
    shell.write("count_up.py", PROGRAM)
    worker = shell.start("worker", "--slots", "1")
    worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
    with web_server() as server:
        for number, (end, fails) in enumerate([(50, "yes"), (80, "no")], 1):
            definition = {
                "name": "numbers",
                "python": "count_up.py",
                "arguments": [server.url, str(end), fails],
                "spark": {"master": "local[1]", "driver": {"memory": "512m"}},
                "retry": {"attempts": 1},
            }
            shell.write("numbers.yaml", yaml.safe_dump(definition))
            assert shell.type("job", "submit", "numbers.yaml", "--id", f"numbers-{number}").code == 0
            ended = shell.type("job", "wait", f"numbers-{number}", "--timeout", "5m")
            assert (ended.code == 0) is (fails == "no"), ended.stderr
            kept = json.loads(shell.type("zkcli", "get", f"{zookeeper_root}/positions/numbers").stdout)
            assert kept["numbers"]["acknowledged"] == kept["numbers"]["read"] == {"offset": end}
            assert kept["numbers"]["job"] == f"numbers-{number}"
        sent = [value for each in server.received for value in json.loads(each.body)]
    assert sent == list(range(80)), "each once: the failed job had delivered the first ones"
