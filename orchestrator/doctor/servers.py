"""Checks of the servers of the ensemble: which of them accept connections from this host."""

import socket
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.survey import ClusterSnapshot

_PORT = 2181  # ZooKeeper's default
_CONNECT_SECONDS = 1.0  # a server that is slower is of no use


class ServerStatus(BaseModel):
    """One of the configured servers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    reached: bool
    error: str = ""  # why it was not


def servers(hosts: str) -> Iterator[ServerStatus]:
    """Each server of a connection string, and whether it accepts a connection now."""
    for address in filter(None, map(str.strip, hosts.partition("/")[0].split(","))):
        host, _, port = address.rpartition(":")
        target = (host.strip("[]"), int(port)) if host and port.isdecimal() else (address, _PORT)
        try:
            socket.create_connection(target, _CONNECT_SECONDS).close()
        except OSError as error:
            yield ServerStatus(address=address, reached=False, error=str(error))
        else:
            yield ServerStatus(address=address, reached=True)


def check_servers(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Servers that accept no connection: clients do not notice while a majority does."""
    for server in servers(snapshot.session.settings.hosts):
        if not server.reached:
            what = f"the server {server.address} accepts no connection from this host: {server.error}"
            remedy = "check that it runs: ZooKeeper needs a majority of its servers"
            yield Finding.of(FindingKind.UNREACHABLE_SERVER, snapshot.layout.root, what, remedy)
