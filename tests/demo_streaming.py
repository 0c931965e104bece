"""`make demo-streaming`: clicks from a real Kafka are counted by a job and arrive in lists of a real Redis.

Servers, worker and files end with this process.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.kafka_support import kafka_jars
from tests.servers.kafka import Kafka, start_kafka
from tests.servers.redis import RedisServer, local_redis
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
PAGES = ("/", "/basket", "/shoes", "/shoes/42")
WINDOW = "'10' SECOND"  # instead of the ten minutes of the script
WINDOWS, CLICKS_PER_SECOND = 3, 40
START_TIMEOUT_S, WINDOWS_TIMEOUT_S = 180, 300


def main(windows: int = WINDOWS) -> None:
    """Run the demo until each page has that many windows."""
    with tempfile.TemporaryDirectory(prefix="demo-") as name, ExitStack() as stack:
        folder = Path(name)
        _say("Kafka and Redis start; Maven fetches Kafka the first time")
        (folder / "kafka").mkdir()
        kafka = start_kafka(folder / "kafka", stack)
        kafka.create("clicks", 2)
        redis = stack.enter_context(local_redis())
        orchestrator = Orchestrator(folder)
        _say("orchestrator up: ZooKeeper and a worker start")
        stack.callback(orchestrator.end)
        orchestrator.up()
        given = {"kafka": kafka.servers, "redis": redis.host, "redis_port": str(redis.port), "window": WINDOW}
        sets = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
        _say(f"orchestrator job submit examples/clicks.sql, with windows of {WINDOW.lower()}s")
        orchestrator.run("job", "submit", str(ROOT / "examples" / "clicks.sql"), "--id", "clicks", *sets)
        wait_until(orchestrator.streams, START_TIMEOUT_S, "the job reads the topic")
        _say("the job reads the topic: clicks are produced, and counts arrive at the end of each window")
        _produce_and_show(kafka, redis, windows)
        _say("orchestrator job kill clicks --graceful: the stream ends after its micro-batch")
        orchestrator.run("job", "kill", "clicks", "--graceful")
        orchestrator.run("job", "wait", "clicks")
        status = json.loads(orchestrator.run("job", "show", "clicks", "-o", "json"))["status"]
        _say(f"the job has ended as {status}; all servers stop")


class Orchestrator:
    """The command, with a state directory of its own."""

    def __init__(self, folder: Path) -> None:
        config = folder / "orchestrator.toml"
        jars = ", ".join(json.dumps(str(jar)) for jar in kafka_jars())
        config.write_text(f"[connector_jars]\nkafka = [{jars}]\n", "utf-8")
        own = {"ORCHESTRATOR_STATE_DIR": str(folder / "state"), "ORCHESTRATOR_CONFIG": str(config)}
        kept = {name: value for name, value in os.environ.items() if name != "ZOOKEEPER_HOSTS"}
        self._environment, self._log = kept | own, folder / "up.log"
        self._command = str(Path(sys.executable).with_name("orchestrator"))
        self._up: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start ZooKeeper and a worker."""
        with self._log.open("wb") as log:
            self._up = subprocess.Popen(
                [self._command, "up", "--slots", "1"], env=self._environment, stdout=log, stderr=log
            )
        wait_until(self._is_up, START_TIMEOUT_S, f"the worker answers; its log is\n{self._words()}")

    def run(self, *words: str) -> str:
        """The output of a command, which must succeed."""
        done = subprocess.run(
            [self._command, *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=START_TIMEOUT_S,
        )
        if done.returncode:
            raise SystemExit(
                f"orchestrator {words[0]} {words[1]} failed; the log of the worker:\n{self._words()}"
            )
        return done.stdout

    def streams(self) -> bool:
        """Whether the job has looked at its topic."""
        shown = json.loads(self.run("job", "show", "clicks", "-o", "json"))
        if shown["queue"] not in {"accept", "running"}:
            raise SystemExit(f"the job has ended: {shown['error']}")
        return bool((shown.get("progress") or {}).get("streams"))

    def end(self) -> None:
        """End worker and ZooKeeper."""
        if self._up is not None:
            self._up.send_signal(signal.SIGINT)
            self._up.wait(START_TIMEOUT_S)

    def _is_up(self) -> bool:
        assert self._up is not None
        if self._up.poll() is not None:
            raise SystemExit(f"orchestrator up has ended:\n{self._words()}")
        asked = [self._command, "cluster", "status", "-o", "json"]
        done = subprocess.run(asked, env=self._environment, capture_output=True, check=False)
        return done.returncode == 0 and bool(json.loads(done.stdout).get("workers"))

    def _words(self) -> str:
        return self._log.read_text("utf-8", "replace")[-3000:] if self._log.exists() else ""


def _produce_and_show(kafka: Kafka, redis: RedisServer, windows: int) -> None:
    """Produce clicks and print each count that arrives, until each page has that many windows."""
    shown = dict.fromkeys(PAGES, 0)
    ends = time.monotonic() + WINDOWS_TIMEOUT_S
    with redis.client() as client:
        while min(shown.values()) < windows:
            if time.monotonic() > ends:
                raise SystemExit("no counts have arrived for some minutes")
            kafka.produce("clicks", [_click() for _ in range(CLICKS_PER_SECOND)])
            time.sleep(1)
            for page in PAGES:
                counts = client.lrange(f"clicks:{page}", 0, -1)  # the latest first
                for each in reversed(counts[: len(counts) - shown[page]]):
                    print(f"  clicks:{page:<10} {each}", flush=True)  # noqa: T201 - what the demo shows
                shown[page] = len(counts)


def _click() -> bytes:
    click = {
        "page": random.choice(PAGES),  # noqa: S311 - no secret
        "visitor": f"visitor-{random.randrange(20)}",  # noqa: S311 - likewise
        "referrer": random.choice([None, "search", "mail"]),  # noqa: S311 - likewise
    }
    return json.dumps(click).encode() if random.random() > 0.02 else b"no click"  # noqa: S311 - likewise


def _say(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - what the demo shows


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
