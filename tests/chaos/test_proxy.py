"""Each fault of the proxy, on a real server and a client that connects to the server directly."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from queues.embedded.ports import free_ports
from tests.chaos.link import Direction
from tests.chaos.proxy import FaultProxy, ProxyLoop
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

SESSION_S = 6.0
"""Longer than the faults here, which end before a client gives up a silent server (4 s)."""


@pytest.fixture(scope="module")
def proxies() -> Iterator[ProxyLoop]:
    with ProxyLoop() as loop:
        yield loop


@pytest.fixture
def proxy(proxies: ProxyLoop, zookeeper_hosts: str) -> Iterator[FaultProxy]:
    with FaultProxy(proxies, zookeeper_hosts) as made:
        yield made


@pytest.fixture
def direct(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[KazooClient]:
    with zookeeper_client(zookeeper_hosts) as client:
        client.create(zookeeper_root)
        yield client


@pytest.fixture
def client(proxy: FaultProxy, direct: KazooClient) -> Iterator[KazooClient]:  # noqa: ARG001 - the root is there
    made = KazooClient(
        proxy.address, timeout=SESSION_S, connection_retry=KazooRetry(-1, delay=0.05, max_delay=0.2)
    )
    made.start(timeout=10)
    yield made
    made.stop()
    made.close()


def multi(client: KazooClient, *paths: str) -> list[object]:
    transaction = client.transaction()
    for path in paths:
        transaction.create(path)
    return list(transaction.commit())


def back(client: KazooClient) -> None:
    wait_until(lambda: client.state == KazooState.CONNECTED, 10, "the client is connected again")


def test_what_is_not_broken_passes(client: KazooClient, proxy: FaultProxy, zookeeper_root: str) -> None:
    fired: list[object] = []
    assert client.exists(f"{zookeeper_root}/big", watch=fired.append) is None
    client.create(f"{zookeeper_root}/big", b"x" * 700_000)
    assert client.get(f"{zookeeper_root}/big")[0] == b"x" * 700_000
    wait_until(lambda: fired, 5, "the watch fires through the proxy")
    assert multi(client, f"{zookeeper_root}/a", f"{zookeeper_root}/b")[0] == f"{zookeeper_root}/a"
    assert proxy.counters.connections == 1
    assert proxy.counters.cut == 0


def test_a_dropped_reply_is_of_a_multi_that_was_applied(
    client: KazooClient, proxy: FaultProxy, direct: KazooClient, zookeeper_root: str
) -> None:
    session = client.client_id
    proxy.drop_next_multi_reply()
    client.create(f"{zookeeper_root}/single")  # not a multi
    with pytest.raises(ConnectionLoss):
        multi(client, f"{zookeeper_root}/lost")
    assert direct.exists(f"{zookeeper_root}/lost")
    assert proxy.counters.replies_dropped == 1
    back(client)
    multi(client, f"{zookeeper_root}/next")  # one reply only
    assert client.client_id == session
    assert proxy.counters.connections == 2


def test_a_refused_multi_does_not_use_the_fault_up(
    client: KazooClient, proxy: FaultProxy, direct: KazooClient, zookeeper_root: str
) -> None:
    proxy.drop_next_multi_reply()
    multi(client, zookeeper_root)  # exists already
    assert proxy.counters.replies_dropped == 0
    with pytest.raises(ConnectionLoss):
        multi(client, f"{zookeeper_root}/lost")
    assert direct.exists(f"{zookeeper_root}/lost")


def test_while_it_refuses_no_connection_passes(client: KazooClient, proxy: FaultProxy) -> None:
    proxy.refuse(1.0)
    wait_until(lambda: proxy.counters.refused >= 2, 10, "the client tries and is refused")
    assert proxy.counters.connections == 1
    back(client)
    assert proxy.counters.connections == 2


def test_with_upstream_cut_a_request_arrives_late(
    client: KazooClient, proxy: FaultProxy, direct: KazooClient, zookeeper_root: str
) -> None:
    proxy.cut_upstream(60)
    reply = client.create_async(f"{zookeeper_root}/late")
    wait_until(lambda: proxy.counters.held[Direction.UP], 5, "the request is held back")
    direct.sync(zookeeper_root)
    assert direct.exists(f"{zookeeper_root}/late") is None
    assert not reply.ready()
    proxy.cut_upstream(0.1)
    reply.get(timeout=5)
    assert direct.exists(f"{zookeeper_root}/late")
    assert proxy.counters.cut == 0


def test_a_request_arrives_even_when_its_client_is_gone(
    client: KazooClient, proxy: FaultProxy, direct: KazooClient, zookeeper_root: str
) -> None:
    proxy.cut_upstream(60)
    client.create_async(f"{zookeeper_root}/late")
    wait_until(lambda: proxy.counters.held[Direction.UP], 5, "the request is held back")
    client.stop()
    assert direct.exists(f"{zookeeper_root}/late") is None
    proxy.heal()
    wait_until(lambda: direct.exists(f"{zookeeper_root}/late"), 5, "the request arrives after its sender")


def test_with_downstream_cut_a_request_is_applied_and_not_answered(
    client: KazooClient, proxy: FaultProxy, direct: KazooClient, zookeeper_root: str
) -> None:
    proxy.cut_downstream(60)
    reply = client.create_async(f"{zookeeper_root}/applied")
    wait_until(lambda: direct.exists(f"{zookeeper_root}/applied"), 5, "the request is applied")
    wait_until(lambda: proxy.counters.held[Direction.DOWN], 5, "the reply is held back")
    assert not reply.ready()
    proxy.heal()
    assert reply.get(timeout=5) == f"{zookeeper_root}/applied"


def test_what_is_discarded_never_arrives_and_costs_the_connection(
    client: KazooClient, proxy: FaultProxy, direct: KazooClient, zookeeper_root: str
) -> None:
    proxy.cut_upstream(60, discard=True)
    reply = client.create_async(f"{zookeeper_root}/never")
    wait_until(lambda: proxy.counters.discarded[Direction.UP], 5, "the request is discarded")
    proxy.heal()
    with pytest.raises(ConnectionLoss):
        reply.get(timeout=5)
    back(client)
    assert direct.exists(f"{zookeeper_root}/never") is None
    assert proxy.counters.cut == 1


def test_a_silence_longer_than_the_session_ends_it(proxy: FaultProxy, direct: KazooClient) -> None:
    states: list[str] = []
    with zookeeper_client(proxy.address, timeout=1) as client:
        ephemeral = client.create("/silent-", ephemeral=True, sequence=True)
        client.add_listener(states.append)
        proxy.cut_upstream(60)
        wait_until(lambda: direct.exists(ephemeral) is None, 10, "the server ends the session")
        proxy.heal()
        wait_until(lambda: KazooState.LOST in states, 10, "the client has lost its session")


def test_a_cut_connection_comes_back_with_its_session(
    client: KazooClient, proxy: FaultProxy, zookeeper_root: str
) -> None:
    session = client.client_id
    client.create(f"{zookeeper_root}/mine", ephemeral=True)
    proxy.cut()
    wait_until(lambda: proxy.counters.connections == 2, 10, "the client reconnects")
    back(client)
    assert client.exists(f"{zookeeper_root}/mine").ephemeralOwner == session[0]
    assert proxy.counters.cut == 1


def test_after_retarget_connections_go_elsewhere(
    client: KazooClient, proxy: FaultProxy, proxies: ProxyLoop, zookeeper_hosts: str
) -> None:
    with FaultProxy(proxies, zookeeper_hosts) as other:
        proxy.retarget(other.address)
        wait_until(lambda: other.counters.connections == 1, 10, "the client connects through the other proxy")
        back(client)


def test_a_server_that_is_not_there_is_passed_over(proxies: ProxyLoop, zookeeper_hosts: str) -> None:
    closed = f"127.0.0.1:{free_ports('127.0.0.1', 1)[0]}"
    with FaultProxy(proxies, f"{closed},{zookeeper_hosts},{closed}") as proxy:
        for _ in range(3):  # whichever server is next
            with zookeeper_client(proxy.address) as client:
                assert client.exists("/")
        proxy.retarget(closed)
        with closing(socket.create_connection(("127.0.0.1", int(proxy.address.rpartition(":")[2])), 5)) as it:
            assert it.recv(1) == b""
        assert proxy.counters.unreachable == 1


def test_what_is_not_the_protocol_is_cut_off(proxy: FaultProxy) -> None:
    with closing(socket.create_connection(("127.0.0.1", int(proxy.address.rpartition(":")[2])), 5)) as it:
        it.sendall(b"srvr")
        assert it.recv(1) == b""
