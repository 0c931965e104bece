"""Which children of a node come and go, told one by one: ZooKeeper's persistent recursive watch.

kazoo 2.11 does not know it; servers have it since ZooKeeper 3.6 (ZOOKEEPER-1416). A watch of the usual kind
says only that something has changed, and all children have to be listed to see what. The layout of the bytes
is that of `org.apache.zookeeper.proto.AddWatchRequest`.
"""

from collections.abc import Callable
from typing import Any

from kazoo.protocol.serialization import int_int_struct, int_struct, read_string, write_string

_CREATED, _DELETED = 1, 2
_PERSISTENT_RECURSIVE = 1

Follow = Callable[[str, bool, int], None]
"""Called with the name of a child, whether it is there now, and the zxid of that; 0 from servers before 3.9.

On the connection's thread: it takes note and does nothing more.
"""


class AddWatch:
    """Asks to be told of all that is created and deleted below a node, as long as the connection lasts."""

    type = 106

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        """The request."""
        return bytes(write_string(self._path) + int_struct.pack(_PERSISTENT_RECURSIVE))

    def deserialize(self, _reply: bytes, _offset: int) -> bool:
        """The reply says nothing."""
        return True


class Followers:
    """Who follows which node, on one connection."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[Follow]] = {}  # paths as the server knows them: below the chroot

    def add(self, path: str, follow: Follow) -> None:
        """Call this one from now on."""
        self._by_path[path] = [*self._by_path.get(path, ()), follow]

    def clear(self) -> None:
        """Call nobody any more: the server forgets its part with the connection."""
        self._by_path = {}

    def tell(self, event: Any, offset: int, zxid: int) -> None:
        """Pass on an event, given as its bytes."""
        if not self._by_path:
            return
        kind, _state = int_int_struct.unpack_from(event, offset)
        if kind in {_CREATED, _DELETED}:
            path, _end = read_string(event, offset + int_int_struct.size)
            folder, _slash, name = path.rpartition("/")
            for follow in self._by_path.get(folder, ()):
                follow(name, kind == _CREATED, max(zxid, 0))
