"""A real ZooKeeper server and the real zkCli, run from the jars that PySpark ships."""

from queues.embedded.config import EnsembleMember, ServerConfig
from queues.embedded.directory import RunningServer, login_of, running_server
from queues.embedded.ensemble import EmbeddedEnsemble
from queues.embedded.server import EmbeddedZooKeeper
from queues.model.errors import DataDirectoryInUse, PortTaken, ServerStartFailed

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
