"""What runs from the jars that PySpark ships: a real ZooKeeper server, and the real zkCli."""

from queues.embedded.config import EnsembleMember, ServerConfig
from queues.embedded.directory import RunningServer, running_server
from queues.embedded.ensemble import EmbeddedEnsemble
from queues.embedded.errors import DataDirectoryInUse, PortTaken, ServerStartFailed
from queues.embedded.login import login_of
from queues.embedded.server import EmbeddedZooKeeper

__all__ = [
    "DataDirectoryInUse",
    "EmbeddedEnsemble",
    "EmbeddedZooKeeper",
    "EnsembleMember",
    "PortTaken",
    "RunningServer",
    "ServerConfig",
    "ServerStartFailed",
    "login_of",
    "running_server",
]
