"""kazoo's client, made from our settings."""

import logging
from collections.abc import MutableMapping
from typing import Any

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id

from queues.errors import AccessDenied
from queues.session.connection import Connection
from queues.session.contact import Contact
from queues.session.settings import Acl, SessionSettings
from queues.session.sockets import OwnSockets, Sockets, TlsSockets

# kazoo's default reaches an hour: a worker would stay away long after ZooKeeper is back. With two seconds,
# 2.8 after jitter, a session of ten seconds can outlive the loss of a server.
_MAX_RECONNECT_DELAY_SECONDS = 2.0
_RECONNECT_JITTER = 0.4


class _NoSecrets(logging.LoggerAdapter[logging.Logger]):
    """kazoo's log without its debug lines, in which passwords and the keys of sessions stand in the clear."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - logging's name
        return level >= logging.INFO and super().isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs


def acls(settings: SessionSettings) -> list[ACL]:
    """The rights on each node that is created."""
    if settings.rights:
        return [ACL(grant.perms, Id(grant.scheme, grant.id)) for grant in settings.rights]
    return list(CREATOR_ALL_ACL if settings.acl is Acl.CREATOR else OPEN_ACL_UNSAFE)


def build_client(settings: SessionSettings, contact: Contact) -> Any:
    """A client that is not started yet; raises AccessDenied when a file of the settings cannot be used."""
    retry = KazooRetry(
        max_tries=-1, delay=0.1, max_jitter=_RECONNECT_JITTER, max_delay=_MAX_RECONNECT_DELAY_SECONDS
    )
    sasl, digest = settings.sasl, settings.digest
    try:
        if settings.tls is not None:
            settings.tls.context()  # now, where it can still be told; kazoo would try for ever
        options = None if sasl is None else _sasl_options(sasl.user, sasl.secret())
        auth = None if digest is None else {("digest", f"{digest.user}:{digest.secret()}")}
    except (OSError, UnicodeDecodeError) as error:
        raise AccessDenied(settings.hosts, f"a file of the settings cannot be used: {error}") from error
    client = KazooClient(
        hosts=settings.hosts,
        timeout=settings.session_timeout,
        handler=_sockets(settings),
        default_acl=acls(settings),
        auth_data=auth,
        connection_retry=retry,
        command_retry=KazooRetry(max_tries=0),
        logger=_NoSecrets(logging.getLogger("kazoo")),
    )
    client._connection = Connection(client, retry.copy(), contact, options)  # noqa: SLF001 - no public way
    return client


def _sockets(settings: SessionSettings) -> Sockets:
    if settings.tls is not None:
        return TlsSockets(settings.tls)
    owner = None if settings.digest is None else settings.digest.server_uid
    return Sockets() if owner is None else OwnSockets(owner)


def _sasl_options(user: str, password: str) -> dict[str, str]:
    return {"mechanism": "DIGEST-MD5", "username": user, "password": password}
