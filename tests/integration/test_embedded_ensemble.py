from pathlib import Path

from tests.servers.ensemble import EmbeddedEnsemble
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

TICK_MS = 500


def test_an_ensemble_survives_its_leader_takes_it_back_and_returns_with_its_ports_and_data(
    tmp_path: Path,
) -> None:
    with EmbeddedEnsemble(tmp_path, tick_ms=TICK_MS) as ensemble, zookeeper_client(ensemble.hosts) as client:
        assert sorted(server.mode() or "" for server in ensemble.members.values()) == [
            "follower",
            "follower",
            "leader",
        ]
        client.create("/before", b"1")
        first = ensemble.leader()
        assert first is not None
        ensemble.members[first].kill()
        second = wait_until(ensemble.leader, 30, "another leader is elected")
        assert second != first
        client.retry(client.create, "/after", b"2")

        member = ensemble.members[first].start()
        assert member.mode() == "follower"
        ensemble.members[second].stop()
        wait_until(ensemble.leader, 30, "a leader with the member that came back")
        with zookeeper_client(member.hosts) as other:
            assert other.retry(other.get, "/after")[0] == b"2"
        first_hosts = ensemble.hosts
    with EmbeddedEnsemble(tmp_path, tick_ms=TICK_MS) as ensemble, zookeeper_client(ensemble.hosts) as client:
        assert ensemble.hosts == first_hosts
        assert client.get("/after")[0] == b"2"
