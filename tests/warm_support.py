"""A warm server for tests: started by the WarmSupervisor of a worker, inspected from outside."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from spark_runner.protocol.warm_files import Recycling, ServerFiles, ServerPlan
from spark_runner.runners.base import Submission, SubmitRequest
from spark_runner.runners.launch import Launch
from spark_runner.runners.run_as import UserAccount
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.warm import WarmServers, WarmSpec, WarmSupervisor
from tests.class_archive import archives
from tests.jobs_support import ENVIRONMENT_MARK
from tests.waiting import wait_until

SPEC = WarmSpec("local[2]", {})
OPEN_S = 120
_LOOK = """
import json, sys
from pathlib import Path
from spark_runner.driver.jvm import WarmJvm
jvm = WarmJvm(Path(sys.argv[1]), "look")
jvm.enter()
context = jvm.session().sparkContext
threads = context._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
names = [thread.getName() for thread in threads]
found = {
    "jobs": list(context.statusTracker().getActiveJobsIds()),
    "threads": [name for name in names if name.startswith("tenant-")],
    "tasks": [  # an idle thread may keep the name of its last task
        name
        for thread, name in zip(threads, names, strict=True)
        if " in stage " in name and any("TaskRunner" in str(call) for call in thread.getStackTrace())
    ],
}
print(json.dumps(found))
jvm.leave()
"""

_ASK = """
import sys
from pathlib import Path
from spark_runner.driver.jvm import WarmJvm
jvm = WarmJvm(Path(sys.argv[1]), "ask")
jvm.enter()
try:
    print(jvm.session().sql(sys.argv[2]).collect())
except Exception as error:
    print(type(error).__name__, error)
jvm.leave()
"""


class WarmHouse:
    """A WarmSupervisor with its servers below one folder."""

    def __init__(self, submits: SparkSubmits, recycling: Recycling | None = None) -> None:
        # Without a rehearsal a server opens in a third of the time.
        self.servers = WarmServers(submits, ServerPlan(recycling or Recycling(), rehearsal=False))
        self.keeper = WarmSupervisor(self.servers, [SPEC], look_seconds=0.2)
        self.keeper.start()

    def wait_open(self, *, other_than: ServerFiles | None = None) -> ServerFiles:
        """The server for the next job."""

        def chosen() -> ServerFiles | None:
            found = self.keeper.choose_server(SPEC)
            return found if found is not None and found != other_than and self.servers.runs(found) else None

        return wait_until(chosen, OPEN_S, "a warm server is open")

    def close(self) -> None:
        self.keeper.stop()
        for server in self.servers.of(SPEC):
            self.servers.submits.kill(server.run, grace_seconds=0)


def look_into(server: ServerFiles) -> dict[str, list[object]]:
    """The jobs and tasks in its JVM, and the threads of drivers, except those of this inspection."""
    command = [sys.executable, "-c", _LOOK, str(server.path)]
    found: dict[str, list[object]] = json.loads(subprocess.check_output(command, text=True))
    found["threads"].remove("tenant-look")
    return found


def ask(server: ServerFiles, query: str) -> str:
    """The result of a query by a driver in its JVM: rows, or the error."""
    return subprocess.check_output([sys.executable, "-c", _ASK, str(server.path), query], text=True)


@contextmanager
def warm_house(folder: Path, recycling: Recycling | None = None) -> Iterator[WarmHouse]:
    """Servers of one test."""
    made = WarmHouse(SparkSubmits(folder / "warm", quick_start=archives()), recycling)
    try:
        yield made
    finally:
        made.close()


class _Unmarked(SparkSubmits):
    """Starts processes without the mark of the current test."""

    def start(
        self,
        request: SubmitRequest,
        prepare: Callable[[RunDirectory], Launch],
        *,
        user: UserAccount | None = None,
    ) -> Submission:
        def unmarked(directory: RunDirectory) -> Launch:
            launch = prepare(directory)
            return replace(launch, environment={**launch.environment, ENVIRONMENT_MARK: ""})

        return super().start(request, unmarked, user=user)


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmHouse]:
    """Servers for all tests; after a test has ended the server, the next test waits for another one."""
    made = WarmHouse(_Unmarked(tmp_path_factory.mktemp("warm") / "warm", quick_start=archives()))
    try:
        made.wait_open()
        yield made
    finally:
        made.close()
