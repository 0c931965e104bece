"""Connections to the servers of a table, of one server, Sentinel or Cluster, by redis-py."""

import re
from binascii import crc_hqx
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from spark_runner.connectors.errors import ConnectorError, Unreachable

LOST = (RedisConnectionError, RedisTimeoutError, OSError)
REFUSED = (AuthenticationError, AuthorizationError, NoPermissionError)
# The server, or another one, may accept the same command later.
_PASSING = (
    *(MovedError, AskError, TryAgainError, ClusterDownError, MasterDownError),
    *(ReadOnlyError, OutOfMemoryError),
)
_STATE = re.compile(r"(?!WRONGTYPE\b)[A-Z]{4,} ")  # of the server: MISCONF, NOREPLICAS, BUSY and others
_SLOTS = 16_384
_NO_CLUSTER = "Cluster mode is not enabled"
_NO_DATABASE = "DB index is out of range"


class Servers:
    """The masters that hold the keys of a table."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._cluster: RedisCluster | None = None
        self._clients: dict[str, Redis] = {}

    def of_key(self, key: bytes) -> str:
        """The name of the server that holds a key."""
        return self._node(slot(key)).name if self._options["mode"] == "cluster" else ""

    def names(self) -> list[str]:
        """The names of all masters."""
        if self._options["mode"] != "cluster":
            return [""]
        return sorted(node.name for node in self._known_cluster().get_primaries())

    def slots(self, name: str) -> tuple[str, ...]:
        """The slots of a master of a cluster, as this node has them; without a cluster, none.

        Raises Unreachable while keys of one of them move: a reader could miss them, or see them twice.
        """
        if self._options["mode"] != "cluster":
            return ()
        nodes: bytes = self.client(name).execute_command("CLUSTER", "NODES")
        (myself,) = [line.split() for line in nodes.decode().splitlines() if "myself" in line]
        slots = tuple(myself[8:])
        if any(each.startswith("[") for each in slots):
            raise Unreachable(f"{where(self._options)} moves keys from one master to another")
        return slots

    def client(self, name: str) -> Redis:
        """A client of one server, with one connection at a time; raises the errors of redis-py."""
        if name not in self._clients:
            self._clients[name] = self._made(name)
        return self._clients[name]

    def close(self) -> None:
        """Close all connections, and look for the masters again at the next use."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()

    def _made(self, name: str) -> Redis:
        host, port = self._options["host"], self._options["port"]
        if self._options["mode"] == "sentinel":
            host, port = self._sentinel().discover_master(self._options["master_name"])
        elif name:
            host, _, port = name.rpartition(":")
        return Redis(host=host, port=int(port), db=self._options["database"], **self._settings())

    def _sentinel(self) -> Sentinel:
        password = self._options["sentinel_password"]
        known = {"password": password} if password else {}
        settings = {**self._settings(), "username": None, "password": None} | known
        return Sentinel([address(each, 26_379) for each in self._options["nodes"]], sentinel_kwargs=settings)

    def _known_cluster(self) -> RedisCluster:
        if self._cluster is None:
            nodes = [ClusterNode(*address(each, self._options["port"])) for each in self._options["nodes"]]
            try:
                self._cluster = RedisCluster(startup_nodes=nodes, **self._settings())
            except RedisClusterException as error:  # it is no RedisError, whatever its cause
                if isinstance(error.__cause__, REFUSED):
                    raise error.__cause__ from None
                if _NO_CLUSTER in str(error):
                    raise ConnectorError(
                        f"{where(self._options)} is no cluster: use another 'mode'"
                    ) from error
                raise RedisConnectionError(str(error)) from error
        return self._cluster

    def _node(self, number: int) -> ClusterNode:
        return self._known_cluster().nodes_manager.get_node_from_slot(number)

    def _settings(self) -> dict[str, Any]:
        given = self._options
        tls = {"ssl": True, "ssl_ca_certs": given["ca_file"] or None} if given["tls"] else {}
        return {
            "username": given["username"] or None,
            "password": given["password"] or None,
            "socket_connect_timeout": given["connect_timeout"],
            "socket_timeout": given["timeout"],
            # What is sent again, and when, is decided where the rows are.
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,  # replies of one form, whatever the version of the server
            **tls,
        }


def passes(error: Exception) -> bool:
    """Whether an error in a reply tells a state of the server, which may pass, and not of a key or value."""
    return isinstance(error, _PASSING) or (
        isinstance(error, ResponseError) and bool(_STATE.match(str(error)))
    )


def slot(key: bytes) -> int:
    """The slot of a key in a cluster: of the part in braces, if there is one.

    https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ defines it.
    """
    opening = key.find(b"{")
    closing = key.find(b"}", opening + 1)
    if opening >= 0 and closing > opening + 1:
        key = key[opening + 1 : closing]
    return crc_hqx(key, 0) % _SLOTS


def address(node: str, port: int) -> tuple[str, int]:
    """Host and port of `host:port`; raises ConnectorError."""
    host, colon, given = node.rpartition(":")
    if not colon:
        return node, port
    if not given.isdecimal():
        raise ConnectorError(f"option 'nodes': '{node}' is not host:port")
    return host.strip("[]"), int(given)


def where(options: Mapping[str, Any]) -> str:
    """The server as messages name it."""
    if options["mode"] == "single":
        return f"Redis at {options['host']}:{options['port']}"
    kind = "Sentinels" if options["mode"] == "sentinel" else "cluster"
    return f"Redis of the {kind} at {', '.join(options['nodes'])}"


@contextmanager
def clear_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Raise errors of redis-py as ConnectorError, or Unreachable where a further attempt may succeed."""
    try:
        yield
    except REFUSED as error:
        raise ConnectorError(
            f"{where(options)} refused: {error};"
            " check options 'username' and 'password', and the rights of the user"
        ) from error
    except MasterNotFoundError as error:
        raise Unreachable(f"no Sentinel knows a master '{options['master_name']}' that answers") from error
    except LOST as error:
        raise Unreachable(f"{where(options)} does not answer: {error}") from error
    except ResponseError as error:
        if passes(error):
            raise Unreachable(f"{where(options)} refused for now: {error}") from error
        if _NO_DATABASE in str(error):
            raise ConnectorError(f"{where(options)} has no database {options['database']}") from error
        raise ConnectorError(f"{where(options)} refused: {error}") from error
    except (RedisError, RedisClusterException) as error:
        raise Unreachable(f"{where(options)} failed: {error}") from error
