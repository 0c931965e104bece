"""From settings to a connected client."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from orchestrator.access import build_client, find_hosts, open_session
from orchestrator.client import Client
from orchestrator.errors import NotRunning
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


@contextmanager
def connected_hosts(settings: Settings, *, start_own: bool = True) -> Iterator[tuple[str, bool]]:
    """The configured ZooKeeper or the one that runs here, and whether it goes on without us.

    `start_own`: where none runs but an earlier one has left its data, that is served for as long as the
    command takes, so that the jobs of an earlier `run` can be looked at. Raises NotRunning.
    """
    with ExitStack() as stack:
        try:
            hosts, goes_on = find_hosts(settings), True
        except NotRunning:
            # Loaded where it is needed: most commands find a server that runs.
            from orchestrator.cli import own_server  # noqa: PLC0415

            if not (start_own and own_server.has_data(settings)):
                raise
            hosts, goes_on = own_server.own_or_neighbours(settings, stack), False
        yield hosts, goes_on
