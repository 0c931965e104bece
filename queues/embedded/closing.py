"""Closes all nodes of a server, those of ZooKeeper itself among them, to all but one login."""

from queues.access_walk import access_below
from queues.operations import ALL, Delete
from queues.session import Grant, Login, Rights, Session, SessionSettings

_OF_ZOOKEEPER = {"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}
_TIMEOUT_SECONDS = 30.0  # a large tree of an earlier version, on a slow disk


def close_nodes(hosts: str, *, superuser: Login, owner: Login, is_new: bool) -> None:
    """Give every node to `owner` alone, whoever made it; raises what a session raises.

    ZooKeeper makes `/` and `/zookeeper` writable for everybody: until they are closed, whoever reaches the
    port can make nodes there. In a server that `is_new` all of them are removed.
    """
    rights = (Grant(ALL, "digest", owner.digest_id),)

    def only_owner(_path: str, found: Rights) -> tuple[Grant, ...] | None:
        return None if found.grants == rights else rights

    settings = SessionSettings(hosts, digest=superuser, call_timeout=_TIMEOUT_SECONDS)
    with Session(settings) as session:
        paths = [path for path, _ in access_below(session, "/", only_owner)]
        if is_new:
            for path in reversed(paths):
                if path not in _OF_ZOOKEEPER:
                    session.send([Delete(path)], _TIMEOUT_SECONDS)
