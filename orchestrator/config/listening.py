"""The address at which a worker serves metrics and probes, and its readers' token."""

import re
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65535
_PORT = re.compile(r"[0-9]{1,5}")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


class Listening(BaseModel):
    """The listener, which is off by default. An address beyond loopback requires a token and TLS."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    address: str = Field("", description="[host:]port; without a host, loopback; empty = off")
    token_file: Path | None = Field(None, description="file with the bearer token that readers send")
    certificate_file: Path | None = Field(
        None, description="certificate in PEM format; with it, the server accepts only TLS"
    )
    key_file: Path | None = Field(
        None, description="key of the certificate; absent = it is in certificate_file"
    )

    @field_validator("address", mode="before")
    @classmethod
    def _is_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("address")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value:
            _parts(value)
        return value

    @field_validator("token_file", "certificate_file", "key_file")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return value and value.expanduser().absolute()

    @model_validator(mode="after")
    def _is_guarded(self) -> Self:
        if self.key_file is not None and self.certificate_file is None:
            message = "key_file needs certificate_file, which is not set"
            raise ValueError(message)
        if not self.address or is_loopback(self.host):
            return self
        if self.token_file is None or self.certificate_file is None:
            message = (
                f"other hosts can reach {self.address}: set token_file and certificate_file, "
                f"or the address {self.port}, which is on loopback"
            )
            raise ValueError(message)
        return self

    @property
    def host(self) -> str:
        """The host of the address."""
        return _parts(self.address)[0]

    @property
    def port(self) -> int:
        """The port of the address; 0 = any free port."""
        return _parts(self.address)[1]


def _parts(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    is_port = _PORT.fullmatch(port) is not None and int(port) <= _MAX_PORT
    if not is_port or (colon and not _HOST.fullmatch(host)):
        message = (
            f"{address!r} is not [host:]port with a port up to {_MAX_PORT}; 0.0.0.0 listens on all interfaces"
        )
        raise ValueError(message)
    return host.strip("[]") or _LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Whether data that is sent to this host stays on this machine."""
    import ipaddress  # noqa: PLC0415 - lazy: each command reads settings, few have an address

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
