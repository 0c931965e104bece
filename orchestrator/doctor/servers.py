"""The servers of the ensemble: which of them take connections from here."""

import socket
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from orchestrator.doctor.findings import Finding, Kind
from orchestrator.doctor.survey import Survey

_PORT = 2181  # ZooKeeper's own, where none is named
_CONNECT_SECONDS = 1.0  # who has not answered by then serves nobody well


class ServerStatus(BaseModel):
    """One of the servers that are configured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    reached: bool
    error: str = ""  # why it was not


def servers(hosts: str) -> Iterator[ServerStatus]:
    """Each server of a connection string, and whether it takes a connection now."""
    for address in filter(None, map(str.strip, hosts.partition("/")[0].split(","))):
        host, _, port = address.rpartition(":")
        target = (host.strip("[]"), int(port)) if host and port.isdecimal() else (address, _PORT)
        try:
            socket.create_connection(target, _CONNECT_SECONDS).close()
        except OSError as error:
            yield ServerStatus(address=address, reached=False, error=str(error))
        else:
            yield ServerStatus(address=address, reached=True)


def look_at_servers(survey: Survey) -> Iterator[Finding]:
    """Those that take none: as long as most of them do, nobody else notices."""
    for server in servers(survey.session.settings.hosts):
        if not server.reached:
            what = f"the server {server.address} takes no connection from here: {server.error}"
            remedy = "see whether it runs; without most of its servers ZooKeeper answers nobody"
            yield Finding.of(Kind.UNREACHABLE_SERVER, survey.layout.root, what, remedy)
