"""What a task does when the server of a table restarts, is full, moves keys or refuses its user."""

import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis.exceptions import ReadOnlyError

from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.redis.client import Servers
from spark_runner.connectors.redis.options import RedisOptions
from spark_runner.connectors.redis.pipeline import Pipeline
from spark_runner.push.batch import Batch, Portion, Priority
from spark_runner.push.errors import TimedOut
from tests.redis_task import RedisTask
from tests.servers.redis import RedisServer, local_redis, moving_slot, start_redis
from tests.waiting import wait_until

WORD = "open sesame"


def options(server: RedisServer, **more: Any) -> dict[str, Any]:
    return RedisOptions(**{**server.options, "key": "k", "retry_timeout": 30, **more}).model_dump()


def packed(*words: str) -> bytes:
    texts = [word.encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%b\r\n" % (len(text), text) for text in texts)


def pushed(values: range) -> tuple[list[bytes | None], list[bytes | None]]:
    return [b"k" for _ in values], [packed("RPUSH", "k", str(value)) for value in values]


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with local_redis() as found:
        yield found


def test_rows_without_an_answer_go_to_the_restarted_server() -> None:
    with tempfile.TemporaryDirectory() as folder, local_redis() as server:
        pipeline = RedisTask(options(server))
        pipeline.write(*pushed(range(100)))
        with server.client() as client:
            assert client.llen("k") == 100
            client.shutdown(nosave=True)
        thread = threading.Thread(target=pipeline.write, args=pushed(range(100, 200)))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        again = start_redis(server, folder)
        try:
            thread.join(30)
            with server.client() as client:
                assert client.lrange("k", 0, -1) == [str(value) for value in range(100, 200)]
        finally:
            pipeline.close()
            again.kill()


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [("maxmemory", "1", ".*maxmemory"), ("min-replicas-to-write", "1", "NOREPLICAS")],
)
def test_a_server_that_takes_no_rows_for_now_makes_a_task_wait_and_then_fails_it(
    server: RedisServer, setting: str, value: str, words: str
) -> None:
    with server.client() as client:
        client.config_set(setting, value)
        pipeline = RedisTask(options(server, retry_timeout=0.5))
        with pytest.raises(Unreachable, match=f"does not take rows: {words}"):
            pipeline.write(*pushed(range(10)))
        patient = RedisTask(options(server))
        thread = threading.Thread(target=patient.write, args=pushed(range(10)))
        thread.start()
        wait_until(lambda: client.info("stats")["total_error_replies"] > 20, 30, "the task has tried again")
        client.config_set(setting, "0")
        thread.join(30)
        assert client.lrange("k", 0, -1) == [str(number) for number in range(10)]
        pipeline.close()
        patient.close()


def test_a_command_that_the_server_lacks_is_an_error_of_all_rows() -> None:
    with local_redis("--rename-command", "RPUSH", "PUSH") as server:
        pipeline = RedisTask(options(server))
        with pytest.raises(ConnectorError, match=r"refused: unknown command 'RPUSH'"):
            pipeline.write(*pushed(range(10)))
        pipeline.close()


def test_a_key_that_cannot_expire_fails_the_write(server: RedisServer) -> None:
    pipeline = RedisTask({**options(server, command="RPUSH"), "ttl": 10**18})
    with pytest.raises(ConnectorError, match="invalid expire time"):
        pipeline.write(*pushed(range(1)))
    pipeline.close()


def test_a_user_without_the_right_to_write_is_an_error_of_all_rows(server: RedisServer) -> None:
    with server.client() as client:
        client.acl_setuser(
            "reader", enabled=True, passwords=[f"+{WORD}"], keys=["*"], commands=["+@read", "+ping"]
        )
        pipeline = RedisTask(options(server, username="reader", password=WORD))
        with pytest.raises(ConnectorError, match=r"refused: .*rights of the user") as found:
            pipeline.write(*pushed(range(10)))
        assert not isinstance(found.value, Unreachable)
        assert client.llen("k") == 0
        pipeline.close()


def test_a_row_of_the_wrong_type_is_rejected_and_its_neighbours_are_written(server: RedisServer) -> None:
    with server.client() as client:
        client.set("k", "a string")
        pipeline = RedisTask(options(server))
        keys: list[bytes | None] = [b"a", b"k", b"b", None]
        commands = [packed("RPUSH", "a", "1"), packed("RPUSH", "k", "2"), packed("RPUSH", "b", "3"), None]
        rejected = pipeline.write(keys, commands)
        assert {number: reason.split()[0] for number, reason in rejected.items()} == {1: "WRONGTYPE", 3: "a"}
        assert (client.llen("a"), client.llen("b")) == (1, 1)
        pipeline.close()


def test_rows_follow_a_slotthat_moves_to_another_master(redis_cluster: list[str]) -> None:
    settings = RedisOptions(
        mode="cluster", nodes=tuple(redis_cluster), key="k", retry_timeout=30
    ).model_dump()
    key = "moved-key"
    with moving_slot(redis_cluster, key) as slot:
        slot.owner.delete(key)
        pipeline = RedisTask(settings)
        pipeline.write([key.encode()], [packed("RPUSH", key, "0")])
        slot.begin()
        slot.move(key)
        slot.end()
        pipeline.write([key.encode()], [packed("RPUSH", key, "1")])
        assert slot.other.lrange(key, 0, -1) == [b"0", b"1"]
        pipeline.close()


def test_nothing_is_sent_after_the_longest_time_of_a_request_however_many_servers_hang(
    redis_cluster: list[str],
) -> None:
    settings = RedisOptions(
        mode="cluster", nodes=tuple(redis_cluster), key="k", timeout=1, connect_timeout=0.5
    ).model_dump()
    pipeline, servers = Pipeline(settings), Servers(settings)
    by_server = {servers.of_key(key): key for key in (f"late-{number}".encode() for number in range(200))}
    *hanging, last = by_server
    keys: list[bytes | None] = [by_server[name] for name in (*hanging, last)]
    made: list[bytes | None] = [packed("SET", key.decode(), "1") for key in by_server.values()]
    records, _ = pipeline.records(keys, made, [1] * len(keys), keys)
    batch = Batch("", Priority.MEDIUM, 0.0)
    batch.extend(records, [0], Portion(1, 1, None))
    for name, key in by_server.items():
        servers.client(name).delete(key)
    try:
        for name in hanging:
            servers.client(name).client_pause(60_000, all=False)
        with pytest.raises(TimedOut):
            pipeline.deliver(batch)
        assert servers.client(last).get(by_server[last]) is None
    finally:
        for name in hanging:
            servers.client(name).client_unpause()
    pipeline.deliver(batch)
    assert [servers.client(name).get(key) for name, key in by_server.items()] == [b"1"] * len(by_server)
    pipeline.close()
    servers.close()


def test_only_keys_of_rows_that_were_written_expire(server: RedisServer) -> None:
    with server.client() as client:
        client.set("k", "of someone else")
        pipeline = RedisTask(options(server, command="RPUSH", ttl=100))
        rejected = pipeline.write([b"a", b"k", b"a"], [packed("RPUSH", key, "1") for key in ("a", "k", "a")])
        assert {number: reason.split()[0] for number, reason in rejected.items()} == {1: "WRONGTYPE"}
        assert client.ttl("k") == -1
        assert 0 < client.ttl("a") <= 100
        assert client.llen("a") == 2
        pipeline.close()


def test_a_row_that_replaces_one_without_an_answer_stays_the_last(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, answers = RedisTask(options(server, command="SET")), [0]
    reply = Pipeline._reply  # noqa: SLF001 - the answers of a server that is a replica for a moment

    def refused_at_first(self: Pipeline, connection: Any) -> Any:
        answers[0] += 1
        found = reply(self, connection)
        return ReadOnlyError("READONLY of a replica") if answers[0] == 1 else found

    monkeypatch.setattr(Pipeline, "_reply", refused_at_first)
    pipeline.write([b"k", b"k"], [packed("SET", "k", "old"), packed("SET", "k", "new")])
    with server.client() as client:
        assert client.get("k") == "new"
    pipeline.close()
