"""Records `orchestrator job show --watch` while `job adjust` changes the limits of a push.

`python -m tests.recording docs/push-watch.cast` also writes the excerpt in docs/push.md anew. All parts are
real: a target in another process, `orchestrator up`, a job in Spark, and the commands.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.recording.cast import Recording, excerpt, frames, read
from tests.recording.screen import Screen
from tests.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "push.md"
BEGIN, END = "<!-- made by tests/recording from docs/push-watch.cast -->\n", "<!-- end -->\n"
COLUMNS, ROWS, LOWER_ROWS = 110, 44, 5
SIZE = ("LINES", "COLUMNS")  # of another terminal, where a library has set them
JOB, HOST = "invoices-7", "my-host"
LANES = {"de": 0.1, "fr": 0.1, "us": 1.0}  # seconds of a request
START_S, FOLLOWS_S = 400, 120
SCRIPT = """\
CREATE TABLE billing (id BIGINT, lane STRING) USING http OPTIONS (
  url '{url}/invoices', lane 'lane', concurrency '8', batch_size '10', parallelism '2'
);
INSERT INTO billing
SELECT id, CASE WHEN id % 10 < 5 THEN 'de' WHEN id % 10 < 9 THEN 'fr' ELSE 'us' END
FROM range(0, 400000, 1, 2);
"""
DEFINITION = """\
name: invoices
script: invoices.sql
retry: {attempts: 1}
spark: {master: "local[2]", driver: {memory: 512m}}
"""
Step = tuple[str, tuple[str, ...], Callable[[str], bool]]
"""What a step is about, the options of `job adjust`, and the page that shows its effect."""
STEPS: tuple[Step, ...] = (
    ("The lane `us` is slow.", (), lambda page: "us " in page),
    ("It is paused:", ("--pause-lane", "us"), lambda page: "paused" in page),
    ("Half as many requests:", ("--concurrency", "4"), lambda page: "4 of 4 requests in flight" in page),
    ("Suspended:", ("--suspend",), lambda page: "an operator has suspended it" in page),
    (
        "All lanes again, with 16 requests:",
        ("--resume", "--resume-lane", "us", "--concurrency", "16"),
        lambda page: "of 16 requests in flight" in page and "paused" not in page,
    ),
)


def record(file: Path, pages: int, steps: Sequence[Step] = STEPS) -> Recording:
    """Record each step until its effect is seen, and for some pages more."""
    recording = Recording(COLUMNS, ROWS, "orchestrator job show --watch while job adjust changes its limits")
    with tempfile.TemporaryDirectory(prefix="recording-") as name, ExitStack() as stack:
        folder = Path(name)
        url = stack.enter_context(target())
        commands = Commands(folder)
        stack.callback(commands.end)
        commands.up()
        (folder / "invoices.sql").write_text(SCRIPT.format(url=url), "utf-8")
        (folder / "invoices.yaml").write_text(DEFINITION, "utf-8")
        commands.run("job", "submit", "invoices.yaml", "--id", JOB)
        wait_until(commands.pushes, START_S, "the job pushes into all lanes")
        watched = [*commands.program, "job", "show", JOB, "--watch", "2"]
        with Screen(
            recording,
            LOWER_ROWS,
            watched,
            directory=folder,
            environment=commands.environment,
            shown=commands.shown,
        ) as screen:
            for label, options, is_seen in steps:
                if options:
                    screen.type(["orchestrator", "job", "adjust", JOB, *options], commands.program)
                screen.watch(lambda seen, is_seen=is_seen: any(map(is_seen, seen)), FOLLOWS_S)  # type: ignore[misc]  # of this step
                screen.watch(lambda seen: len(seen) >= pages, FOLLOWS_S)
                recording.mark(label)
        commands.run("job", "kill", JOB)
        commands.run("job", "wait", JOB, code=1)
    file.write_text(recording.text(), "utf-8")
    return recording


@contextmanager
def target() -> Iterator[str]:
    """The URL of a target in another process, which ends with this one."""
    command = [sys.executable, "-m", "tests.recording.lane_target", json.dumps(LANES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        assert process.stdin is not None
        process.stdin.close()


class Commands:
    """The command line as a user of the folder has it, with `orchestrator up` in the background."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, folder / "up.log"
        self.program = (sys.executable, "-m", "orchestrator")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ORCHESTRATOR_", "ZOOKEEPER_HOSTS", "NO_COLOR", *SIZE))
            or name in {"ORCHESTRATOR_CACHE_DIR", "ORCHESTRATOR_CLASS_ARCHIVES"}
        }
        root = str(Path(__file__).parents[2])
        self.environment = kept | {
            "ORCHESTRATOR_STATE_DIR": str(folder / "state"),
            "ORCHESTRATOR_CONFIG": os.devnull,
            "PYTHONPATH": root,
            "TZ": "UTC",
        }
        self._up: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start ZooKeeper and a worker."""
        with self._log.open("wb") as log:
            command = [*self.program, "up", "--slots", "1"]
            self._up = subprocess.Popen(
                command, cwd=self._folder, env=self.environment, stdout=log, stderr=log
            )
        wait_until(self._is_up, START_S, "the worker answers")

    def end(self) -> None:
        """End them."""
        if self._up is not None and self._up.poll() is None:
            self._up.send_signal(signal.SIGINT)
            self._up.wait(START_S)

    def run(self, *words: str, code: int = 0) -> str:
        """The output of a command, which ends with this code."""
        done = self._ended(*words)
        if done.returncode != code:
            raise SystemExit(f"orchestrator {' '.join(words)} failed: {done.stderr}\n{self._words()}")
        return done.stdout

    def pushes(self) -> bool:
        """Whether the job has delivered rows of all lanes."""
        job = json.loads(self.run("job", "show", JOB, "-o", "json"))
        if job["queue"] not in {"accept", "running"}:
            raise SystemExit(f"the job has ended: {job['error']}")
        progress = job["progress"] or {}
        lanes = progress.get("pushes", {}).get("billing", {}).get("lanes", {})
        return all(lanes.get(lane, {}).get("delivered") for lane in LANES)

    def shown(self, text: str) -> str:
        """A text without the name of this host; the other one is as long, so that tables stay as they are."""
        name = socket.gethostname()
        return re.sub(rf"\b{re.escape(name)}\b", HOST[: len(name)].ljust(len(name)), text)

    def _ended(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.program, *words],
            cwd=self._folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
        )

    def _is_up(self) -> bool:
        assert self._up is not None
        if self._up.poll() is not None:
            raise SystemExit(f"orchestrator up has ended:\n{self._words()}")
        done = self._ended("cluster", "status", "-o", "json")
        return done.returncode == 0 and bool(json.loads(done.stdout).get("workers"))

    def _words(self) -> str:
        return self._log.read_text("utf-8", "replace")[-3000:]


def render(page: str, recording: Recording) -> str:
    """The document, with the excerpt between the two marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{excerpt(frames(recording))}{END}{after}"


if __name__ == "__main__":
    record(Path(sys.argv[1]), pages=3)
    PAGE.write_text(render(PAGE.read_text("utf-8"), read(Path(sys.argv[1]))), "utf-8")
