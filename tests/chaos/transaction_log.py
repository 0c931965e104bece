"""ZooKeeper's own transaction log, as the server wrote it: every change, in order.

The format is that of `org.apache.zookeeper.server.persistence.FileTxnLog` and of `zookeeper.jute` of 3.9: a
file begins with a header of 16 bytes; each entry has a checksum (Adler-32), a length, the bytes and a closing
`B`; zeros follow the last entry.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"ZKLG"
_HEADER_BYTES = 16
_ENTRY = struct.Struct(">qi")
_MAY_BE_EPHEMERAL = {1, 15}
_ERROR = -1


class LogDamaged(Exception):
    """The log has content that no server writes."""


@dataclass(frozen=True, slots=True)
class Created:
    """A node was created; `owner` is the session of an ephemeral, 0 for a persistent node."""

    path: str
    data: bytes
    owner: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """The data of a node changed, and its version became `version`."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A node was deleted."""

    path: str


Change = Created | Written | Deleted


@dataclass(frozen=True, slots=True)
class Transaction:
    """The changes of one request, applied as a whole; `time_ms` is epoch milliseconds."""

    zxid: int
    session: int
    time_ms: int
    changes: tuple[Change, ...]


def read_transactions(
    data_dirs: Iterable[Path], ahead_ms: Callable[[str], int] = lambda _log: 0
) -> Iterator[Transaction]:
    """Every transaction that changed a node, in order; one server of an ensemble may lack some.

    `data_dirs` are the data directories of one ensemble; `ahead_ms` returns, for a log, by how much the clock
    of its server was ahead. Raises LogDamaged.
    """
    by_zxid: dict[int, Transaction] = {}
    for data_dir in data_dirs:
        for path in sorted(data_dir.glob("**/version-2/log.*")):
            by_zxid.update((entry.zxid, entry) for entry in _entries(path, ahead_ms(path.name)))
    yield from (by_zxid[zxid] for zxid in sorted(by_zxid))


def _entries(path: Path, ahead_ms: int) -> Iterator[Transaction]:
    data = path.read_bytes()
    if data[:4] != _MAGIC:
        if data.strip(b"\0"):
            message = f"{path} is no transaction log"
            raise LogDamaged(message)
        return  # the server ended before it wrote anything
    offset = _HEADER_BYTES
    while offset + _ENTRY.size <= len(data):
        checksum, length = _ENTRY.unpack_from(data, offset)
        body = data[offset + _ENTRY.size : offset + _ENTRY.size + length]
        if length == 0 or len(body) < length or zlib.adler32(body) != checksum:
            return  # the end, or torn by a kill during the write: the server stops here too
        offset += _ENTRY.size + length + 1
        yield _transaction(_Reader(body), ahead_ms)


def _transaction(reader: "_Reader", ahead_ms: int) -> Transaction:
    session, _cxid, zxid, time_ms, kind = reader.unpack(">qiqqi")
    return Transaction(zxid, session, time_ms - ahead_ms, tuple(_changes(kind, reader, session)))


def _changes(kind: int, reader: "_Reader", session: int) -> Iterator[Change]:
    match kind:
        case 1 | 15 | 19 | 21:  # create, create2, createContainer, createTTL
            path, data = reader.text(), reader.buffer()
            for _ in range(reader.number()):  # of access rights
                reader.number(), reader.text(), reader.text()
            is_ephemeral = kind in _MAY_BE_EPHEMERAL and reader.flag()
            yield Created(path, data, session if is_ephemeral else 0)
        case 2 | 20:  # delete, deleteContainer
            yield Deleted(reader.text())
        case 5:  # setData
            yield Written(reader.text(), reader.buffer(), reader.number())
        case 14:  # multi
            steps = [(reader.number(), _Reader(reader.buffer())) for _ in range(reader.number())]
            if all(inner != _ERROR for inner, _ in steps):  # else it was refused, and nothing was applied
                for inner, step in steps:
                    yield from _changes(inner, step, session)
        case -11:  # closeSession lists the ephemerals that it deletes
            if reader.is_left():
                yield from (Deleted(reader.text()) for _ in range(reader.number()))
        case _:  # check, error, createSession, setACL: no node is created, deleted or written
            return


class _Reader:
    """Reads numbers, texts and buffers of jute in sequence."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def unpack(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._data, self._offset)
        self._offset += struct.calcsize(form)
        return values

    def number(self) -> int:
        return self.unpack(">i")[0]

    def flag(self) -> bool:
        return bool(self.unpack(">b")[0])

    def buffer(self) -> bytes:
        length = max(0, self.number())  # -1: no buffer
        self._offset += length
        return self._data[self._offset - length : self._offset]

    def text(self) -> str:
        return self.buffer().decode()

    def is_left(self) -> bool:
        return self._offset < len(self._data)
