"""Find the ZooKeeper of a command, and connect a client to it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from orchestrator.cli.folding import say
from orchestrator.cli.options import Verbosity
from orchestrator.client.connect import (
    build_jobs,
    build_queue_set,
    client_name,
    find_zookeeper,
    open_session,
)
from orchestrator.config.settings import Settings, load_settings
from orchestrator.model.errors import NotRunning
from queues import Session, Unreachable

if TYPE_CHECKING:
    from orchestrator.admin.views import Views
    from orchestrator.client.client import Client
    from orchestrator.client.jobs import Jobs

_PATIENCE_SECONDS = 3.0  # a user who waits longer has to see why


@contextmanager
def command_session(settings: Settings) -> Iterator[Session]:
    """A session for a command, which shows on a terminal that it waits; raises Unreachable, AccessDenied.

    The error has a line about each server of an ensemble.
    """
    with ExitStack() as stack:
        notice = threading.Timer(_PATIENCE_SECONDS, _say_waiting, [settings])
        notice.daemon = True
        notice.start()
        try:
            session = stack.enter_context(open_session(settings, settings.zookeeper_hosts))
        except Unreachable as error:
            raise with_servers(error, settings.connect_timeout) from error
        finally:
            notice.cancel()
        yield session


def with_servers(error: Unreachable, seconds: float) -> Unreachable:
    """The error after a wait of these seconds, with a line about each server of an ensemble."""
    # Loaded lazily: it is for errors alone.
    from orchestrator.doctor.ensemble import connection_lines  # noqa: PLC0415

    return Unreachable(error.hosts, seconds, error.origin, connection_lines(error.hosts))


def _say_waiting(settings: Settings) -> None:
    if sys.stderr.isatty() and not Verbosity.quiet:
        limit = f"{settings.connect_timeout:.0f} s"
        say(f"waiting for ZooKeeper at {settings.zookeeper_hosts} (up to {limit}) ...")


@contextmanager
def connected_jobs() -> Iterator["Jobs"]:
    """Jobs in the configured or running ZooKeeper; raises NotRunning, Unreachable."""
    settings = find_zookeeper(load_settings())
    with command_session(settings) as session:
        yield build_jobs(session, settings)


@contextmanager
def reached_zookeeper(settings: Settings, *, start_own: bool = True) -> Iterator[Settings]:
    """The settings with the configured ZooKeeper, or with the local server of `up`, `zookeeper` or `run`.

    With `start_own`, a local server is started for the duration of the command if none runs but an earlier
    one has left its data: so the jobs of an earlier `run` can be inspected. Raises NotRunning.
    """
    with ExitStack() as stack:
        try:
            found = find_zookeeper(settings)
        except NotRunning:
            # Loaded lazily: most commands find a running server.
            from orchestrator.cli import own_server  # noqa: PLC0415

            if not (start_own and own_server.has_data(settings)):
                raise
            found = own_server.own_or_running_server(settings, stack)
        yield found


@contextmanager
def connected_views() -> Iterator["Views"]:
    """Views of jobs, which load in half the time of a client; the ZooKeeper and errors of `connected`."""
    from orchestrator.admin.views import Views  # noqa: PLC0415 - lazy: other commands need no views

    with (
        reached_zookeeper(load_settings()) as settings,
        command_session(settings) as session,
    ):
        yield Views(build_queue_set(session, settings, owner=client_name()))


@contextmanager
def connected(*, start_own: bool = True) -> Iterator[tuple["Client", Settings]]:
    """A client of the ZooKeeper that `reached_zookeeper` finds; raises NotRunning, Unreachable."""
    from orchestrator.client.client import build_client  # noqa: PLC0415 - lazy: `job submit` needs no client

    with (
        reached_zookeeper(load_settings(), start_own=start_own) as settings,
        command_session(settings) as session,
    ):
        yield build_client(session, settings), settings
