"""The client of a standalone master, against a real one; two masters: test_standalone_runner.py."""

from typing import Any

import pytest

from spark_runner.protocol.errors import BackendUnreachable, SubmissionError
from spark_runner.runners.standalone.api import Addresses, DriverState, StandaloneMasters
from tests.servers.standalone import Standalone
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def api(standalone: Standalone) -> StandaloneMasters:
    return StandaloneMasters([Addresses(standalone.ui, standalone.rest)])


def request(cluster: str, memory: str = "256m") -> dict[str, Any]:
    """A driver that fails at once: spark-submit prints its version there."""
    return {
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": "4.0.0",
        "appResource": "",
        "mainClass": "org.apache.spark.deploy.SparkSubmit",
        "appArgs": ["--no-such-option"],
        "environmentVariables": {},
        "sparkProperties": {"spark.app.name": "x", "spark.master": cluster, "spark.driver.memory": memory},
    }


def test_the_leader_tells_what_it_has(api: StandaloneMasters) -> None:
    snapshot = api.snapshot()
    (worker,) = snapshot.workers
    assert (snapshot.status, worker.is_alive, worker.memory_mib) == ("ALIVE", True, 8192)


@pytest.mark.spark
def test_a_driver_that_fails_ends_failed_and_its_words_can_be_had(
    api: StandaloneMasters, standalone: Standalone
) -> None:
    driver = api.create_driver(request(standalone.url))
    wait_until(lambda: driver in {done.id for done in api.snapshot().completed_drivers}, 60, "its end")
    assert api.snapshot().drivers[driver].state is DriverState.FAILED
    assert api.driver_status(driver).state is DriverState.FAILED
    assert "Unrecognized option" in api.driver_stderr(api.snapshot().workers[0], driver, 20_000)


def test_a_driver_that_is_too_large_waits_and_can_be_killed_there(
    api: StandaloneMasters, standalone: Standalone
) -> None:
    driver = api.create_driver(request(standalone.url, "500g"))
    waiting = api.snapshot().drivers[driver]
    assert (waiting.state, waiting.memory_mib, waiting.worker) == (DriverState.SUBMITTED, 512_000, "None")
    api.kill_application("app-20200101000000-0000")  # 403 without the token, which exists beside a driver
    api.kill_driver(driver)
    wait_until(lambda: api.driver_status(driver).state is DriverState.KILLED, 20, "its end")
    api.kill_driver(driver)


def test_a_driver_that_the_master_has_never_had_is_unknown_and_not_ended(api: StandaloneMasters) -> None:
    assert api.driver_status("driver-20200101000000-0000").state is None
    api.kill_driver("driver-20200101000000-0000")


def test_a_driver_without_a_main_class_is_refused(api: StandaloneMasters, standalone: Standalone) -> None:
    with pytest.raises(SubmissionError, match="Main class is missing"):
        api.create_driver({**request(standalone.url), "mainClass": None})


def test_an_address_without_a_server_is_reported_and_yields_no_state(standalone: Standalone) -> None:
    absent = StandaloneMasters([Addresses("http://127.0.0.1:1", standalone.rest)])
    with pytest.raises(BackendUnreachable, match=r"no master leads: http://127.0.0.1:1/json/"):
        absent.snapshot()
    stranger = StandaloneMasters([Addresses(standalone.rest, standalone.rest)])
    with pytest.raises(BackendUnreachable, match="no master leads"):
        stranger.driver_status("driver-20200101000000-0000")
