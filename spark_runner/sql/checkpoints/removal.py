"""Puts checkpoints away: a rename first, so that a process that dies leaves a checkpoint whole or none."""

import contextlib
import re
import uuid

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.folders import Folders
from spark_runner.sql.checkpoints.record import RECORD

_PUT_AWAY = re.compile(r"\.(?P<name>.+)-removed-[0-9a-f]{32}", re.DOTALL)


def put_away(folders: Folders, url: str) -> str:
    """Rename a checkpoint to a name that no stream reads; returns its URL.

    Raises ConnectorError for a folder that is no checkpoint.
    """
    if folders.is_link(url):
        raise ConnectorError(f"'{url}' is a symbolic link, not a checkpoint; nothing was removed")
    if folders.read(f"{url}/{RECORD}") is None:
        raise ConnectorError(f"'{url}' has no {RECORD}, so it is no checkpoint; nothing was removed")
    parent, _, name = url.rpartition("/")
    aside = f"{parent}/.{name}-removed-{uuid.uuid4().hex}"
    folders.rename(url, aside)
    return aside


def remove(folders: Folders, url: str) -> None:
    """Remove a checkpoint that no running job on this host uses; raises ConnectorError."""
    with folders.lock(url) as is_ours:
        if not is_ours:
            raise ConnectorError(f"a running driver on this host uses '{url}'; nothing was removed")
        aside = put_away(folders, url)
    folders.delete(aside)


def sweep(folders: Folders, url: str) -> None:
    """Delete what earlier removals of this checkpoint have put away and left behind."""
    parent, _, name = url.rpartition("/")
    for entry in folders.names(parent) or ():
        found = _PUT_AWAY.fullmatch(entry)
        if found and found["name"] == name:
            # A remainder has no effect, and the next start of the stream tries again.
            with contextlib.suppress(ConnectorError):
                folders.delete(f"{parent}/{entry}")
