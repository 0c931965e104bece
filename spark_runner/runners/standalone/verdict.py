"""The state of a driver in cluster mode, from the files in its run directory and from its master."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from spark_runner.protocol import exit_codes
from spark_runner.protocol.announcement import DRIVER_FILE
from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.protocol.plain_file import read_json
from spark_runner.protocol.process import ProcessId, current_boot_id, is_alive
from spark_runner.protocol.shortages import shortage
from spark_runner.runners.base import Failure, RunState, Submission
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.standalone.api import DriverState, Snapshot, StandaloneDriver, StandaloneMasters
from spark_runner.runners.standalone.applications import application_wait_reason, driver_wait_reason
from spark_runner.runners.submission_state import missing_packages

SUBMISSION_FILE = "submission.json"  # {"driver": id}: the master's reply
CLOCK_SECONDS = 60.0  # the largest difference of master's and worker's clocks plus the time to submit
_TAIL_BYTES = 4000
_LINE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class DriverAnnouncement:
    """The driver's own record of its start."""

    driver: str
    page: str  # of the worker of its node
    process: ProcessId


def read_announcement(directory: RunDirectory) -> DriverAnnouncement | None:
    """The driver's record of its start; None before it. Raises OSError, ValueError or KeyError."""
    facts = _read(directory, DRIVER_FILE)
    if facts is None:
        return None
    process = ProcessId(facts["pid"], facts["start"], facts["boot"], facts.get("pid_namespace", ""))
    return DriverAnnouncement(facts["driver"], facts["page"], process)


def driver_id(directory: RunDirectory) -> str | None:
    """The driver's id at the master, from the driver's own record or else from the master's reply."""
    facts = _read(directory, DRIVER_FILE) or _read(directory, SUBMISSION_FILE)
    return None if facts is None else str(facts["driver"])


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One view of a cluster, for all runs of one poll."""

    masters: StandaloneMasters
    snapshot: Snapshot
    claimed: Callable[[], set[str]]  # the drivers that belong to a known submission

    def submission(self, directory: RunDirectory) -> Submission:
        """The state of one submission; raises BackendUnreachable, OSError, ValueError or KeyError."""
        driver = driver_id(directory)
        if driver is None:
            return self._unanswered(directory)
        known = self.snapshot.drivers.get(driver)
        if known is not None:
            return self._known(directory, known)
        status = self.masters.driver_status(driver)  # it is newer than the snapshot, or no longer listed
        if status.state is not None:
            return _of(directory, RunState.RUNNING)
        return self._vanished(directory, "its master no longer lists it")

    def _known(self, directory: RunDirectory, driver: StandaloneDriver) -> Submission:
        match driver.state:
            case DriverState.SUBMITTED:
                return _of(directory, RunState.RUNNING, detail=driver_wait_reason(self.snapshot, driver))
            case DriverState.RUNNING | DriverState.RELAUNCHING:
                return _of(
                    directory, RunState.RUNNING, detail=application_wait_reason(self.snapshot, directory.run)
                )
            case DriverState.UNKNOWN:
                return _of(directory, RunState.UNKNOWN, detail="its master has just become the leader")
            case DriverState.FINISHED:
                return _exited(directory, 0)
            case DriverState.KILLED | DriverState.FAILED:
                return self._failed(directory, driver)
            case DriverState.ERROR:
                return self._errored(directory, driver)
        assert_never(driver.state)

    def _failed(self, directory: RunDirectory, driver: StandaloneDriver) -> Submission:
        if directory.exit_code() is not None:
            return _exited(directory, None)
        if driver.state is DriverState.KILLED:
            failure = Failure("killed", "Killed", "its driver was killed at the master")
            return _exited(directory, exit_codes.KILLED, failure)
        stderr = self._last_stderr(driver)
        if missing := missing_packages(stderr):
            return _exited(directory, None, missing)
        words = _cause_line(stderr)
        began = read_announcement(directory) is not None
        if began:
            message = "its driver failed without an outcome: it was killed, or it exited by itself"
        else:
            staging = directory.path.parent.parent.parent
            message = f"its driver did not start (check that all nodes see {staging}, and have PySpark)"
        memory = "OutOfMemoryError" in words
        error_class = "memory" if memory else "infrastructure" if began else "submission"
        text = f"{message}: {words}" if words else message
        short_of = shortage(words) if memory else None
        return _exited(directory, None, Failure(error_class, str(driver.state), text, short_of=short_of))

    def _errored(self, directory: RunDirectory, driver: StandaloneDriver) -> Submission:
        """Its node could not start it, or the master has lost the node, where it may still run."""
        if directory.exit_code() is not None:
            return _exited(directory, None)
        message = self.masters.driver_status(driver.id).message
        if message:
            text = f"its node could not start it: {' '.join(message.split())[:_LINE_CHARACTERS]}"
            failure = Failure("submission", str(driver.state), text, is_passing=True)
            return _exited(directory, None, failure)
        return self._vanished(directory, "its master has lost its node")

    def _vanished(self, directory: RunDirectory, words: str) -> Submission:
        """A driver that its master does not list; it counts as gone only if that can be verified."""
        if directory.exit_code() is not None:
            return _exited(directory, None)
        driver = read_announcement(directory)
        if driver is None:
            return _never_seen(directory, words)
        if driver.process.is_out_of_sight:
            state = RunState.UNKNOWN
        elif driver.process.boot == current_boot_id():
            state = RunState.RUNNING if is_alive(driver.process) else RunState.GONE
        elif any(node.is_alive and node.page == driver.page for node in self.snapshot.workers):
            state = (
                RunState.GONE
            )  # a node that rejoins a master ends the drivers that the master does not list
        else:
            state = RunState.UNKNOWN
        return _of(directory, state, detail=words)

    def _unanswered(self, directory: RunDirectory) -> Submission:
        """A submission whose reply was lost or that was never sent, and whose driver has not started."""
        if directory.is_kill_requested():
            return _never_seen(directory, "its end was requested before its start")
        submitted = directory.submitted_ns() / 1e9
        if directory.is_young():
            return _of(directory, RunState.RUNNING, detail="it is being submitted")
        candidates = [
            driver.id
            for driver in self.snapshot.active_drivers
            if abs(driver.started_ms / 1000 - submitted) < CLOCK_SECONDS
        ]
        if candidates and not self.claimed().issuperset(candidates):
            words = "its master did not reply; its driver may exist there without having started"
            return _of(directory, RunState.RUNNING, detail=words)
        return _never_seen(directory, "it did not reach its master")

    def _last_stderr(self, driver: StandaloneDriver) -> str:
        """The end of its JVM's stderr on its node; empty if it is not available."""
        for worker in self.snapshot.workers:
            if worker.id == driver.worker and worker.is_alive:
                with contextlib.suppress(BackendUnreachable):
                    return self.masters.driver_stderr(worker, driver.id, _TAIL_BYTES)
        return ""


def _cause_line(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    thrown = [line for line in lines if "Error" in line or "Exception" in line]
    return (thrown or lines or [""])[-1][:_LINE_CHARACTERS]


def _exited(directory: RunDirectory, code: int | None, failure: Failure | None = None) -> Submission:
    """An ended submission; its own exit code takes precedence over the master's report."""
    own = directory.exit_code()
    return _of(directory, RunState.EXITED, exit_code=code if own is None else own, failure=failure)


def _never_seen(directory: RunDirectory, words: str) -> Submission:
    """A submission without any record of its driver; the end of a driver that did start was not observed."""
    return _of(directory, RunState.GONE, detail=words, is_end_observed=False)


def _of(directory: RunDirectory, state: RunState, **more: Any) -> Submission:
    return Submission(directory.run, directory.incarnation, state, outcome=directory.outcome(), **more)


def _read(directory: RunDirectory, name: str) -> dict[str, Any] | None:
    try:
        facts: dict[str, Any] = read_json(directory.path / name)
    except FileNotFoundError:
        return None
    return facts
