"""How this program gets into a guarded ZooKeeper: files and names, never a secret."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queues.operations import ALL, READ, Grant
from queues.session.settings import Acl, Login, SessionSettings, Tls
from spark_runner.plain_file import check_plain

_UNGUESSABLE_CHARACTERS = 22  # 128 bits at random in base64


def _readable(path: Path) -> Path:
    # Drivers read some of them, from a directory of their own.
    path = path.expanduser().absolute()
    try:
        check_plain(path)
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read: {error.strerror}") from error
    return path


_File = Annotated[Path, AfterValidator(_readable)]
_User = Annotated[str, Field(pattern=r"^[^:]+$")]  # for ZooKeeper the password begins at the first colon


class TlsFiles(BaseModel):
    """An encrypted connection; files are PEM, the key one without a password."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    ca_file: _File | None = Field(None, description="who signs the servers; absent = the system's list")
    certificate_file: _File | None = Field(None, description="of this client, where servers ask for one")
    key_file: _File | None = Field(None, description="absent = it stands in the certificate's file")
    verify_hostname: bool = True

    def tls(self) -> Tls:
        """The same for a session."""
        return Tls(
            ca_file=str(self.ca_file or ""),
            certificate_file=str(self.certificate_file or ""),
            key_file=str(self.key_file or ""),
            verify_hostname=self.verify_hostname,
        )


class GroupLogin(BaseModel):
    """A name that the people of a team share, and the file in which its password stands."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    user: _User
    password_file: _File

    def login(self) -> Login:
        """The same for a session, in the scheme `digest`."""
        return Login(self.user, password_file=str(self.password_file))


class LoginFile(BaseModel):
    """A user, and the file in which the password stands."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    scheme: Literal["sasl", "digest"] = Field("sasl", description="sasl = DIGEST-MD5")
    user: _User
    password_file: _File
    own_server: bool = Field(
        False, description="digest: send it to a server alone that this user runs on this host"
    )
    without_tls: bool = Field(False, description="sasl to other hosts without TLS, as through a VPN")

    def login(self) -> Login:
        """The same for a session."""
        owner = os.geteuid() if self.own_server else None
        return Login(self.user, password_file=str(self.password_file), server_uid=owner)


class DriverAccess(BaseModel):
    """What drivers present where ZooKeeper lets nobody in without; never what the worker presents.

    All drivers present the same, and user code can read it: it should have no rights on any node.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    certificate_file: _File | None = Field(None, description="of drivers, where servers ask for one")
    key_file: _File | None = Field(None, description="absent = it stands in the certificate's file")
    login: LoginFile | None = Field(None, description="of drivers, where servers let nobody in without")

    def settings(
        self, worker: SessionSettings, run: Login | None, owners: Sequence[tuple[str, str]]
    ) -> SessionSettings:
        """How a driver reaches the ZooKeeper of its worker.

        `run` is the login of its attempt; `owners` are the worker, as ZooKeeper knows it, who reads what the
        driver makes.
        """
        if run is not None and worker.digest is not None:
            # A driver may be another user: whose server it is says the login of the worker.
            run = replace(run, server_uid=worker.digest.server_uid)
        presented = None if self.login is None else self.login.login()
        by_sasl = self.login is not None and self.login.scheme == "sasl"
        tls = None if worker.tls is None else self._tls(worker.tls)
        own = () if run is None else (Grant(ALL, "digest", run.digest_id), *_readers(worker, owners))
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
    """The rights of the worker on what a driver makes.

    An id of the scheme digest is a hash of a password, without salt. Where that could be guessed a driver
    does not get it: everybody who has the path can then read what it shows of itself.
    """
    is_guessable = worker.digest is not None and len(worker.digest.secret()) < _UNGUESSABLE_CHARACTERS
    for scheme, name in owners:
        is_shown = not (is_guessable and scheme == "digest")
        yield Grant(READ, scheme, name) if is_shown else Grant(READ, "world", "anyone")
