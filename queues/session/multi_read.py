"""Many nodes read in one request: ZooKeeper's multiRead, which kazoo 2.11 does not know.

A read of its own costs kazoo some 100 us of processor time and a turn of three threads; within a multiRead
a tenth of that. Servers have it since ZooKeeper 3.6 (ZOOKEEPER-1407). The layout of the bytes is that of
`org.apache.zookeeper.MultiOperationRecord` and `MultiResponse`.
"""

from collections.abc import Sequence

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from kazoo.protocol.serialization import (
    int_struct,
    multiheader_struct,
    read_buffer,
    stat_struct,
)

from queues.session.paths import path_bytes
from queues.session.stat import Stat

_GET_DATA = 4
_ERROR = -1
_NO_WATCH = b"\0"

Found = tuple[bytes, Stat] | None
"""Data and stat of a node, None where there is none."""

# A request is well below the server's limit, and its reply at most some megabytes (records are small).
MAX_PATHS = 256


class MultiRead:
    """The request as kazoo's connection wants it: a type, bytes out, a value from bytes in."""

    type = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._count = len(paths)
        request = bytearray()
        header = multiheader_struct.pack(_GET_DATA, False, -1)
        for path in paths:  # as the server knows them: below the chroot
            sent = path_bytes(path)
            request += header + int_struct.pack(len(sent)) + sent + _NO_WATCH
        self._request = bytes(request + multiheader_struct.pack(-1, True, -1))

    def serialize(self) -> bytes:
        """The request: one getData per path, then the header that ends it."""
        return self._request

    def deserialize(self, reply: bytes, offset: int) -> list[Found | KazooException]:
        """One result per path; errors other than a missing node stand among the results."""
        results: list[Found | KazooException] = []
        while True:
            kind, done, _ = multiheader_struct.unpack_from(reply, offset)
            offset += multiheader_struct.size
            if done:
                return results
            if kind == _ERROR:
                code = int_struct.unpack_from(reply, offset)[0]
                offset += int_struct.size
                results.append(None if code == NoNodeError.code else EXCEPTIONS[code]())
                continue
            data, offset = read_buffer(reply, offset)
            stat = stat_struct.unpack_from(reply, offset)
            offset += stat_struct.size
            results.append((data or b"", Stat.of(stat)))

    def __str__(self) -> str:
        return f"MultiRead({self._count} paths)"
