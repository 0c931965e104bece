"""When a folder is listed again: the cost of a listing bounds how often, and no change waits for long."""

from types import SimpleNamespace
from typing import Any

import pytest

from queues.store import watched_folder
from queues.store.watched_folder import LARGE, WatchedFolder


class Listed:
    """A session that lists this many names."""

    def __init__(self, count: int) -> None:
        self.connections = 0
        self._names = [str(number) for number in range(count)]

    def listing(self, _path: str, _wake: object) -> tuple[list[str], Any]:
        return self._names, SimpleNamespace(children_zxid=1)


def test_a_new_item_in_a_folder_that_is_not_followed_waits_for_a_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 0.0, *[100.0] * 10])  # a listing that took long
    monkeypatch.setattr(watched_folder, "time", SimpleNamespace(monotonic=lambda: next(now)))
    folder = WatchedFolder(Listed(LARGE - 1), "/folder", lambda: None)  # type: ignore[arg-type] # all that it asks of a session
    assert folder.refresh()
    folder.changed = True
    assert 0 < folder.rest_left() <= 1
