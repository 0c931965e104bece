"""Rights: the identity of a session, and reading and setting the ACL of many nodes at a time."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kazoo.exceptions import BadVersionError, KazooException, NoNodeError
from kazoo.protocol.serialization import int_struct, read_string
from kazoo.security import ACL, Id

from queues.model.operations import PERM_ALL, Grant
from queues.session.requests import NO_RIGHT, REPLY_LOST, Requests
from queues.session.settings import SessionSettings

MAX_CHARACTERS = 200
"""The limit of a name: the subject of a certificate may be longer, and many nodes store the name."""

# Verified schemes come first. The scheme `digest` accepts every name and password.
_TRUST = ("sasl", "x509", "super", "digest")
_ADDRESS = "ip"
# Invisible characters too: in the scheme digest any client chooses its name, and it must not imitate another.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """One id of a session, such as `sasl:alice`; `ip:10.0.0.7` for a session without any login."""

    scheme: str
    user: str
    confirmed: bool = True  # by the server; False: read from the settings, for a server below 3.7

    def __str__(self) -> str:
        text = printable(f"{self.scheme}:{self.user}")
        return text if self.confirmed else f"{text} (not confirmed by the server)"


class WhoAmI:
    """The whoAmI request in the form that kazoo's connection expects; kazoo itself has none."""

    type = 107

    def serialize(self) -> bytes:
        """The request; it consists of the header alone."""
        return b""

    def deserialize(self, reply: bytes, offset: int) -> list[Identity]:
        """The ids in the server's order: `WhoAmIResponse` in zookeeper.jute."""
        found = list[Identity]()
        (count,) = int_struct.unpack_from(reply, offset)
        offset += int_struct.size
        for _ in range(count):
            scheme, offset = read_string(reply, offset)
            user, offset = read_string(reply, offset)
            found.append(Identity(scheme or "", user or ""))
        return found

    def __str__(self) -> str:
        return "WhoAmI()"


def best_of(identities: list[Identity]) -> Identity:
    """The identity to record: the one with the strongest verification by the server."""
    return min(identities, key=_rank, default=Identity(_ADDRESS, "unknown"))


def configured(settings: SessionSettings) -> Identity:
    """The identity of a session by its settings, for servers without whoAmI."""
    if settings.sasl is not None:
        return Identity("sasl", settings.sasl.user, confirmed=False)
    if settings.tls is not None and settings.tls.certificate_file:
        return Identity("x509", settings.tls.certificate_file, confirmed=False)
    if settings.digest is not None:
        return Identity("digest", settings.digest.user, confirmed=False)
    return Identity(_ADDRESS, "unknown", confirmed=False)


def printable(text: str) -> str:
    """A name that is safe to print on a terminal: bounded, without control characters."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_CHARACTERS]


def _rank(identity: Identity) -> int:
    if identity.scheme in _TRUST:
        return _TRUST.index(identity.scheme)
    return len(_TRUST) + (identity.scheme == _ADDRESS)


_NO_ANSWER = (NoNodeError, *NO_RIGHT)

MAX_ASKED = 500
"""Requests in flight at once: the replies take one round trip and some hundred kilobytes."""

CREATOR_ALL = Grant(PERM_ALL, "auth", "")
"""All rights, for the identities of this session."""


class Rights(NamedTuple):
    """The ACL of a node, and its version, which grows with each change of the ACL."""

    grants: tuple[Grant, ...]
    version: int

    @property
    def is_open(self) -> bool:
        """Whether every client that reaches ZooKeeper has some right on the node."""
        return any(grant.is_open for grant in self.grants)


class Denied(NamedTuple):
    """A node whose rights this session has no right to read."""


Seen = Rights | Denied | None
"""The result of reading a node's rights; None if there is no node."""


class NodeAcls:
    """Reads and sets rights through the client of a session; `seconds` is the deadline of each call.

    A call is sent again if its reply is lost. It raises what reads raise, and takes at most MAX_ASKED nodes.
    """

    def __init__(self, client: Any, requests: Requests, seconds: float) -> None:
        self._client, self._requests, self._seconds = client, requests, seconds

    def read(self, paths: Sequence[str]) -> list[Seen]:
        """The rights on each node."""
        return [
            _seen(answer) for answer in self._ask(self._client.get_acls_async, [(path,) for path in paths])
        ]

    def set(self, changes: Sequence[tuple[str, Sequence[Grant], int]]) -> list[bool]:
        """Give each node these rights, at this version; False if it is gone, changed, or access is denied."""
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
        """The names below each node; empty if the node is gone or access is denied."""
        answers = self._ask(self._client.get_children_async, [(path,) for path in paths])
        return [[] if isinstance(_checked(a, _NO_ANSWER), _NO_ANSWER) else list(a) for a in answers]

    def _ask(self, send: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = self._requests.read(
            "", lambda: _Replies([send(*each) for each in asked]), self._seconds
        )
        return found


class _Replies:
    """The replies of several requests, with the interface of a single reply."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self._replies = replies

    def get(self, timeout: float) -> list[Any]:
        """An answer per request, refusals among them; raises the error of a reply that did not arrive."""
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
