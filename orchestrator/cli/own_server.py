"""A local ZooKeeper server, for commands without a configured ensemble."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orchestrator.client.connect import with_own_server
from orchestrator.config.directories import prepare_directories
from orchestrator.config.settings import Settings
from queues import STATE_FOLDER, DataDirectoryInUse, EmbeddedZooKeeper, ServerConfig, running_server

_NEIGHBOUR_SECONDS = 10.0  # within this time a server has finished its start or its stop
_TRANSIENT = "run"  # the owner of a server that ends with one command: no other command may depend on it


def has_data(settings: Settings) -> bool:
    """Whether an earlier local server has left its data."""
    return (settings.zookeeper_dir / STATE_FOLDER).is_dir()


def own_or_running_server(settings: Settings, stack: ExitStack) -> Settings:
    """The settings with a temporary local server, or with the one that another command runs now."""
    deadline = time.monotonic() + _NEIGHBOUR_SECONDS
    while True:
        try:
            return stack.enter_context(_served(settings, settings.zookeeper_dir, owner=_TRANSIENT))[0]
        except DataDirectoryInUse:
            if (running := running_server(settings.zookeeper_dir)) is not None:
                return with_own_server(settings, running.address, settings.zookeeper_dir)
            if time.monotonic() > deadline:
                raise


@contextmanager
def zookeeper_for_run(settings: Settings) -> Iterator[tuple[Settings, bool, Callable[[], None]]]:
    """The settings with the ZooKeeper for `run`, and whether the job can be inspected afterwards.

    The third part raises ServerEnded once a server of this command has ended by itself.

    It is the configured ensemble; else the server that `up` or `zookeeper` runs with this state directory;
    else a server that ends with the command. If another `run` uses the state directory, that server has its
    own directory, which is removed at the end.
    """
    prepare_directories(settings)
    if settings.zookeeper_hosts:
        yield settings, True, _never
        return
    with ExitStack() as stack:
        kept, check = True, _never
        try:
            found, check = stack.enter_context(_served(settings, settings.zookeeper_dir, owner=_TRANSIENT))
        except DataDirectoryInUse:
            running = running_server(settings.zookeeper_dir)
            if running is not None and running.owner != _TRANSIENT:
                found = with_own_server(settings, running.address, settings.zookeeper_dir)
            else:
                # The server of another `run` ends with its job: this job needs its own server.
                private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchestrator-")))
                found, check = stack.enter_context(_served(settings, private, owner=_TRANSIENT))
                kept = False
        yield found, kept, check


@contextmanager
def zookeeper_for_others(
    settings: Settings, *, owner: str, port: int | None
) -> Iterator[tuple[Settings, Callable[[], None]]]:
    """The settings with a server that other commands find; raises DataDirectoryInUse, PortTaken.

    The second part raises ServerEnded once the server has ended by itself.
    """
    prepare_directories(settings)
    with _served(settings, settings.zookeeper_dir, owner=owner, port=port, long_run=True) as found:
        yield found


@contextmanager
def _served(
    settings: Settings, data_dir: Path, *, owner: str, port: int | None = None, long_run: bool = False
) -> Iterator[tuple[Settings, Callable[[], None]]]:
    config = ServerConfig(data_dir, owner=owner, port=port or 0, long_run=long_run, closed=True)
    with EmbeddedZooKeeper(config) as server:
        yield with_own_server(settings, server.hosts, data_dir), server.check_running


def _never() -> None:
    """The check of a server that another process runs, and reports itself."""
