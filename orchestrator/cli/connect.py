"""From settings to a connected client."""

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.access import build_client
from orchestrator.cli.hosts import connected_hosts
from orchestrator.client import Client
from orchestrator.entry import open_session
from orchestrator.settings import Settings, load_settings


@contextmanager
def connected(*, start_own: bool = True) -> Iterator[tuple[Client, Settings]]:
    """A client of the ZooKeeper that `connected_hosts` finds; raises NotRunning, Unreachable."""
    settings = load_settings()
    with (
        connected_hosts(settings, start_own=start_own) as (hosts, _),
        open_session(settings, hosts) as session,
    ):
        yield build_client(session, settings), settings
