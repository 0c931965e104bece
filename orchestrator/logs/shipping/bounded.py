"""Answers of log servers and of the archive's index, bounded in bytes and in time."""

from typing import Any, NamedTuple

from elastic_transport import Urllib3HttpNode

from orchestrator.logs.http import PlainConnection, SecureConnection, answer_within

MAX_ANSWER_BYTES = 128 * 1024**2  # a page of a search is some megabytes, an answer to a bulk less
MAX_ANSWER_SECONDS = 180.0  # most of it may pass before the first byte: a cluster under load is slow


class Whole(NamedTuple):
    """The parts of a response that the transport uses."""

    status: int
    headers: Any
    data: bytes


class _Pool:
    """A pool that reads each response within the limits."""

    def __init__(self, pool: Any) -> None:
        pool.ConnectionCls = SecureConnection if pool.scheme == "https" else PlainConnection
        self._pool = pool

    def urlopen(self, *arguments: Any, **named: Any) -> Whole:
        """Send a request; raises HTTPError, also for an answer without an end."""
        with answer_within(MAX_ANSWER_BYTES, MAX_ANSWER_SECONDS) as read:
            response = self._pool.urlopen(*arguments, **named, preload_content=False)
            data = read(response)
            response.release_conn()
            return Whole(response.status, response.headers, data)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class BoundedNode(Urllib3HttpNode):
    """One server, with bounded answers."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.pool: Any = _Pool(self.pool)
