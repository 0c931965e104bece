"""Two ResourceManagers: the active one is asked, and without one there is no answer."""

import json
import os
import uuid
from pathlib import Path
from unittest import mock

import pytest

from orchestrator.compose import DRIVER_MAIN
from spark_runner.protocol.errors import BackendUnreachable, KillError
from spark_runner.runners.base import RunState, SparkTarget, SubmissionPlace, SubmitRequest
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.backend import YarnBackend
from tests.servers.yarn import YarnPair
from tests.waiting import wait_until
from tests.yarn_support import spark_environment, spark_settings


@pytest.mark.spark
def test_an_application_is_found_and_ended_after_the_active_manager_was_lost(
    yarn_pair: YarnPair, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    target = SparkTarget("yarn", "cluster")
    run = f"{uuid.uuid4()}-1".upper()  # YARN keeps tags in lower case
    staging = (tmp_path / "staging").as_uri()
    with mock.patch.dict(os.environ, spark_environment(yarn_pair.conf_dir)):
        runner = YarnBackend(SparkSubmits(tmp_path / "state"), driver_main=DRIVER_MAIN).runner_for(target)
        runner.submit(SubmitRequest(run, uuid.uuid4().hex, "waits", {}, target, conf=spark_settings(staging)))
    launchers = SparkSubmits(tmp_path / "state")
    wait_until(lambda: launchers.find(run)[0].state is RunState.EXITED, 60, "it was handed over")
    wait_until(lambda: "application_" in runner.find(run)[0].detail, 60, "YARN has it")
    first, second = yarn_pair.managers
    yarn_pair.managers[first].cut_power()
    with pytest.raises(BackendUnreachable, match="no active ResourceManager"):
        runner.find(run)
    with pytest.raises(KillError, match="cannot verify"):
        runner.kill(run, grace_seconds=0)
    yarn_pair.make_active(second)
    (found,) = runner.find(run)
    assert found.state is RunState.RUNNING
    # As a worker on another host finds it: only by the place in the attempt.
    place = SubmissionPlace.of(json.loads(json.dumps(runner.place().to_json())))
    assert place is not None
    other = YarnBackend(SparkSubmits(tmp_path / "other"), driver_main=DRIVER_MAIN).runner_at(place)
    assert other is not None
    other.kill(run, grace_seconds=0)
    (killed,) = other.find(run)
    assert killed.state is RunState.EXITED
    assert killed.failure is not None
    assert (killed.failure.error_class, killed.failure.type) == ("killed", "Killed")
