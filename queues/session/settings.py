"""The settings of a session: servers, timeouts, TLS, logins and the rights on new nodes."""

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
    """The rights on the nodes that a session creates."""

    OPEN = "open"  # all rights for every client that reaches ZooKeeper
    CREATOR = "creator"  # all rights for the identities of the session, none for others


@dataclass(frozen=True, slots=True)
class Tls:
    """An encrypted connection; files are PEM and are read for each connection, so they may be renewed."""

    ca_file: str = ""  # the CAs that sign servers' certificates; empty: the system's list
    certificate_file: str = ""  # the client certificate, if the server requests one
    key_file: str = ""  # empty: the certificate's file contains the key
    key_password: str = field(default="", repr=False)
    verify_hostname: bool = True  # check that the server's certificate names the host in `hosts`

    def context(self) -> ssl.SSLContext:
        """The TLS context of a connection; raises OSError (SSLError is one) for unusable files."""
        context = ssl.create_default_context(cafile=self.ca_file or None)
        context.check_hostname = self.verify_hostname
        if self.certificate_file:
            # A password is always given: without one, OpenSSL prompts for it on the terminal.
            context.load_cert_chain(self.certificate_file, self.key_file or None, self.key_password.encode)
        return context


@dataclass(frozen=True, slots=True)
class Login:
    """A user, and the password or the file that contains it.

    `server_uid`: the user id of the only server that receives the password, in clear text, on this host.
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
        """`user:hash`, the id of this login in ZooKeeper's scheme digest, in the rights on a node.

        The hash is a plain SHA-1, so it must be readable by others only if the password cannot be guessed
        (ZooKeeper's DigestAuthenticationProvider.generateDigest).
        """
        whole = hashlib.sha1(f"{self.user}:{self.secret()}".encode()).digest()  # noqa: S324 - ZooKeeper's choice
        return f"{self.user}:{base64.b64encode(whole).decode()}"

    def secret(self) -> str:
        """The password; raises OSError if its file cannot be read or contains none.

        ZooKeeper accepts an empty password too: any client with the user's name would own the login's nodes.
        """
        if self.password:
            return self.password
        try:
            found = Path(self.password_file).read_text("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise OSError(errno.EINVAL, "the file is not UTF-8", self.password_file) from error
        if not found.strip():
            raise OSError(errno.EINVAL, "the file contains no password", self.password_file)
        return found


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session with ZooKeeper; times in seconds.

    `hosts` is `host:port,host:port`, or `host:port,host:port/folder`: then all paths are below that folder,
    which is created if it is missing. Passwords never appear in output, logs or errors.
    """

    hosts: str
    session_timeout: float = 10.0
    connect_timeout: float = 10.0
    call_timeout: float = 30.0  # the deadline of every read and multi, retries included
    max_ephemeral_bytes: int = (
        512 * 1024
    )  # of ephemeral paths per session; beyond it another session is opened
    tls: Tls | None = None
    sasl: Login | None = None  # DIGEST-MD5
    digest: Login | None = (
        None  # ZooKeeper's own scheme; it accepts every password and acts only through ACLs
    )
    acl: Acl = Acl.OPEN
    rights: tuple[Grant, ...] = ()  # on each created node, instead of `acl`

    def __post_init__(self) -> None:
        object.__setattr__(self, "acl", Acl(self.acl))
        certified = self.tls is not None and self.tls.certificate_file
        if self.acl is Acl.CREATOR and not (self.sasl or self.digest or certified):
            raise ValueError("acl 'creator' needs sasl, digest or a client certificate: who is the creator?")

    def for_plan(self) -> dict[str, Any]:
        """The settings as JSON for another process, including the passwords in them."""
        return asdict(self)

    @classmethod
    def from_plan(cls, plan: Mapping[str, Any]) -> "SessionSettings":
        """The settings from the result of `for_plan`."""
        types = {"tls": Tls, "sasl": Login, "digest": Login}
        found = {name: types[name](**v) if name in types and v else v for name, v in plan.items()}
        return cls(**{**found, "rights": tuple(Grant(*grant) for grant in plan.get("rights", ()))})
