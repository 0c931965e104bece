"""Event logs on each real backend: their names, and their addresses at a real history server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.config.event_logs import EventLogSettings
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.leader.old_event_logs import OldEventLogs
from orchestrator.model.spark import Spark
from spark_runner.protocol.attempt import AttemptState
from tests.runner_kits import REAL, Kit, open_kit
from tests.servers.history_server import history_server
from tests.waiting import wait_until

KINDS = [
    pytest.param(kind, marks=[pytest.mark.yarn] if kind == "yarn" else [])
    for kind in sorted(REAL.keys() - {"local"})  # that one is in `test_spark_ui`
]
pytestmark = [pytest.mark.drawn("runners of clusters"), pytest.mark.spark, pytest.mark.timeout(400)]


@pytest.fixture(params=KINDS)
def kit(
    request: pytest.FixtureRequest,
    zookeeper_hosts: str,
    zookeeper_root: str,
    tmp_path: Path,
    process_mark: str,
) -> Iterator[Kit]:
    assert process_mark
    with open_kit(
        request.param, request, hosts=zookeeper_hosts, root=zookeeper_root, folder=tmp_path
    ) as made:
        yield made


def test_the_history_server_has_the_run_at_its_address_and_the_leader_knows_its_log(
    kit: Kit, tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    with history_server(folder, tmp_path / "history") as server:
        table = EventLogSettings(url=folder.as_uri(), history_server=server.url)
        # All nodes of these clusters are on this host, so that a job may name its folder.
        own = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": table.url}
        target = kit.target
        spark = Spark(master=target.master, deploy_mode=target.deploy_mode, conf=own)
        attempt = kit.attempt()
        request = kit.request(attempt, "pass")
        kit.runner.submit(replace(request, conf={**request.conf, **own}))
        kit.wait_ended(attempt.run)
        ended = kit.read(attempt.path)
        assert ended.state is AttemptState.SUCCEEDED, ended.document
        assert "ui" not in ended.document, "its pages are off"
        application = ended.document["application_id"]
        address = EventLogs({"*": table}).address("etl", spark, application)
        assert address is not None
        wait_until(lambda: application in server.applications(), 60, "the server has read its log")
        assert application in server.page(address)
        log = EventLogs({"*": EventLogSettings(url=table.url)}).address("etl", spark, application)
        assert [path.as_uri() for path in folder.iterdir()] == [log]
    OldEventLogs([table], lambda: 2**53).step()
    assert list(folder.iterdir()) == []
