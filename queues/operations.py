"""The four operations a multi is made of, as values.

Nobody changes one; they are not `frozen` because making one would take three times as long, ten times for
each item that is moved.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Check:
    """The node is there, at this version; -1 = at any version."""

    path: str
    version: int = -1

    def __str__(self) -> str:
        return f"check {self.path}"


@dataclass(slots=True)
class Create:
    """Make a node that is not there yet."""

    path: str
    data: bytes = b""
    ephemeral: bool = False

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
