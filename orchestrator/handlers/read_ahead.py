"""Reads of the nodes of one job: those that its handler is sure to need in one request."""

from collections.abc import Mapping

from queues import AccessDenied, NodeData, Session

_NOTHING: Mapping[str, NodeData | None] = {}  # one for all: a worker has thousands of jobs


class ReadAhead:
    """Returns each node once as it was read ahead, and then as it is now. Used by one thread at a time."""

    __slots__ = ("_found", "_session")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found = _NOTHING  # and not used yet

    def read(self, *paths: str) -> None:
        """Read these nodes in one request, which costs little more than a read of one."""
        try:
            self._found = {**self._found, **dict(zip(paths, self._session.get_many(paths), strict=True))}
        except AccessDenied:  # to one of them: each is read, or refused, by itself
            self.forget()

    def get(self, path: str) -> NodeData | None:
        """A node as it was read ahead; without that, as it is now."""
        if path not in self._found:
            return self._session.get(path)
        found = self._found[path]
        self.drop(path)
        return found

    def drop(self, path: str) -> None:
        """Forget one node that may have changed since."""
        if path in self._found:
            left = {other: node for other, node in self._found.items() if other != path}
            self._found = left or _NOTHING

    def forget(self) -> None:
        """Forget all that was read ahead: the handler begins, or time has passed."""
        self._found = _NOTHING
