"""A walk over all nodes below one that reads their rights and closes the open ones."""

from collections.abc import Callable, Iterator, Sequence

from queues.model.operations import PERM_ALL, Delete
from queues.session import Grant, Login, Rights, Seen, Session, SessionSettings
from queues.session.rights import MAX_ASKED

Closing = Callable[[str, Rights], Sequence[Grant] | None]
"""Returns the rights to set on the node at a path, None if its present rights are correct."""


def access_below(session: Session, top: str, closing: Closing | None = None) -> Iterator[tuple[str, Seen]]:
    """Each node from `top` down, with the rights that it had; `closing`, if given, closes it.

    The parent comes first, and its children are listed after it is closed, so that no other client can create
    one unnoticed. Raises what reads raise.
    """
    paths = [top]
    while paths:
        below = list[str]()
        for at in range(0, len(paths), MAX_ASKED):
            batch = paths[at : at + MAX_ASKED]
            found = session.access.read(batch)
            if closing is not None:
                _close(session, batch, found, closing)
            yield from zip(batch, found, strict=True)
            for path, names in zip(batch, session.access.children(batch), strict=True):
                below += [f"{path.rstrip('/')}/{name}" for name in names]
        paths = below


def _close(session: Session, paths: Sequence[str], found: Sequence[Seen], closing: Closing) -> None:
    changes = list[tuple[str, Sequence[Grant], int]]()
    for path, rights in zip(paths, found, strict=True):
        if isinstance(rights, Rights) and (grants := closing(path, rights)) is not None:
            changes.append((path, grants, rights.version))
    if changes:
        session.access.set(changes)


_OF_ZOOKEEPER = {"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}
_TIMEOUT_SECONDS = 30.0  # a large tree of an earlier version, on a slow disk


def close_nodes(hosts: str, *, superuser: Login, owner: Login, is_new: bool) -> None:
    """Give every node to `owner` alone, regardless of its creator; raises what a session raises.

    ZooKeeper creates `/` and `/zookeeper` writable for everyone: until they are closed, any user who reaches
    the port can create nodes there. If the server `is_new`, all such nodes are removed.
    """
    rights = (Grant(PERM_ALL, "digest", owner.digest_id),)

    def only_owner(_path: str, found: Rights) -> tuple[Grant, ...] | None:
        return None if found.grants == rights else rights

    settings = SessionSettings(hosts, digest=superuser, call_timeout=_TIMEOUT_SECONDS)
    with Session(settings) as session:
        paths = [path for path, _ in access_below(session, "/", only_owner)]
        if is_new:
            for path in reversed(paths):
                if path not in _OF_ZOOKEEPER:
                    session.send([Delete(path)], _TIMEOUT_SECONDS)
