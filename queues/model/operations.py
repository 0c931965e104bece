"""The four operations of a multi, as values.

They are never modified. They are not `frozen`, because construction would take three times as long, and each
move of an item constructs ten of them.
"""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Check:
    """The node exists at this version; -1 means any version."""

    path: str
    version: int = -1

    def __str__(self) -> str:
        return f"check {self.path}"


PERM_READ, PERM_WRITE, PERM_CREATE, PERM_DELETE = 1, 2, 4, 8
PERM_ALL = 31
"""Read, write, create, delete, and change the ACL."""


class Grant(NamedTuple):
    """One entry of a node's ACL: the permissions of the identity `id` in `scheme`."""

    perms: int
    scheme: str
    id: str

    @property
    def is_open(self) -> bool:
        """Whether it applies to every client of ZooKeeper."""
        return (self.scheme, self.id) == ("world", "anyone")


@dataclass(slots=True)
class Create:
    """Create a node that does not exist yet."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    grant: Grant | None = None  # in addition to the session's default ACL

    def __str__(self) -> str:
        return f"create {self.path}"


@dataclass(slots=True)
class Set:
    """Replace the data of a node at this version; -1 means any version."""

    path: str
    data: bytes
    version: int

    def __str__(self) -> str:
        return f"set {self.path}"


@dataclass(slots=True)
class Delete:
    """Remove a childless node at this version; -1 means any version."""

    path: str
    version: int = -1

    def __str__(self) -> str:
        return f"delete {self.path}"


Operation = Check | Create | Set | Delete
