"""How this program gets into a guarded ZooKeeper: files and names, never a secret."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from queues.session.settings import Login, Tls


def _readable(path: Path) -> Path:
    # Drivers read it too, from a directory of their own.
    path = path.expanduser().absolute()
    try:
        path.open("rb").close()
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read: {error.strerror}") from error
    return path


_File = Annotated[Path, AfterValidator(_readable)]


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


class LoginFile(BaseModel):
    """A user, and the file in which the password stands."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    scheme: Literal["sasl", "digest"] = Field("sasl", description="sasl = DIGEST-MD5")
    user: Annotated[str, Field(min_length=1)]
    password_file: _File

    def login(self) -> Login:
        """The same for a session."""
        return Login(self.user, password_file=str(self.password_file))
