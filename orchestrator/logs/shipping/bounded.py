"""Answers of log servers, bounded in bytes and in time: the transport itself reads on without an end."""

import time
from typing import Any, NamedTuple

import urllib3
from elastic_transport import Urllib3HttpNode
from urllib3.exceptions import HTTPError

MAX_ANSWER_BYTES = 128 * 1024**2  # a page of a search is some megabytes, an answer to a bulk less
MAX_ANSWER_SECONDS = 180.0  # of which the first byte may take the most: a cluster under load takes long
_PIECE_BYTES = 64 * 1024  # of what may be compressed a thousandfold


class Whole(NamedTuple):
    """What the transport wants of a response."""

    status: int
    headers: Any
    data: bytes


class _Pool:
    """A pool whose responses are read here."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def urlopen(self, *arguments: Any, **named: Any) -> Whole:
        """Ask; raises HTTPError also for an answer without an end."""
        deadline = time.monotonic() + MAX_ANSWER_SECONDS
        response = self._pool.urlopen(*arguments, **named, preload_content=False)
        try:
            data = _read(response, deadline)
        except BaseException:
            response.close()  # what is left of it is nobody's answer
            raise
        response.release_conn()
        return Whole(response.status, response.headers, data)

    def close(self) -> None:
        """End the connections."""
        self._pool.close()


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    data = bytearray()
    while piece := response.read1(_PIECE_BYTES):
        data += piece
        if len(data) > MAX_ANSWER_BYTES:
            raise HTTPError(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise HTTPError(f"an answer that did not end in {MAX_ANSWER_SECONDS:g} s")
    return bytes(data)


class BoundedNode(Urllib3HttpNode):
    """One server, whose answers end."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.pool: Any = _Pool(self.pool)
