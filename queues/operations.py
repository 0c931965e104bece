"""The four operations a multi is made of, as values.

Nobody changes one; they are not `frozen` because making one would take three times as long, ten times for
each item that is moved.
"""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Check:
    """The node is there, at this version; -1 = at any version."""

    path: str
    version: int = -1

    def __str__(self) -> str:
        return f"check {self.path}"


READ, WRITE, CREATE, DELETE = 1, 2, 4, 8
ALL = 31
"""Read, write, create, delete, and change the rights."""


class Grant(NamedTuple):
    """One entry of a node's ACL: what whoever `scheme` knows as `id` may do."""

    perms: int
    scheme: str
    id: str

    @property
    def is_open(self) -> bool:
        """Whether it is for everybody who reaches ZooKeeper."""
        return (self.scheme, self.id) == ("world", "anyone")


@dataclass(slots=True)
class Create:
    """Make a node that is not there yet."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    grant: Grant | None = None  # beside the rights that the session gives to all that it makes

    def __str__(self) -> str:
        return f"create {self.path}"


@dataclass(slots=True)
class Set:
    """Replace the data of a node at this version; -1 = at any version."""

    path: str
    data: bytes
    version: int

    def __str__(self) -> str:
        return f"set {self.path}"


@dataclass(slots=True)
class Delete:
    """Remove a childless node at this version; -1 = at any version."""

    path: str
    version: int = -1

    def __str__(self) -> str:
        return f"delete {self.path}"


Operation = Check | Create | Set | Delete
