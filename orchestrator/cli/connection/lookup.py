"""Finds the connections that a script names, in the cluster of the command."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from orchestrator.cli.connect import command_session, reached_zookeeper
from orchestrator.config.settings import load_settings
from orchestrator.model.paths import Nodes
from spark_runner.sql.compiler.connections import Connection, FindConnection


@contextmanager
def cluster_connections() -> Iterator[FindConnection]:
    """A function that finds them; it connects to ZooKeeper with the first one, which raises NotRunning."""
    with ExitStack() as stack:
        found = list[FindConnection]()

        def find(name: str) -> Connection:
            if not found:
                # Lazy: few scripts name a connection, and `job submit` has to be quick.
                from orchestrator.connections.store import ConnectionStore  # noqa: PLC0415

                settings = stack.enter_context(reached_zookeeper(load_settings()))
                session = stack.enter_context(command_session(settings))
                found.append(ConnectionStore(session, Nodes(settings.root)).find)
            return found[0](name)

        yield find
