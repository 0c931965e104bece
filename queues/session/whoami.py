"""As whom the server sees a session: the request `whoAmI` of ZooKeeper 3.7 and later."""

import re
from dataclasses import dataclass

from kazoo.protocol.serialization import int_struct, read_string

from queues.session.settings import SessionSettings

MAX_CHARACTERS = 200
"""Of a name; the subject of a certificate may be longer, and the name stands in many nodes."""

# What a server has verified comes first. `digest` believes every name and password.
_TRUST = ("sasl", "x509", "super", "digest")
_ADDRESS = "ip"
# Also what cannot be seen: in the scheme digest a name is what anybody says, and may be no twin of another.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """One id of a session, such as `sasl:alice`; `ip:10.0.0.7` for one without any login."""

    scheme: str
    user: str
    confirmed: bool = (
        True  # by the server; False: a server below 3.7 was not able to, and the settings say so
    )

    def __str__(self) -> str:
        told = printable(f"{self.scheme}:{self.user}")
        return told if self.confirmed else f"{told} (not confirmed by the server)"


class WhoAmI:
    """The request as kazoo's connection wants it; kazoo has none of its own."""

    type = 107

    def serialize(self) -> bytes:
        """Nothing: the header says it all."""
        return b""

    def deserialize(self, reply: bytes, offset: int) -> list[Identity]:
        """The ids in the order in which the server has them: `WhoAmIResponse` in zookeeper.jute."""
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
    """The one to record of several: the one that the server has verified best."""
    return min(identities, key=_rank, default=Identity(_ADDRESS, "unknown"))


def configured(settings: SessionSettings) -> Identity:
    """Who a session should be by its settings, for servers that cannot be asked."""
    if settings.sasl is not None:
        return Identity("sasl", settings.sasl.user, confirmed=False)
    if settings.tls is not None and settings.tls.certificate_file:
        return Identity("x509", settings.tls.certificate_file, confirmed=False)
    if settings.digest is not None:
        return Identity("digest", settings.digest.user, confirmed=False)
    return Identity(_ADDRESS, "unknown", confirmed=False)


def printable(text: str) -> str:
    """A name as it may stand on a terminal: bounded, without control characters."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_CHARACTERS]


def _rank(identity: Identity) -> int:
    if identity.scheme in _TRUST:
        return _TRUST.index(identity.scheme)
    return len(_TRUST) + (identity.scheme == _ADDRESS)
