"""Reads of many nodes, some of which may be closed to this login."""

from collections.abc import Sequence

from queues import AccessDenied, NodeData, Session


def readable_nodes(session: Session, paths: Sequence[str]) -> Sequence[NodeData | AccessDenied | None]:
    """The nodes in few requests, and the refusal of each that is closed: it refuses its whole request."""
    try:
        return session.get_many(paths)
    except AccessDenied as error:
        if len(paths) == 1:
            return [error]
        middle = len(paths) // 2
        return [*readable_nodes(session, paths[:middle]), *readable_nodes(session, paths[middle:])]
