"""How ZooKeeper is reached."""

import base64
import errno
import hashlib
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from queues.model.operations import Grant

_PASSWORD_BYTES = 32


class Acl(StrEnum):
    """Who may do what with the nodes that a session creates."""

    OPEN = "open"  # every client that reaches ZooKeeper has all rights
    CREATOR = "creator"  # only who is authenticated as this session is


@dataclass(frozen=True, slots=True)
class Tls:
    """An encrypted connection; files are PEM and are read for each connection, so they may be renewed."""

    ca_file: str = ""  # who signs servers' certificates; empty: the system's list
    certificate_file: str = ""  # of this client, where the server asks for one
    key_file: str = ""  # empty: the certificate's file contains the key
    key_password: str = field(default="", repr=False)
    verify_hostname: bool = True  # that the server's certificate names the host in `hosts`

    def context(self) -> ssl.SSLContext:
        """What a connection is made with; raises OSError (of which SSLError is one) for unusable files."""
        context = ssl.create_default_context(cafile=self.ca_file or None)
        context.check_hostname = self.verify_hostname
        if self.certificate_file:
            # Always a password: without one, OpenSSL asks for it on the terminal.
            context.load_cert_chain(self.certificate_file, self.key_file or None, self.key_password.encode)
        return context


@dataclass(frozen=True, slots=True)
class Login:
    """A user, and the password or the file that contains it.

    `server_uid`: it is sent in the clear to a server that this user runs on this host, and to no other.
    """

    user: str
    password: str = field(default="", repr=False)
    password_file: str = ""
    server_uid: int | None = None

    def __post_init__(self) -> None:
        if bool(self.password) == bool(self.password_file):
            raise ValueError(f"user {self.user!r} needs a password or a password_file, one of them")

    @classmethod
    def random(cls, user: str) -> Self:
        """A login with a random password of 256 bits."""
        return cls(user, secrets.token_urlsafe(_PASSWORD_BYTES))

    @property
    def digest_id(self) -> str:
        """`user:hash`, as ZooKeeper's scheme digest names this login in the rights on a node.

        The hash is a plain SHA-1, so it may be seen only where the password cannot be guessed (ZooKeeper's
        DigestAuthenticationProvider.generateDigest).
        """
        whole = hashlib.sha1(f"{self.user}:{self.secret()}".encode()).digest()  # noqa: S324 - ZooKeeper's choice
        return f"{self.user}:{base64.b64encode(whole).decode()}"

    def secret(self) -> str:
        """The password; raises OSError when its file cannot be read, or has none.

        ZooKeeper accepts an empty one too: every client with the name would own the nodes of such a login.
        """
        if self.password:
            return self.password
        try:
            found = Path(self.password_file).read_text("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise OSError(errno.EINVAL, "it is not UTF-8", self.password_file) from error
        if not found.strip():
            raise OSError(errno.EINVAL, "there is no password in it", self.password_file)
        return found


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How to reach ZooKeeper; times in seconds.

    `hosts` is `host:port,host:port`, or `host:port,host:port/folder`: then all paths are below that folder,
    which is made when it is not there. No password is ever shown, logged or part of an error.
    """

    hosts: str
    session_timeout: float = 10.0
    connect_timeout: float = 10.0
    call_timeout: float = 30.0  # the deadline of every read and multi, retries included
    max_ephemeral_bytes: int = 512 * 1024  # of paths that one session may own; then another is opened
    tls: Tls | None = None
    sasl: Login | None = None  # DIGEST-MD5
    digest: Login | None = None  # ZooKeeper's own scheme, which believes every password: it acts by ACLs only
    acl: Acl = Acl.OPEN
    rights: tuple[Grant, ...] = ()  # on each node that is created, instead of what `acl` says

    def __post_init__(self) -> None:
        object.__setattr__(self, "acl", Acl(self.acl))
        certified = self.tls is not None and self.tls.certificate_file
        if self.acl is Acl.CREATOR and not (self.sasl or self.digest or certified):
            raise ValueError("acl 'creator' needs sasl, digest or a client certificate: who is the creator?")

    def for_plan(self) -> dict[str, Any]:
        """The same as JSON for another process, with the passwords in plain text."""
        return asdict(self)

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> "SessionSettings":
        """What `for_plan` gave."""
        parts = {"tls": Tls, "sasl": Login, "digest": Login}
        found = {name: parts[name](**v) if name in parts and v else v for name, v in plan.items()}
        return cls(**{**found, "rights": tuple(Grant(*grant) for grant in plan.get("rights", ()))})
