"""What ZooKeeper knows of a node."""

from dataclasses import dataclass

from kazoo.protocol.states import ZnodeStat


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper knows of a node; times in epoch milliseconds of the ensemble."""

    version: int
    created: int
    modified: int
    children: int
    children_zxid: int  # moves with each child that comes or goes
    owner: int  # session id of an ephemeral's owner, 0 for a persistent node

    @classmethod
    def of(cls, stat: ZnodeStat) -> "Stat":
        """The same from kazoo's tuple."""
        return cls(
            stat.version, stat.ctime, stat.mtime, stat.numChildren, stat.pzxid, stat.ephemeralOwner or 0
        )
