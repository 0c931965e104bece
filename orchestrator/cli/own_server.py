"""A ZooKeeper of our own, where none is configured."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orchestrator.errors import StateDirectoryError
from orchestrator.settings import Settings
from queues.embedded import DataDirectoryInUse, EmbeddedZooKeeper, ServerConfig, running_server
from queues.embedded.config import STATE_FOLDER

_NEIGHBOUR_SECONDS = 10.0  # a server that is just starting or ending is there, or gone, after that
_TRANSIENT = "run"  # the owner whose server ends with one job: nobody else may depend on it


def has_data(settings: Settings) -> bool:
    """Whether an earlier server of ours has left its data here."""
    return (settings.zookeeper_dir / STATE_FOLDER).is_dir()


def own_or_neighbours(settings: Settings, stack: ExitStack) -> str:
    """A server of our own for a moment, or that of a command that does the same right now."""
    deadline = time.monotonic() + _NEIGHBOUR_SECONDS
    while True:
        try:
            return stack.enter_context(_server(settings.zookeeper_dir, owner=_TRANSIENT)).hosts
        except DataDirectoryInUse:
            if (running := running_server(settings.zookeeper_dir)) is not None:
                return running.address
            if time.monotonic() > deadline:
                raise


@contextmanager
def zookeeper_for_run(settings: Settings) -> Iterator[tuple[str, bool]]:
    """The ZooKeeper of one job run here, and whether the job can be looked at afterwards.

    It is the configured one, that of `up`, else one of our own.
    """
    prepare_state_dir(settings)
    if settings.zookeeper_hosts:
        yield settings.zookeeper_hosts, True
        return
    with ExitStack() as stack:
        kept = True
        try:
            hosts = stack.enter_context(_server(settings.zookeeper_dir, owner=_TRANSIENT)).hosts
        except DataDirectoryInUse:
            running = running_server(settings.zookeeper_dir)
            if running is not None and running.owner != _TRANSIENT:
                hosts = running.address
            else:
                # Another `run` has the directory, and its server ends with its job: this one gets its own.
                private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchestrator-")))
                hosts, kept = stack.enter_context(_server(private, owner=_TRANSIENT)).hosts, False
        yield hosts, kept


@contextmanager
def zookeeper_for_others(settings: Settings, *, owner: str, port: int | None) -> Iterator[str]:
    """A server of our own that other terminals find; raises DataDirectoryInUse, PortTaken."""
    prepare_state_dir(settings)
    with _server(settings.zookeeper_dir, owner=owner, port=port, long_run=True) as server:
        yield server.hosts


def _server(
    data_dir: Path, *, owner: str, port: int | None = None, long_run: bool = False
) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(ServerConfig(data_dir, owner=owner, port=port or 0, long_run=long_run))


def prepare_state_dir(settings: Settings) -> None:
    """Make the state directory, for this user alone; raises StateDirectoryError when that cannot be."""
    try:
        settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=settings.state_dir):
            pass
    except OSError as error:
        raise StateDirectoryError(
            f"the state directory {settings.state_dir} cannot be written: {error.strerror}; "
            "set ORCHESTRATOR_STATE_DIR to one that can"
        ) from error
