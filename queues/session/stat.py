"""What ZooKeeper knows of a node."""

from typing import Any, NamedTuple


class Stat(NamedTuple):
    """What ZooKeeper knows of a node; times in epoch milliseconds of the ensemble."""

    version: int
    created: int
    modified: int
    children: int
    children_zxid: int  # moves with each child that comes or goes
    owner: int  # session id of an ephemeral's owner, 0 for a persistent node

    @classmethod
    def of(cls, stat: tuple[Any, ...]) -> "Stat":
        """The same from the eleven fields of kazoo's ZnodeStat, or from what its struct unpacks."""
        _, _, created, modified, version, _, _, owner, _, children, children_zxid = stat
        return cls(version, created, modified, children, children_zxid, owner or 0)
