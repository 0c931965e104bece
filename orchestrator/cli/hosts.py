"""Which ZooKeeper a command talks to, and the way there for commands that only enqueue and wait."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from orchestrator.access import find_zookeeper, open_session
from orchestrator.entry import build_jobs
from orchestrator.errors import NotRunning
from orchestrator.jobs import Jobs
from orchestrator.settings import Settings, load_settings


@contextmanager
def connected_jobs() -> Iterator[Jobs]:
    """Jobs in the ZooKeeper that is configured, or runs here; raises NotRunning, Unreachable."""
    settings = find_zookeeper(load_settings())
    with open_session(settings, settings.zookeeper_hosts) as session:
        yield build_jobs(session, settings)


@contextmanager
def reached_zookeeper(settings: Settings, *, start_own: bool = True) -> Iterator[Settings]:
    """The settings with the configured ZooKeeper, or with the one that runs here.

    `start_own`: where none runs but an earlier one has left its data, that is served for as long as the
    command takes, so that the jobs of an earlier `run` can be looked at. Raises NotRunning.
    """
    with ExitStack() as stack:
        try:
            found = find_zookeeper(settings)
        except NotRunning:
            # Loaded where it is needed: most commands find a server that runs.
            from orchestrator.cli import own_server  # noqa: PLC0415

            if not (start_own and own_server.has_data(settings)):
                raise
            found = own_server.own_or_neighbours(settings, stack)
        yield found
