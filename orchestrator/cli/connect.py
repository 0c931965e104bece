"""From settings to a connected client."""

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.access import open_session
from orchestrator.cli.hosts import reached_zookeeper
from orchestrator.client import Client, build_client
from orchestrator.settings import Settings, load_settings


@contextmanager
def connected(*, start_own: bool = True) -> Iterator[tuple[Client, Settings]]:
    """A client of the ZooKeeper that `reached_zookeeper` finds; raises NotRunning, Unreachable."""
    with (
        reached_zookeeper(load_settings(), start_own=start_own) as settings,
        open_session(settings, settings.zookeeper_hosts) as session,
    ):
        yield build_client(session, settings), settings
