"""An operator steers the micro-batches of a stream on the command line while it runs, also after a kill."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.jobs_support import command_line, marked_processes
from tests.kafka_support import kafka_jars
from tests.kafka_tables import values
from tests.servers.kafka import Topics
from tests.waiting import wait_until

FOLLOWS_S = 90
ROWS = 4000
SCRIPT = """\
SET job.mode = 'streaming'; SET job.trigger = '1 s'; SET job.batch.tuning = on;
CREATE TABLE src (id BIGINT) USING kafka OPTIONS (
  topic '{topic}', bootstrap_servers '{servers}', max_offsets_per_trigger 20
);
CREATE TABLE dst (id BIGINT) USING json OPTIONS (path '{folder}/out');
INSERT INTO dst SELECT id FROM src;
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_an_operator_pins_the_limit_of_a_stream_which_holds_after_a_kill_and_gives_it_back(
    shared_shell: Shell, topics: Topics, process_mark: str
) -> None:
    shell, topic = shared_shell, topics.new()
    topics.kafka.produce(topic, values(*({"id": n} for n in range(ROWS))))
    script = SCRIPT.format(topic=topic, servers=topics.kafka.servers, folder=shell.directory)
    definition = {
        "name": "copies",
        "script": {"text": script},
        "spark": {"master": "local[1]", "driver": {"memory": "512m"}},
        "retry": {"attempts": 3, "delay": 0},
    }
    shell.write("copies.yaml", yaml.safe_dump(definition))
    # Without them, the packages come over the network, and their folder may have half of them.
    jars = json.dumps([str(jar) for jar in kafka_jars()])  # which TOML writes alike
    config = shell.write("config.toml", f"[connector_jars]\nkafka = {jars}\n")
    shell.environment["ORCHESTRATOR_CONFIG"] = str(config)
    worker = shell.start("worker", "--slots", "1")
    worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
    assert shell.type("job", "submit", "copies.yaml", "--id", "copies-1").code == 0
    made = shell.type("job", "adjust", "copies-1", "--batch-rows", "15", "-o", "json").json()
    assert made == [{"id": "copies-1", "batch_rows": 15}]
    pinned = wait_for_limit(shell, lambda limit: limit["rows"] == 15, SPARK_TIMEOUT_S)
    assert pinned["by"] == "operator"
    line = "stream into dst: at most 15 rows in a micro-batch, set by an operator (an operator has set it)"
    assert line in shell.type("job", "show", "copies-1").stdout

    for process in marked_processes(process_mark):
        if "org.apache.spark.deploy.SparkSubmit" in command_line(process):
            process.kill()
    wait_until(lambda: shell.job("copies-1")["attempt"] == 2, SPARK_TIMEOUT_S, "the next attempt")
    wait_for_limit(shell, lambda limit: limit["rows"] == 15, SPARK_TIMEOUT_S)

    ended = shell.type("job", "adjust", "copies-1", "--tune-batches", "--batch-seconds", "20")
    assert (ended.code, ended.stderr) == (0, "")
    found = wait_for_limit(shell, lambda limit: limit["by"] == "tuning" and limit["rows"] >= 60, FOLLOWS_S)
    assert found["target_seconds"] == 20
    ended = shell.type("job", "adjust", "copies-1", "--tune-batches", "--batch-rows", "3")
    assert_error(ended, 2, "contradict each other")

    assert shell.type("job", "kill", "copies-1", "--graceful").code == 0
    assert shell.type("job", "wait", "copies-1", timeout=SPARK_TIMEOUT_S).code == 0
    rows = [line for file in shell.directory.glob("out/*.json") for line in file.read_text().splitlines()]
    assert len(rows) == len(set(rows)) > 0
    worker.terminate()
    assert worker.wait().code == 0


def wait_for_limit(
    shell: Shell, condition: Callable[[dict[str, Any]], bool], timeout: float
) -> dict[str, Any]:
    """The limit in the progress of the job, once it is so."""

    def found() -> dict[str, Any] | None:
        streams = (shell.job("copies-1")["progress"] or {}).get("streams") or {}
        limit = (streams.get("dst") or {}).get("limit")
        return limit if limit and condition(limit) else None

    return wait_until(found, timeout, "the progress of the job shows the limit")
