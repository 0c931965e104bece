"""The options of tables whose rows clients fetch."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import ConnectorOptions, Names
from spark_runner.protocol.text import did_you_mean

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")


class PollOptions(ConnectorOptions):
    """Rows that a client fetches over HTTP, page by page; it acknowledges a page by asking for the next one.

    A job serves them until the client has acknowledged all of them.
    """

    only_adds: ClassVar[bool] = True
    batch_only: ClassVar[str] = "its clients see the end of the rows, and micro-batches have none"
    unquoted: ClassVar[frozenset[str]] = frozenset({"token", "ssl_key", "ssl_key_password"})
    aliases: ClassVar[Mapping[str, str]] = {
        "sink.requests.max-inflight": "concurrency",
        "sink.requests.max-buffered": "buffer_records",
    }
    token: str = Field(
        min_length=1,
        description="the bearer token that clients send, of 16 characters or more, as a reference",
    )
    host: str = Field(
        "127.0.0.1",
        description="the address at which the task listens, such as `0.0.0.0`; without loopback, other hosts"
        " reach it, and it needs a certificate",
    )
    port: int = Field(0, ge=0, le=65_535, description="its port; 0: any free one")
    ssl_certificate: str = Field("", description="the certificate of the server with its chain, as PEM")
    ssl_key: str = Field("", description="its private key as PEM, as a reference")
    ssl_key_password: str = Field("", description="the password of that key, as a reference")
    page_size: int = Field(1000, ge=1, le=100_000, description="rows of one page, at most")
    page_bytes: int = Field(
        1024 * 1024,
        ge=1,
        le=64 * 1024 * 1024,
        description="bytes of one page, at most; a larger row is a page of its own",
    )
    client_timeout: float = Field(
        600.0,
        ge=0,
        le=31 * 86_400,
        description="seconds without an acknowledged row, while there are rows to fetch, after which the"
        " attempt fails; 0: it waits for ever",
    )
    order_by: Names = Field(
        (), description="the columns that order the rows; by default they come in any order"
    )
    concurrency: int = Field(8, ge=1, le=64, description="pages that are sent at the same time")
    rate_limit: float = Field(0, ge=0, le=1_000_000, description="pages per second; 0: no limit")
    buffer_records: int = Field(
        100_000,
        ge=1,
        description="rows that are read but not yet acknowledged; at this limit, no more are read",
    )
    buffer_bytes: int = Field(64 * 1024 * 1024, ge=1, description="the same limit in bytes")

    @field_validator("host")
    @classmethod
    def _is_host(cls, value: str) -> str:
        if not _HOST.fullmatch(value) and _address(value) is None:
            raise ValueError("it is no name or address of a host")
        return value

    @model_validator(mode="after")
    def _is_guarded(self) -> "PollOptions":
        if bool(self.ssl_certificate) != bool(self.ssl_key):
            raise OptionError("options 'ssl_certificate' and 'ssl_key' need each other")
        address = _address(self.host)
        is_loopback = self.host == "localhost" if address is None else address.is_loopback
        if not (is_loopback or self.ssl_certificate):
            raise OptionError(
                f"other hosts can reach '{self.host}': give options 'ssl_certificate' and 'ssl_key'"
            )
        return self

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that `order_by` names declared columns."""
        known = {name.lower() for name in columns}
        for name in self.order_by:
            if known and name.lower() not in known:
                words = (
                    f"option 'order_by' names '{name}', which is not a column{did_you_mean(name, columns)}"
                )
                raise OptionError(words, option="order_by", fault="value", quoted=name)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
