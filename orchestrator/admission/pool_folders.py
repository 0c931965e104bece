"""Folders of which each pool has one: workers watch them, and look again when one changes."""

from collections.abc import Callable

from queues import Session, WatchedFolder


class PoolFolders:
    """The watched folders of pools, made when they are first asked for."""

    def __init__(self, session: Session, path_of: Callable[[str], str]) -> None:
        self._session, self._path_of = session, path_of
        self._folders: dict[str, WatchedFolder] = {}
        self._listeners: list[Callable[[], None]] = []
        session.on_change(self._rearm)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when a folder may have changed; it may only set an event."""
        self._listeners.append(listener)

    def wake(self) -> None:
        """Call all listeners."""
        for listener in self._listeners:
            listener()

    def of(self, pool: str) -> WatchedFolder:
        """The folder of a pool; raises the errors of requests."""
        folder = self._folders.get(pool)
        if folder is None:
            path = self._path_of(pool)
            self._session.ensure_path(path)
            folder = self._folders[pool] = WatchedFolder(self._session, path, self.wake)
        return folder

    def _rearm(self) -> None:
        for folder in list(self._folders.values()):
            folder.changed = True  # the watches ended with the connection
