"""A job whose rows a client fetches, on the command line: its address, its end, and its kill."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.poll_support import TOKEN, Client
from tests.waiting import wait_until

START_S = 300
"""Of a driver and its Python worker, on a machine with other tests."""

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "poll.md").read_text("utf-8")
SCRIPT = PAGE.partition("```sql\n")[2].partition("```")[0]
PROGRAM = PAGE.partition("```python\n")[2].partition("```")[0]


def submit(shell: Shell, job_id: str) -> str:
    """Submit the script of the page; returns the address in the progress of the job."""
    definition = {
        "name": "outbox",
        "script": {"text": SCRIPT},
        "spark": {"master": "local[2]", "driver": {"memory": "512m"}},
        "retry": {"attempts": 1},
    }
    shell.write("outbox.yaml", yaml.safe_dump(definition))
    assert shell.type("job", "submit", "outbox.yaml", "--id", job_id).code == 0

    def address() -> Any:
        job = shell.job(job_id)
        assert not job["error"], job
        return ((job["progress"] or {}).get("pushes") or {}).get("outbox", {}).get("address")

    return str(wait_until(address, START_S, "the progress of the job shows the address"))


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_a_job_serves_its_rows_to_a_client_and_tells_it_when_it_is_killed(shared_shell: Shell) -> None:
    shell = shared_shell
    shell.write("token", TOKEN)
    sources = {"secrets": {"outbox": {"folder": str(shell.directory)}}}
    shell.environment["ORCHESTRATOR_REFERENCES"] = json.dumps(sources)
    worker = shell.start("worker", "--slots", "1")
    worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)

    url = submit(shell, "outbox-1")
    shown = shell.type("job", "show", "outbox-1").stdout
    assert f"clients fetch its rows at {url}" in shown
    assert TOKEN not in shown + shell.type("job", "show", "outbox-1", "-o", "json").stdout
    client = subprocess.run(
        [sys.executable, "-c", PROGRAM, url],
        env={"TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=True,
        timeout=SPARK_TIMEOUT_S,
    )
    assert [line["name"] for line in map(yaml.safe_load, client.stdout.splitlines())] == ["ada", "bob", "eve"]
    assert shell.type("job", "wait", "outbox-1", timeout=SPARK_TIMEOUT_S).code == 0
    assert shell.job("outbox-1")["status"] == "SUCCESS"

    replies, waits = list[Any](), Client(submit(shell, "outbox-2"))
    assert shell.type("job", "adjust", "outbox-2", "--suspend").code == 0
    wait_until(lambda: not waits.ask().rows, COMMAND_TIMEOUT_S, "it is suspended")
    thread = threading.Thread(target=lambda: replies.append(waits.ask(wait=60)))
    thread.start()
    assert shell.type("job", "kill", "outbox-2").code == 0
    thread.join(SPARK_TIMEOUT_S)
    assert [(each.status, each.error) for each in replies] == [(500, "failed")]
    assert shell.type("job", "wait", "outbox-2", timeout=SPARK_TIMEOUT_S).code != 0
    assert shell.job("outbox-2")["status"] == "KILL"
    worker.terminate()
    assert worker.wait().code == 0
