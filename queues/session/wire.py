"""Multi and multiRead as bytes: cheaper than kazoo's transaction, and a request that kazoo 2.11 lacks.

kazoo spends two thirds of its time for a multi of 200 operations on normalizing each path and building a
tuple per operation. Here `queues.model.names` builds all paths, and they are normalized already.

A separate read costs kazoo some 100 us of processor time and a turn of three threads, a read within a
multiRead a tenth of that. Servers support multiRead since ZooKeeper 3.6 (ZOOKEEPER-1407).

Both requests are laid out as in `org.apache.zookeeper.MultiOperationRecord` and `MultiResponse`.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from kazoo.protocol.serialization import (
    int_struct,
    multiheader_struct,
    read_buffer,
    stat_struct,
    write_string,
)
from kazoo.security import ACL, Id

from queues.model.errors import InvalidName
from queues.model.operations import Check, Create, Delete, Grant, Operation, Set


def path_bytes(path: str) -> bytes:
    """The path as UTF-8; raises InvalidName for text that UTF-8 cannot encode.

    Such text must not reach kazoo: it ends the connection, and the sending thread would fail on it endlessly.
    """
    try:
        return path.encode()
    except UnicodeEncodeError as error:
        message = f"{path!r} is not a valid path: it contains half of a surrogate pair"
        raise InvalidName(message) from error


def checked_path(path: str) -> str:
    """The path unchanged; raises InvalidName for a relative one, and for text that UTF-8 cannot encode."""
    path_bytes(path)
    if "/." in path and not {".", ".."}.isdisjoint(path.split("/")):
        message = f"{path!r} is not a valid path: ZooKeeper has no relative paths"
        raise InvalidName(message)
    return path


class Stat(NamedTuple):
    """The stat of a node; times in epoch milliseconds of the ensemble."""

    version: int
    created: int
    modified: int
    children: int
    children_zxid: int  # grows with each created or deleted child
    owner: int  # session id of an ephemeral's owner, 0 for a persistent node

    @classmethod
    def of(cls, stat: tuple[Any, ...]) -> "Stat":
        """The stat from the eleven fields of kazoo's ZnodeStat, or from those that its struct unpacks."""
        _, _, created, modified, version, _, _, owner, _, children, children_zxid = stat
        return cls(version, created, modified, children, children_zxid, owner or 0)


_CREATE, _DELETE, _SET, _CHECK, _ERROR = 1, 2, 5, 13, -1
_HEADERS = {kind: multiheader_struct.pack(kind, False, -1) for kind in (_CREATE, _DELETE, _SET, _CHECK)}
_END = multiheader_struct.pack(-1, True, -1)
_PERSISTENT, _EPHEMERAL = int_struct.pack(0), int_struct.pack(1)
_LENGTH = Struct("!i")


def acl_bytes(acls: Sequence[ACL]) -> bytes:
    """Access rights in the form that a create contains."""
    fields = [int_struct.pack(len(acls))]
    for acl in acls:
        fields += [int_struct.pack(acl.perms), write_string(acl.id.scheme), write_string(acl.id.id)]
    return b"".join(bytes(field) for field in fields)


def _with_grant(acl: bytes, grant: Grant) -> bytes:
    """The rights with one entry added."""
    added = acl_bytes([ACL(grant.perms, Id(grant.scheme, grant.id))])
    count = int_struct.unpack_from(acl)[0]
    return bytes(int_struct.pack(count + 1)) + acl[int_struct.size :] + added[int_struct.size :]


class Multi:
    """The request in the form that kazoo's connection expects: a type, bytes out, results from bytes in."""

    type = 14

    def __init__(self, operations: Sequence[Operation], root: str, acl: bytes) -> None:
        self._count = len(operations)
        # Encoded here: kazoo's thread would fail again and again on text that UTF-8 cannot encode.
        self._request = _request(operations, root.encode(), acl)

    def serialize(self) -> bytes:
        """The request: a header and a body for each operation, then the header that ends it."""
        return self._request

    def deserialize(self, reply: bytes, offset: int) -> list[Any]:
        """A result per operation: the stat after a set, True for other successes, else the exception."""
        results: list[Any] = []
        while True:
            kind, done, _ = multiheader_struct.unpack_from(reply, offset)
            offset += multiheader_struct.size
            if done:
                return results
            if kind == _ERROR:
                code = int_struct.unpack_from(reply, offset)[0]
                offset += int_struct.size
                # 0: rolled back because of another operation of the same multi.
                results.append(EXCEPTIONS[code]())
            elif kind == _SET:
                results.append(Stat.of(stat_struct.unpack_from(reply, offset)))
                offset += stat_struct.size
            else:
                if kind == _CREATE:
                    offset += int_struct.size + int_struct.unpack_from(reply, offset)[0]
                results.append(True)

    def __str__(self) -> str:
        return f"Multi({self._count} operations)"


def _request(operations: Sequence[Operation], root: bytes, acl: bytes) -> bytes:
    parts = list[bytes]()
    for operation in operations:
        path = root + path_bytes(operation.path)
        length = _LENGTH.pack(len(path))
        match operation:
            case Check():
                parts += (_HEADERS[_CHECK], length, path, _LENGTH.pack(operation.version))
            case Delete():
                parts += (_HEADERS[_DELETE], length, path, _LENGTH.pack(operation.version))
            case Set():
                data = operation.data
                parts += (_HEADERS[_SET], length, path, _LENGTH.pack(len(data)), data)
                parts.append(_LENGTH.pack(operation.version))
            case Create():
                data = operation.data
                rights = acl if operation.grant is None else _with_grant(acl, operation.grant)
                parts += (_HEADERS[_CREATE], length, path, _LENGTH.pack(len(data)), data, rights)
                parts.append(_EPHEMERAL if operation.ephemeral else _PERSISTENT)
    parts.append(_END)
    return b"".join(parts)


_GET_DATA = 4
_ERROR = -1
_NO_WATCH = b"\0"

NodeData = tuple[bytes, Stat]
"""Data and stat of a node."""

# A request of this size is well below the server's limit, and its reply a few megabytes (records are small).
MAX_PATHS = 256


class MultiRead:
    """The request in the form that kazoo's connection expects: a type, bytes out, values from bytes in."""

    type = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._count = len(paths)
        request = bytearray()
        header = multiheader_struct.pack(_GET_DATA, False, -1)
        for path in paths:  # the server's paths, which include the chroot
            sent = path_bytes(path)
            request += header + int_struct.pack(len(sent)) + sent + _NO_WATCH
        self._request = bytes(request + multiheader_struct.pack(-1, True, -1))

    def serialize(self) -> bytes:
        """The request: one getData per path, then the header that ends it."""
        return self._request

    def deserialize(self, reply: bytes, offset: int) -> list[NodeData | KazooException | None]:
        """One result per path; errors other than a missing node are among the results."""
        results: list[NodeData | KazooException | None] = []
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
