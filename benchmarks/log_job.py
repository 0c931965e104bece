"""The time from the end of a job until its output is searchable: 10 MB of stdout, a worker, real Spark."""

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import log_site
from quiet import wait_idle

from orchestrator.cli.exits import Exit

_LINES = 100_000
_LINE = "x" * 99  # with its end 100 bytes: ten megabytes
_COMMAND = (sys.executable, "-m", "orchestrator")
_MOST_SECONDS = 120
_LOOK_SECONDS = 0.1


def measure(url: str) -> dict[str, Any]:
    """Seconds from the end of the job, as recorded, until each line is found exactly once."""
    alias = f"bench-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "prints.py")
        program.write_text(f"for number in range({_LINES}):\n    print({_LINE!r})\n", "utf-8")
        state = {"ORCHESTRATOR_STATE_DIR": f"{folder}/state"}
        logs = {"ORCHESTRATOR_LOGS__URL": url, "ORCHESTRATOR_LOGS__ALIAS": alias}
        environment = {**os.environ, **state, **logs}
        wait_idle()  # earlier documents are still being merged
        up = subprocess.Popen([*_COMMAND, "up", "-q"], env=environment)
        try:
            ended = _end_of(program, environment)
            while (found := _found(url, alias)) < _LINES and time.time() < ended + _MOST_SECONDS:
                time.sleep(_LOOK_SECONDS)  # each look is a search
            seconds = time.time() - ended
        finally:
            up.terminate()
            up.wait()
    log_site.remove_all(url, alias)
    return {"lines": found, "bytes": _LINES * (len(_LINE) + 1), "seconds": round(seconds, 1)}


def _end_of(program: Path, environment: dict[str, str]) -> float:
    submit = [*_COMMAND, "job", "submit", str(program), "--id", "prints", "--wait", "-o", "json"]
    deadline = time.time() + _MOST_SECONDS
    while True:
        done = subprocess.run(submit, env=environment, capture_output=True, check=False)
        if done.returncode != Exit.UNREACHABLE or time.time() > deadline:
            break
        time.sleep(_LOOK_SECONDS)  # until the worker has announced itself
    if done.returncode != Exit.OK:
        raise SystemExit(f"the job did not succeed: {done.stderr.decode()}")
    return datetime.fromisoformat(json.loads(done.stdout)["ended"]).timestamp()


def _found(url: str, alias: str) -> int:
    query = {
        "query": {"bool": {"filter": [{"term": {"job.id": "prints"}}, {"term": {"log.stream": "stdout"}}]}}
    }
    return int(log_site.ask(f"{url}/{alias}/_count", "POST", query)["count"])


if __name__ == "__main__":
    with log_site.elasticsearch() as _url:
        print(json.dumps(measure(_url)))
