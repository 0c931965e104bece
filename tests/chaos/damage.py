"""Faults that need a separate client: a session closed from outside, a record overwritten by garbage."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError

from tests.chaos.events import Fields, Kind
from tests.chaos.history import History

_CONNECT_TIMEOUT_S = 5
_GARBAGE = (b"", b"\xff\xfe garbage", b'{"id": "torn off in the mid', b"[1, 2, 3]")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The id and password of a session: they let another client close it."""

    session: int
    password: bytes


def end_session(hosts: str, credentials: Credentials) -> bool:
    """Close a session at the server; False when it was gone already.

    Raises KazooTimeoutError when no server answers. To the owner it is an expiry.
    """
    thief = KazooClient(hosts, client_id=(credentials.session, credentials.password), timeout=10)
    try:
        thief.start(timeout=_CONNECT_TIMEOUT_S)
        taken: bool = thief.client_id[0] == credentials.session  # else the server gave a new one
    finally:
        thief.stop()
        thief.close()
    return taken


class Spoiler:
    """Overwrites records below `root` and adds each to the history; `client` connects to servers directly."""

    def __init__(self, client: KazooClient, root: str, history: History, rng: random.Random) -> None:
        self._client = client
        self._root = root
        self._history = history
        self._rng = rng

    def spoil(self, count: int) -> list[str]:
        """Write garbage into `count` records, or all if there are fewer; returns their ids."""
        spoilt: list[str] = []
        for bucket in self._shuffled(f"{self._root}/jobs"):
            for item_id in self._shuffled(f"{self._root}/jobs/{bucket}"):
                if len(spoilt) == count:
                    return spoilt
                if self._spoil(f"{self._root}/jobs/{bucket}/{item_id}", item_id):
                    spoilt.append(item_id)
        return spoilt

    def _spoil(self, path: str, item_id: str) -> bool:
        try:
            data, stat = self._client.get(path)
            run_key = str(json.loads(data)["run_key"])
        except (NoNodeError, ValueError, TypeError, KeyError):
            return False  # gone, or spoilt before
        before: Fields = {"id": item_id, "run_key": run_key, "version": stat.version}
        # Fenced like any other change, so that the checker can assign the version to a history.
        self._history.add(Kind.CORRUPT_SENT, **before)
        try:
            after = self._client.set(path, self._rng.choice(_GARBAGE), version=stat.version)
        except (BadVersionError, NoNodeError):
            self._history.add(Kind.CORRUPT_REFUSED, **before)
            return False
        spoilt: Fields = {"id": item_id, "run_key": run_key, "version": after.version}
        self._history.add(Kind.CORRUPTED, **spoilt)
        return True

    def _shuffled(self, path: str) -> Sequence[str]:
        try:
            names = sorted(self._client.get_children(path))
        except NoNodeError:
            return []
        return self._rng.sample(names, len(names))
