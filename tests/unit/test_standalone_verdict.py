"""The verdict on a driver in cluster mode for each state of its master and of its run directory."""

import json
import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from spark_runner.protocol import announcement
from spark_runner.protocol.process import RUN_DIR_VARIABLE, current_boot_id, identify
from spark_runner.runners.base import RunState, Submission
from spark_runner.runners.run_directory import YOUNG_SECONDS, RunDirectory, run_directory
from spark_runner.runners.standalone.api import DriverState, DriverStatus, Snapshot, StandaloneMasters
from spark_runner.runners.standalone.verdict import ClusterView, read_announcement

DRIVER = "driver-20260101000000-0000"
PAGE = "http://node:8081"
OTHER_BOOT = {"host": "node", "page": PAGE, "pid": 1, "start": 1, "boot": "of-another-host"}


class Masters(StandaloneMasters):
    """Masters whose REST server reports the same of all drivers."""

    def __init__(self, state: DriverState | None = None, message: str = "", stderr: str = "") -> None:
        super().__init__([])
        self._status = DriverStatus(state, message)
        self._stderr = stderr

    def driver_status(self, driver: str) -> DriverStatus:  # noqa: ARG002 - the same for all
        return self._status

    def driver_stderr(self, *_: object) -> str:
        return self._stderr


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = run_directory(tmp_path, f"{uuid.uuid4()}-1", uuid.uuid4().hex)
    made.create()
    made.write("plan.json", "{}")
    return made


def leave(directory: RunDirectory, name: str, **facts: Any) -> None:
    directory.write(f"{name}.json", json.dumps(facts))


def verdict(
    directory: RunDirectory,
    state: str | None = None,
    *,
    masters: StandaloneMasters | None = None,
    worker_state: str = "ALIVE",
    started: float | None = None,
    claimed: set[str] | None = None,
) -> Submission:
    """The verdict if the master lists the driver in this state, or not at all."""
    driver = {
        "id": DRIVER,
        "state": state,
        "starttime": str(int((started or time.time()) * 1000)),
        "cores": 1,
        "memory": 512,
        "worker": "worker-1",
    }
    worker = {"id": "worker-1", "state": worker_state, "webuiaddress": PAGE, "cores": 4, "coresfree": 4}
    active = state in {"SUBMITTED", "RUNNING", "RELAUNCHING", "UNKNOWN"}
    snapshot = Snapshot.model_validate(
        {
            "status": "ALIVE",
            "workers": [{**worker, "memory": 1024, "memoryfree": 1024}],
            "activeapps": [],
            "activedrivers": [driver] if active else [],
            "completeddrivers": [driver] if state and not active else [],
        }
    )
    return ClusterView(masters or Masters(), snapshot, lambda: claimed or set()).submission(directory)


@pytest.mark.parametrize("state", ["SUBMITTED", "RUNNING", "RELAUNCHING"])
def test_a_driver_that_its_master_lists_runs_whatever_it_has_already_written(
    directory: RunDirectory, state: str
) -> None:
    leave(directory, "submission", driver=DRIVER)
    leave(directory, "exit", exit_code=0)
    assert verdict(directory, state).state is RunState.RUNNING


def test_an_end_that_its_master_reports_has_an_exit_code(directory: RunDirectory) -> None:
    leave(directory, "submission", driver=DRIVER)
    found = verdict(directory, "FINISHED")
    assert (found.state, found.exit_code, found.failure) == (RunState.EXITED, 0, None)


def test_a_driver_that_was_killed_at_the_master_is_reported_so(directory: RunDirectory) -> None:
    leave(directory, "submission", driver=DRIVER)
    found = verdict(directory, "KILLED")
    assert (found.state, found.exit_code) == (RunState.EXITED, 143)
    assert found.failure is not None
    assert (found.failure.error_class, found.failure.type) == ("killed", "Killed")


@pytest.mark.parametrize("state", ["FINISHED", "KILLED", "FAILED", "ERROR", None])
def test_its_own_exit_code_goes_before_all_that_its_master_says_of_its_end(
    directory: RunDirectory, state: str | None
) -> None:
    leave(directory, "driver", driver=DRIVER, **OTHER_BOOT)
    leave(directory, "exit", exit_code=75)
    found = verdict(directory, state)
    assert (found.state, found.exit_code, found.failure) == (RunState.EXITED, 75, None)


@pytest.mark.parametrize(
    ("began", "stderr", "error_class", "words"),
    [
        (True, "", "infrastructure", "without an outcome"),
        (True, "x\njava.lang.OutOfMemoryError: heap\n  at y\n", "memory", "OutOfMemoryError: heap"),
        (False, "python3: can't open file 'driver_main.py'\n", "submission", "can't open file"),
        (False, "", "submission", "check that all nodes see"),
    ],
)
def test_a_failure_without_a_reason_is_reported_with_the_last_line_of_java(
    directory: RunDirectory, began: bool, stderr: str, error_class: str, words: str
) -> None:
    leave(directory, "submission", driver=DRIVER)
    if began:
        leave(directory, "driver", driver=DRIVER, **OTHER_BOOT)
    found = verdict(directory, "FAILED", masters=Masters(stderr=stderr))
    assert (found.state, found.exit_code) == (RunState.EXITED, None)
    assert found.failure is not None
    assert found.failure.error_class == error_class
    assert words in found.failure.message


def test_one_that_its_node_could_not_start_may_have_more_luck_elsewhere(directory: RunDirectory) -> None:
    leave(directory, "submission", driver=DRIVER)
    masters = Masters(DriverState.ERROR, "Exception from the cluster:\njava.io.IOException: no space\n\tat x")
    found = verdict(directory, "ERROR", masters=masters)
    assert found.failure is not None
    assert (found.failure.error_class, found.failure.is_passing) == ("submission", True)
    assert "no space" in found.failure.message


@pytest.mark.parametrize("state", ["ERROR", None], ids=["node-lost", "forgotten"])
class TestOneThatItsMasterCannotTellAnythingOf:
    def test_is_gone_when_it_never_began(self, directory: RunDirectory, state: str | None) -> None:
        leave(directory, "submission", driver=DRIVER)
        found = verdict(directory, state)
        assert (found.state, found.is_end_observed) == (RunState.GONE, False)

    def test_is_unknown_when_its_process_is_in_another_pid_namespace_of_this_host(
        self, directory: RunDirectory, state: str | None
    ) -> None:
        there = {**OTHER_BOOT, "boot": current_boot_id(), "pid_namespace": "pid:[1]"}
        leave(directory, "driver", driver=DRIVER, **there)
        assert verdict(directory, state).state is RunState.UNKNOWN

    def test_runs_while_its_process_is_on_this_host(self, directory: RunDirectory, state: str | None) -> None:
        me = identify(os.getpid())
        assert me is not None
        here = {**OTHER_BOOT, "pid": me.pid, "start": me.start, "boot": current_boot_id()}
        leave(directory, "driver", driver=DRIVER, **here)
        assert verdict(directory, state).state is RunState.RUNNING

    def test_is_gone_when_its_process_was_on_this_host(
        self, directory: RunDirectory, state: str | None
    ) -> None:
        leave(directory, "driver", driver=DRIVER, **{**OTHER_BOOT, "boot": current_boot_id()})
        assert verdict(directory, state).state is RunState.GONE

    def test_is_unknown_while_its_node_is_away_for_it_may_run_there_on(
        self, directory: RunDirectory, state: str | None
    ) -> None:
        leave(directory, "driver", driver=DRIVER, **OTHER_BOOT)
        assert verdict(directory, state, worker_state="DEAD").state is RunState.UNKNOWN

    def test_is_unknown_though_its_node_has_the_name_of_this_host_which_another_machine_may_have(
        self, directory: RunDirectory, state: str | None
    ) -> None:
        leave(directory, "driver", driver=DRIVER, **{**OTHER_BOOT, "host": socket.gethostname()})
        assert verdict(directory, state, worker_state="DEAD").state is RunState.UNKNOWN

    def test_is_gone_when_its_node_is_back(self, directory: RunDirectory, state: str | None) -> None:
        leave(directory, "driver", driver=DRIVER, **OTHER_BOOT)
        assert verdict(directory, state).state is RunState.GONE


def test_a_driver_announces_its_process_and_the_namespace_of_its_process_id(
    directory: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / DRIVER).mkdir()
    monkeypatch.chdir(tmp_path / DRIVER)
    monkeypatch.setenv(RUN_DIR_VARIABLE, str(directory.path))
    announcement._directory.cache_clear()  # noqa: SLF001 - one process is one driver elsewhere
    try:
        announcement.announce()
    finally:
        announcement._directory.cache_clear()  # noqa: SLF001
    found = read_announcement(directory)
    assert found is not None
    assert found.driver == DRIVER
    assert found.process == identify(os.getpid())
    assert found.process.pid_namespace


def test_a_driver_that_came_after_the_listing_runs(directory: RunDirectory) -> None:
    leave(directory, "submission", driver=DRIVER)
    assert verdict(directory, masters=Masters(DriverState.SUBMITTED)).state is RunState.RUNNING


def test_a_master_that_has_just_taken_over_gives_no_verdict(directory: RunDirectory) -> None:
    leave(directory, "submission", driver=DRIVER)
    assert verdict(directory, "UNKNOWN").state is RunState.UNKNOWN


class TestOneWithoutAReply:
    @pytest.fixture(autouse=True)
    def old(self, directory: RunDirectory) -> float:
        """It was submitted longer ago than a reply takes."""
        then = time.time() - YOUNG_SECONDS - 1
        os.utime(directory.path / "plan.json", (then, then))
        return then

    def test_may_be_any_driver_of_that_time_without_an_owner(
        self, directory: RunDirectory, old: float
    ) -> None:
        found = verdict(directory, "SUBMITTED", started=old)
        assert (found.state, "did not reply" in found.detail) == (RunState.RUNNING, True)

    def test_is_gone_when_each_of_them_belongs_to_another(self, directory: RunDirectory, old: float) -> None:
        assert verdict(directory, "SUBMITTED", started=old, claimed={DRIVER}).state is RunState.GONE

    def test_is_gone_when_none_came_then(self, directory: RunDirectory, old: float) -> None:
        assert verdict(directory, "SUBMITTED", started=old - 3600).state is RunState.GONE
        found = verdict(directory)
        assert (found.state, found.is_end_observed) == (RunState.GONE, False)

    def test_is_gone_when_its_end_was_requested(self, directory: RunDirectory, old: float) -> None:
        directory.request_kill(1)
        assert verdict(directory, "SUBMITTED", started=old).state is RunState.GONE


def test_a_driver_that_was_submitted_just_now_runs(directory: RunDirectory) -> None:
    assert verdict(directory).state is RunState.RUNNING
