"""What can go wrong when a server starts."""

from pathlib import Path

from queues.errors import QueueError


class ServerStartFailed(QueueError):
    """The ZooKeeper server did not start; the message tells why and where its log is."""


class PortTaken(ServerStartFailed):
    """Another process listens on the port; choose another port or stop that process."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} on {host} is taken by another process; choose another port or stop it")
        self.host = host
        self.port = port


class DataDirectoryInUse(QueueError):
    """Another live server uses the data directory; use that server, stop it, or choose another directory."""

    def __init__(self, path: Path, address: str | None, pid: int | None, owner: str) -> None:
        if address is None:
            whom = "a server that is just starting or ending"
        else:
            whom = f"the server at {address}, run by process {pid}" + (f" ({owner})" if owner else "")
        super().__init__(f"{path} is in use by {whom}; use it, stop it, or choose another directory")
        self.path = path
        self.address = address
        self.pid = pid
        self.owner = owner
