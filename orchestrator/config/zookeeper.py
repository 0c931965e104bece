"""Settings of logins and TLS for ZooKeeper: names and files, never a secret."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queues import PERM_ALL, PERM_READ, Acl, Grant, Login, SessionSettings, Tls
from spark_runner.protocol.plain_file import check_plain

_UNGUESSABLE_CHARACTERS = 22  # 128 random bits in base64


def _readable(path: Path) -> Path:
    # Absolute: drivers read some of these files, from another working directory.
    path = path.expanduser().absolute()
    try:
        check_plain(path)
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read: {error.strerror}") from error
    return path


_File = Annotated[Path, AfterValidator(_readable)]
_User = Annotated[str, Field(pattern=r"^[^:]+$")]  # for ZooKeeper the password starts after the first colon


class TlsFiles(BaseModel):
    """An encrypted connection. The files are in PEM format, the key without a password."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    ca_file: _File | None = Field(
        None, description="CA certificates of the servers; absent = those of the system"
    )
    certificate_file: _File | None = Field(
        None, description="certificate of this client, if the servers require one"
    )
    key_file: _File | None = Field(
        None, description="key of the certificate; absent = it is in certificate_file"
    )
    verify_hostname: bool = Field(
        True, description="check that the certificate of a server names the host in zookeeper_hosts"
    )

    def tls(self) -> Tls:
        """The settings of a session."""
        return Tls(
            ca_file=str(self.ca_file or ""),
            certificate_file=str(self.certificate_file or ""),
            key_file=str(self.key_file or ""),
            verify_hostname=self.verify_hostname,
        )


class GroupLogin(BaseModel):
    """A user that a team shares, and the file with its password."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    user: _User = Field(description="name of the user in ZooKeeper", examples=["orchestrator"])
    password_file: _File = Field(description="file that contains only the password; mode 0600")

    def login(self) -> Login:
        """The login of a session, with the scheme `digest`."""
        return Login(self.user, password_file=str(self.password_file))


class LoginFile(BaseModel):
    """A user, and the file with the password."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    scheme: Literal["sasl", "digest"] = Field("sasl", description="scheme of the login; sasl = DIGEST-MD5")
    user: _User = Field(description="name of the user in ZooKeeper", examples=["orchestrator"])
    password_file: _File = Field(description="file that contains only the password; mode 0600")
    own_server: bool = Field(
        False, description="digest: send the login only to a server that this user runs on this host"
    )
    without_tls: bool = Field(
        False, description="allow sasl to other hosts without TLS, for example through a VPN"
    )

    def login(self) -> Login:
        """The settings of a session."""
        owner = os.geteuid() if self.own_server else None
        return Login(self.user, password_file=str(self.password_file), server_uid=owner)


class DriverAccess(BaseModel):
    """The certificate and the login of drivers, if ZooKeeper requires them; never those of the worker.

    All drivers use the same login, and user code can read it, so it should have no rights on any node.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    certificate_file: _File | None = Field(
        None, description="certificate of drivers, if the servers require one"
    )
    key_file: _File | None = Field(
        None, description="key of the certificate; absent = it is in certificate_file"
    )
    login: LoginFile | None = Field(None, description="login of drivers, if the servers require one")

    def settings(
        self, worker: SessionSettings, run: Login | None, owners: Sequence[tuple[str, str]]
    ) -> SessionSettings:
        """The session settings of a driver.

        `run` is the login of its attempt. `owners` are the ids of its worker in ZooKeeper: they may read the
        nodes that the driver creates.
        """
        if run is not None and worker.digest is not None:
            # A driver may run as another user: the owner of the server is that of the worker's login.
            run = replace(run, server_uid=worker.digest.server_uid)
        presented = None if self.login is None else self.login.login()
        by_sasl = self.login is not None and self.login.scheme == "sasl"
        tls = None if worker.tls is None else self._tls(worker.tls)
        own = () if run is None else (Grant(PERM_ALL, "digest", run.digest_id), *_readers(worker, owners))
        return replace(
            worker,
            tls=tls,
            sasl=presented if by_sasl else None,
            digest=run or (None if by_sasl else presented),
            acl=Acl.OPEN,
            rights=own,
        )

    def _tls(self, worker: Tls) -> Tls:
        return Tls(
            ca_file=worker.ca_file,
            certificate_file=str(self.certificate_file or ""),
            key_file=str(self.key_file or ""),
            verify_hostname=worker.verify_hostname,
        )


def _readers(worker: SessionSettings, owners: Sequence[tuple[str, str]]) -> Iterator[Grant]:
    """The rights of the worker on the nodes that a driver creates.

    An id of the scheme digest is an unsalted hash of a password. Where the password could be guessed, drivers
    do not get the hash: then every user may read those nodes.
    """
    is_guessable = worker.digest is not None and len(worker.digest.secret()) < _UNGUESSABLE_CHARACTERS
    for scheme, name in owners:
        is_shown = not (is_guessable and scheme == "digest")
        yield Grant(PERM_READ, scheme, name) if is_shown else Grant(PERM_READ, "world", "anyone")
