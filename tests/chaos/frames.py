"""Frames of the ZooKeeper client protocol, as far as a fault proxy parses them.

A frame is a length of four bytes and as many bytes of content. The first frame of each direction is the
handshake; then a request starts with xid and opcode, a reply with xid, zxid and error.
"""

import struct

_LENGTH = struct.Struct(">i")
_REQUEST = struct.Struct(">ii")
_REPLY = struct.Struct(">iqi")
_MULTI_RESULT = struct.Struct(">i")  # the type of the first result of a multi

_MULTI = 14
_ERROR_RESULT = -1

# Four times the default limit of a server (jute.maxbuffer): longer frames are not ZooKeeper traffic.
_MAX_FRAME_BYTES = 4 * 1024 * 1024


class NoFrame(Exception):
    """The bytes are no frame of this protocol, for example a four-letter word."""


class FrameReader:
    """Splits a stream of bytes into frames, each with its length prefix, ready to forward."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete with these bytes; raises NoFrame."""
        self._rest += data
        frames, start = [], 0
        while len(self._rest) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest, start)
            if not 0 <= length <= _MAX_FRAME_BYTES:
                raise NoFrame(f"a frame of {length} bytes")
            end = start + _LENGTH.size + length
            if end > len(self._rest):
                break
            frames.append(bytes(self._rest[start:end]))
            start = end
        del self._rest[:start]
        return frames


def multi_xid(request: bytes) -> int | None:
    """The xid of a request that is a multi, None for any other request."""
    if len(request) < _LENGTH.size + _REQUEST.size:
        return None
    xid, opcode = _REQUEST.unpack_from(request, _LENGTH.size)
    return xid if opcode == _MULTI else None


def reply_xid(reply: bytes) -> int:
    """The xid that a reply answers; negative for a ping or a watch event."""
    return int(_REPLY.unpack_from(reply, _LENGTH.size)[0])


def was_applied(reply: bytes) -> bool:
    """Whether the multi was applied: a refused multi has no error in its header, but one in each result."""
    _, _, error = _REPLY.unpack_from(reply, _LENGTH.size)
    body = _LENGTH.size + _REPLY.size
    if error != 0 or len(reply) < body + _MULTI_RESULT.size:
        return False
    return bool(_MULTI_RESULT.unpack_from(reply, body)[0] != _ERROR_RESULT)
