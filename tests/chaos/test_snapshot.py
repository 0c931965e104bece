import json

from queues.model.names import Layout
from queues.model.names import Token as Name
from queues.model.record import Record as Written
from tests.chaos.snapshot import Record, Snapshot, Token, take_snapshot
from tests.servers.zookeeper import zookeeper_client


def test_a_snapshot_has_the_records_tokens_and_locks(zookeeper_hosts: str, zookeeper_root: str) -> None:
    layout, name = Layout(zookeeper_root), Name(1234, 5, "good")
    written = Written("good", "r", "accept", "p", name, "n", payload={"a": 1})
    with zookeeper_client(zookeeper_hosts) as client:
        client.create(layout.record("good"), written.encode(), makepath=True)
        client.set(layout.record("good"), written.encode())
        client.create(layout.record("spoilt"), b"\xff\x00", makepath=True)
        client.create(layout.record("other"), json.dumps(["no record"]).encode(), makepath=True)
        client.create(layout.token("accept", "p", name), makepath=True)
        client.create(f"{layout.queue('dead', 'p')}/foreign", makepath=True)
        client.create(layout.lock("p", "good"), ephemeral=True, makepath=True)
        whole = take_snapshot(client, zookeeper_root)
        part = take_snapshot(client, zookeeper_root, only=lambda item_id: item_id == "good")
        nothing = take_snapshot(client, f"{zookeeper_root}/jobs")
    good = Record(1, "r", "accept", "p", 1234, "n")
    assert whole == Snapshot(
        {"good": good, "spoilt": Record(0, readable=False), "other": Record(0, readable=False)},
        (Token("accept", "p", "good", 1234), Token("dead", "p", "foreign")),
        ("p/good",),
    )
    assert part == Snapshot({"good": good}, (Token("accept", "p", "good", 1234),), ("p/good",))
    assert nothing == Snapshot()
