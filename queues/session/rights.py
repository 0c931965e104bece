"""Who may do what with nodes: read and set for many nodes at a time, which a multi cannot."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kazoo.exceptions import BadVersionError, KazooException, NoNodeError
from kazoo.security import ACL, Id

from queues.operations import ALL, Grant
from queues.session.posted import NO_RIGHT, REPLY_LOST
from queues.session.requests import Requests

_NO_ANSWER = (NoNodeError, *NO_RIGHT)

MAX_ASKED = 500
"""Requests that are under way at once: the replies of one round trip, and some hundred kilobytes."""

OWN = Grant(ALL, "auth", "")
"""Everything, for whoever this session is logged in as."""


class Rights(NamedTuple):
    """The ACL of a node, and its version, which each change of it moves."""

    grants: tuple[Grant, ...]
    version: int

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches ZooKeeper may do something with the node."""
        return any(grant.is_open for grant in self.grants)


class Denied(NamedTuple):
    """A node that this session may not even look at."""


Seen = Rights | Denied | None
"""What a look at a node's rights gives; None where there is no node."""


class NodeAcls:
    """Reads and sets rights through the client of a session; `seconds` is the deadline of each call.

    Each call may be sent again when its reply is lost. It raises what reads raise. At most MAX_ASKED nodes.
    """

    def __init__(self, client: Any, requests: Requests, seconds: float) -> None:
        self._client, self._requests, self._seconds = client, requests, seconds

    def read(self, paths: Sequence[str]) -> list[Seen]:
        """The rights on each node."""
        return [
            _seen(answer) for answer in self._ask(self._client.get_acls_async, [(path,) for path in paths])
        ]

    def set(self, changes: Sequence[tuple[str, Sequence[Grant], int]]) -> list[bool]:
        """Give each node these rights, at this version; False where it is gone, closed to us or changed."""
        asked = [
            (path, [ACL(grant.perms, Id(grant.scheme, grant.id)) for grant in grants], version)
            for path, grants, version in changes
        ]
        refused = (*_NO_ANSWER, BadVersionError)
        return [
            not isinstance(_checked(a, refused), refused)
            for a in self._ask(self._client.set_acls_async, asked)
        ]

    def children(self, paths: Sequence[str]) -> list[list[str]]:
        """The names below each node; none of one that is gone, or closed to us."""
        answers = self._ask(self._client.get_children_async, [(path,) for path in paths])
        return [[] if isinstance(_checked(a, _NO_ANSWER), _NO_ANSWER) else list(a) for a in answers]

    def _ask(self, send: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = self._requests.read(
            "", lambda: _Replies([send(*each) for each in asked]), self._seconds
        )
        return found


class _Replies:
    """Those of several requests, to wait for as for one."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self._replies = replies

    def get(self, timeout: float) -> list[Any]:
        """An answer per request, refusals among them; raises what says that one did not arrive."""
        return [_answer(reply, timeout) for reply in self._replies]


def _answer(reply: Any, timeout: float) -> Any:
    try:
        return reply.get(timeout=timeout)
    except REPLY_LOST:
        raise
    except KazooException as error:
        return error


def _checked(answer: Any, expected: tuple[type[KazooException], ...]) -> Any:
    if isinstance(answer, KazooException) and not isinstance(answer, expected):
        raise answer
    return answer


def _seen(answer: Any) -> Seen:
    if isinstance(_checked(answer, _NO_ANSWER), _NO_ANSWER):
        return None if isinstance(answer, NoNodeError) else Denied()
    entries, stat = answer
    return Rights(tuple(Grant(entry.perms, entry.id.scheme, entry.id.id) for entry in entries), stat.aversion)
