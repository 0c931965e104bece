"""A worker process of tests: `python -m tests.crash_worker CONFIG`, with the JSON of a `WorkerConfig`.

It is built as every worker; the configuration may give a point where it dies, or a protection to take out.
TERM drains it.
"""

import json
import signal
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.compose import DRIVER_MAIN, build_runners, build_worker, open_session
from orchestrator.config.settings import Settings
from orchestrator.handlers import notices
from orchestrator.logs.console import log_to_stderr
from orchestrator.model.limits import Limits
from queues.session import Session
from spark_runner.runners.base import Runner, SparkTarget
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import Runners
from spark_runner.runners.spark_submits import SparkSubmits
from tests.crash_points import Point, arm
from tests.job_mutations import Protection, take_out
from tests.scripted.runner import ScriptedRunner
from tests.suspension import Suspension

# As in `tests.jobs_support`, whose import takes as long as all other imports.
STAND_IN = (sys.executable, str(Path(__file__).with_name("standin_submit.py")))

_FIRST_DELAY_SECONDS = 0.2  # of a callback that failed


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration of a worker process."""

    settings: dict[str, Any]  # of `Settings`, as JSON
    runner: str  # scripted, stand-in, spark, or real = all backends of a worker
    session_file: str  # receives the id and the password of its session
    suspension_file: str  # of `Suspension`
    limits: dict[str, Any]
    die_at: dict[str, Any] | None = None  # of `Point`
    without: str = ""  # a `Protection`
    target: dict[str, Any] = field(default_factory=dict)  # of real runners: the one to arm

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def build_runner(kind: str, state_dir: Path) -> Runner:
    """The runner of tests, shared by workers in several processes."""
    if kind == "scripted":
        return ScriptedRunner(state_dir)
    return LocalRunner(
        SparkSubmits(state_dir, spark_submit=STAND_IN if kind == "stand-in" else None),
        driver_main=DRIVER_MAIN,
    )


def main() -> None:
    """Work until TERM, or until the point of death."""
    config = WorkerConfig(**json.loads(sys.argv[1]))
    Suspension(Path(config.suspension_file)).stop_monotonic()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    log_to_stderr("INFO")
    settings = Settings(**config.settings)
    runners = (
        build_runners(settings)
        if config.runner == "real"
        else Runners.of(build_runner(config.runner, settings.state_dir))
    )
    runner = runners.for_target(SparkTarget(**config.target))
    notices.FIRST_DELAY_SECONDS = _FIRST_DELAY_SECONDS  # shortens the tests
    if config.without:
        take_out(Protection(config.without))
    if config.die_at is not None:
        arm(Point(**config.die_at), runner)
    limits = Limits.model_construct(**config.limits)
    with open_session(settings, settings.zookeeper_hosts) as session:
        _write_session(session, Path(config.session_file))
        worker = build_worker(session, settings, runners=runners, limits=lambda: limits)
        worker.start()
        while not stop.wait(1):
            pass
        worker.drain()


def _write_session(session: Session, path: Path) -> None:
    number, password = session._client.client_id  # noqa: SLF001 - a test closes the session, as its timeout would
    path.write_text(json.dumps({"session": number, "password": password.hex()}), "utf-8")


if __name__ == "__main__":
    main()
