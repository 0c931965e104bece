"""What is known of a driver in cluster mode: from what it left in its run directory, and from its master."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from spark_runner import exit_codes
from spark_runner.announcement import DRIVER_FILE
from spark_runner.errors import BackendUnreachable
from spark_runner.plain_file import read_json
from spark_runner.process import ProcessId, current_boot_id, is_alive
from spark_runner.runners.base import Failure, RunState, Submission
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.standalone.api import DriverState, Snapshot, StandaloneDriver, StandaloneMasters
from spark_runner.runners.standalone.room import application_waits, driver_waits
from spark_runner.runners.start_words import unresolved_packages

SUBMISSION_FILE = "submission.json"  # {"driver": id}: what the master replied
CLOCK_SECONDS = 60.0  # how far the clocks of master and worker may be apart, the time to submit included
_TAIL_BYTES = 4000
_LINE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class DriverAnnouncement:
    """What the driver wrote when it began."""

    driver: str
    page: str  # of the worker of its node
    process: ProcessId


def announced(directory: RunDirectory) -> DriverAnnouncement | None:
    """What the driver has told; None before it began. Raises OSError, ValueError or KeyError."""
    facts = _read(directory, DRIVER_FILE)
    if facts is None:
        return None
    process = ProcessId(facts["pid"], facts["start"], facts["boot"], facts.get("pid_namespace", ""))
    return DriverAnnouncement(facts["driver"], facts["page"], process)


def driver_id(directory: RunDirectory) -> str | None:
    """The master's name of the driver: as it told itself, else as the master replied."""
    facts = _read(directory, DRIVER_FILE) or _read(directory, SUBMISSION_FILE)
    return None if facts is None else str(facts["driver"])


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a cluster, for all runs that are asked for."""

    masters: StandaloneMasters
    snapshot: Snapshot
    claimed: Callable[[], set[str]]  # the drivers that are known to belong to a submission

    def submission(self, directory: RunDirectory) -> Submission:
        """What is known of this one; raises BackendUnreachable, OSError, ValueError or KeyError."""
        driver = driver_id(directory)
        if driver is None:
            return self._unanswered(directory)
        known = self.snapshot.drivers.get(driver)
        if known is not None:
            return self._known(directory, known)
        status = self.masters.driver_status(driver)  # it is from after the snapshot, or forgotten
        if status.state is not None:
            return _of(directory, RunState.RUNNING)
        return self._vanished(directory, "its master knows nothing of it any more")

    def _known(self, directory: RunDirectory, driver: StandaloneDriver) -> Submission:
        match driver.state:
            case DriverState.SUBMITTED:
                return _of(directory, RunState.RUNNING, detail=driver_waits(self.snapshot, driver))
            case DriverState.RUNNING | DriverState.RELAUNCHING:
                return _of(
                    directory, RunState.RUNNING, detail=application_waits(self.snapshot, directory.run)
                )
            case DriverState.UNKNOWN:
                return _of(directory, RunState.UNKNOWN, detail="its master has just taken over")
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
            failure = Failure("killed", "Killed", "somebody has killed its driver at the master")
            return _exited(directory, exit_codes.KILLED, failure)
        said = self._last_words(driver)
        if missing := unresolved_packages(said):
            return _exited(directory, None, missing)
        words = _telling_line(said)
        began = announced(directory) is not None
        if began:
            message = "its driver failed and left no word: it was killed, or it ended itself without one"
        else:
            staging = directory.path.parent.parent.parent
            message = f"its driver did not come to begin (do all nodes see {staging}, and have PySpark?)"
        memory = "OutOfMemoryError" in words
        error_class = "memory" if memory else "infrastructure" if began else "submission"
        text = f"{message}: {words}" if words else message
        return _exited(directory, None, Failure(error_class, str(driver.state), text))

    def _errored(self, directory: RunDirectory, driver: StandaloneDriver) -> Submission:
        """Either its node could not start it, or the master has lost the node; then it may run there on."""
        if directory.exit_code() is not None:
            return _exited(directory, None)
        message = self.masters.driver_status(driver.id).message
        if message:
            text = f"its node could not start it: {' '.join(message.split())[:_LINE_CHARACTERS]}"
            failure = Failure("submission", str(driver.state), text, is_passing=True)
            return _exited(directory, None, failure)
        return self._vanished(directory, "its master has lost the node that it ran on")

    def _vanished(self, directory: RunDirectory, words: str) -> Submission:
        """One that its master cannot tell anything of; it is gone only where that can be verified."""
        if directory.exit_code() is not None:
            return _exited(directory, None)
        driver = announced(directory)
        if driver is None:
            return _never_seen(directory, words)
        if driver.process.is_out_of_sight:
            state = RunState.UNKNOWN
        elif driver.process.boot == current_boot_id():
            state = RunState.RUNNING if is_alive(driver.process) else RunState.GONE
        elif any(node.is_alive and node.page == driver.page for node in self.snapshot.workers):
            state = RunState.GONE  # a node that comes back to a master ends what that one does not know
        else:
            state = RunState.UNKNOWN
        return _of(directory, state, detail=words)

    def _unanswered(self, directory: RunDirectory) -> Submission:
        """One whose reply was lost, or that was never sent, and whose driver has not begun."""
        if directory.is_kill_requested():
            return _never_seen(directory, "it is to end before it begins")
        submitted = directory.submitted_ns() / 1e9
        if directory.is_young():
            return _of(directory, RunState.RUNNING, detail="it is being submitted")
        candidates = [
            driver.id
            for driver in self.snapshot.active_drivers
            if abs(driver.started_ms / 1000 - submitted) < CLOCK_SECONDS
        ]
        if candidates and not self.claimed().issuperset(candidates):
            words = "its master did not reply; it may be a driver there that has not begun yet"
            return _of(directory, RunState.RUNNING, detail=words)
        return _never_seen(directory, "it did not come to its master")

    def _last_words(self, driver: StandaloneDriver) -> str:
        """What its JVM wrote last on its node, empty where that cannot be had."""
        for worker in self.snapshot.workers:
            if worker.id == driver.worker and worker.is_alive:
                with contextlib.suppress(BackendUnreachable):
                    return self.masters.driver_stderr(worker, driver.id, _TAIL_BYTES)
        return ""


def _telling_line(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    thrown = [line for line in lines if "Error" in line or "Exception" in line]
    return (thrown or lines or [""])[-1][:_LINE_CHARACTERS]


def _exited(directory: RunDirectory, code: int | None, failure: Failure | None = None) -> Submission:
    """One that ended; its own word goes before its master's."""
    own = directory.exit_code()
    return _of(directory, RunState.EXITED, exit_code=code if own is None else own, failure=failure)


def _never_seen(directory: RunDirectory, words: str) -> Submission:
    """One that has told nothing of itself: of a driver that began, nobody has seen the end."""
    return _of(directory, RunState.GONE, detail=words, is_end_observed=False)


def _of(directory: RunDirectory, state: RunState, **more: Any) -> Submission:
    return Submission(directory.run, directory.incarnation, state, outcome=directory.outcome(), **more)


def _read(directory: RunDirectory, name: str) -> dict[str, Any] | None:
    try:
        facts: dict[str, Any] = read_json(directory.path / name)
    except FileNotFoundError:
        return None
    return facts
