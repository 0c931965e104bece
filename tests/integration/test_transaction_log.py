"""The reader of the transaction log returns the requests that a real server carried out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queues import EmbeddedZooKeeper, ServerConfig
from tests.chaos.transaction_log import Created, Deleted, LogDamaged, Transaction, Written, read_transactions
from tests.servers.zookeeper import TICK_MS, zookeeper_client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    with EmbeddedZooKeeper(ServerConfig(tmp_path / "zookeeper", tick_ms=TICK_MS)) as running:
        yield running


def changes(server: EmbeddedZooKeeper, below: str) -> list[Transaction]:
    return [
        entry
        for entry in read_transactions([server.config.data_dir])
        if any(change.path.startswith(below) for change in entry.changes)
    ]


def test_each_change_is_read_in_order_over_a_kill_of_the_server(server: EmbeddedZooKeeper) -> None:
    with zookeeper_client(server.hosts) as client:
        session = client.client_id[0]
        client.create("/a", b"1")
        client.create("/a/e", b"2", ephemeral=True)
        client.set("/a", "drei ü".encode())
        multi = client.transaction()
        multi.check("/a", 1)
        multi.set_data("/a", b"4")
        multi.create("/a/b", b"")
        multi.commit()
        refused = client.transaction()  # the server logs it, with an error instead of each operation
        refused.set_data("/a", b"5")
        refused.check("/a", 77)
        refused.commit()
    server.kill()
    server.start()
    with zookeeper_client(server.hosts) as client:
        modified = client.set("/a", b"6").mtime
        client.delete("/a/b")
    entries = changes(server, "/a")
    assert [entry.changes for entry in entries] == [
        (Created("/a", b"1"),),
        (Created("/a/e", b"2", session),),
        (Written("/a", "drei ü".encode(), 1),),
        (Written("/a", b"4", 2), Created("/a/b", b"")),
        (Deleted("/a/e"),),  # with its session
        (Written("/a", b"6", 3),),
        (Deleted("/a/b"),),
    ]
    assert entries[0].session == session
    assert entries[-2].time_ms == modified
    assert [entry.zxid for entry in entries] == sorted(entry.zxid for entry in entries)


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / "log.1").write_bytes(b"garbage")
    with pytest.raises(LogDamaged, match="is no transaction log"):
        list(read_transactions([tmp_path]))
