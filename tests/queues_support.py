"""Support for tests of the queues: sessions and queue sets below the root of one test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from queues.model.names import Layout
from queues.queue_set import QueueSet
from queues.session import Session, SessionSettings
from tests.waiting import wait_until

QUEUES = ("accept", "running", "finish", "dead")

Open = Callable[..., QueueSet]


def open_session(hosts: str, *, session_timeout: float = 4.0) -> Session:
    return Session(SessionSettings(hosts, session_timeout=session_timeout, call_timeout=20)).start()


@pytest.fixture
def open_queues(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[Open]:
    """Open queue sets, each on its own session; all sessions are closed after the test."""
    sessions: list[Session] = []

    def make(owner: str = "worker", session_timeout: float = 4.0) -> QueueSet:
        session = open_session(zookeeper_hosts, session_timeout=session_timeout)
        sessions.append(session)
        made = QueueSet(session, Layout(zookeeper_root), QUEUES, dead="dead", owner=owner)
        made.ensure_pool()
        return made

    yield make
    for session in sessions:
        session.close()


def count_requests(session: Session, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A counter of the requests of the session from now on."""
    client, sent = session._client, [0]  # noqa: SLF001 - all requests pass here
    call = client._call  # noqa: SLF001 - likewise

    def count(*arguments: Any) -> Any:
        sent[0] += 1
        return call(*arguments)

    monkeypatch.setattr(client, "_call", count)
    return lambda: sent[0]


def places_of(queue_set: QueueSet, item_id: str) -> list[str]:
    """Every queue with a token of the item."""
    return [queue for queue in QUEUES for token in queue_set.tokens(queue) if token.id == item_id]


def expire(session: Session) -> None:
    """End the session at the server, as a partition longer than its timeout would; a new session follows."""
    client = session._client  # noqa: SLF001 - likewise
    generation = session.generation
    thief = KazooClient(session.settings.hosts, client_id=client.client_id, timeout=10)
    thief.start(timeout=10)
    thief.stop()  # closing the copy ends the session
    thief.close()
    wait_until(lambda: session.generation > generation, 30, "the loss of the session is noticed")
    wait_until(lambda: session.wait_connected(0.1), 30, "a new session is there")
