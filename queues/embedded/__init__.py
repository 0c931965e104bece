"""A real ZooKeeper server, started from the jars that PySpark ships: development, demo, tests."""

from queues.embedded.config import Member, ServerConfig
from queues.embedded.directory import RunningServer, running_server
from queues.embedded.ensemble import EmbeddedEnsemble
from queues.embedded.errors import DataDirectoryInUse, PortTaken, ServerStartFailed
from queues.embedded.server import EmbeddedZooKeeper

__all__ = [
    "DataDirectoryInUse",
    "EmbeddedEnsemble",
    "EmbeddedZooKeeper",
    "Member",
    "PortTaken",
    "RunningServer",
    "ServerConfig",
    "ServerStartFailed",
    "running_server",
]
