"""Ports and the name of this host."""

import os
import socket
from collections.abc import Iterator

from orchestrator.config.settings import Settings
from orchestrator.doctor.findings import Finding, FindingKind
from queues import free_ports

_LOOPBACK = "127.0.0.1"


def check_ports(settings: Settings) -> Iterator[Finding]:
    """The port of the metrics, and loopback, on which a local ZooKeeper and local drivers listen."""
    try:
        (free,) = free_ports(_LOOPBACK, 1)
    except OSError as error:
        what = f"nothing can listen and connect on {_LOOPBACK}: {error}"
        remedy = "set the loopback interface up: `ip link set lo up`"
        yield Finding.of(FindingKind.NO_LOOPBACK, _LOOPBACK, what, remedy)
        return
    what = f"a local ZooKeeper and drivers can listen on {_LOOPBACK}, on ports that are free such as {free}"
    address = settings.metrics.address
    if not address:
        yield Finding.of(FindingKind.THIS_HOST, _LOOPBACK, f"{what}; metrics.address is not set", "")
    elif (refusal := _refusal(settings.metrics.host, settings.metrics.port)) is None:
        yield Finding.of(FindingKind.THIS_HOST, _LOOPBACK, f"{what}, and metrics.address {address} too", "")
    else:
        what = f"metrics.address {address} cannot be listened on: {refusal}"
        remedy = "if that is not a worker which runs already, end the program there or set another port"
        yield Finding.of(FindingKind.PORT_TAKEN, "metrics.address", what, remedy)


def _refusal(host: str, port: int) -> str | None:
    """Why a server cannot listen there now; None if it can."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, target in found[:1]:
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
                listener.bind(target)
                listener.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return None


def check_name(_settings: Settings) -> Iterator[Finding]:
    """The name of this host, by which executors of a cluster reach a driver."""
    name = os.uname().nodename
    try:
        socket.getaddrinfo(name, None)
    except OSError as error:
        what = f"the name {name} of this host has no address ({error.strerror or error})"
        what += ": drivers in client mode of a cluster do not start"
        remedy = f"add it to /etc/hosts, or set SPARK_LOCAL_IP for the worker; `getent hosts {name}` shows it"
        yield Finding.of(FindingKind.UNRESOLVED_HOST, name, what, remedy)
