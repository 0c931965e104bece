"""How rows are served. It travels to the task that serves them."""

import ssl
from dataclasses import dataclass, field

from spark_runner.protocol.pem import load_chain
from spark_runner.push.errors import SettingError

LEAST_TOKEN = 16
_MOST_TOKEN = 4096  # characters; it must fit into the headers of a request
SEND_S = 30.0
"""In which a client must receive a page."""


@dataclass(frozen=True, slots=True)
class PollSettings:
    """Where rows are served, and to whom. Raises SettingError.

    `port` 0 is any free one. A page has at most `page_records` and `page_bytes`, and at least one row.
    `client_timeout` are the seconds after which an attempt fails if no client acknowledges a row that it
    could have; 0: it waits for ever. `chain` is a private key with its certificates as PEM; empty: no TLS.
    """

    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 0
    page_records: int = 1000
    page_bytes: int = 1024 * 1024
    client_timeout: float = 600.0
    chain: str = field(default="", repr=False)
    chain_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check the token; its value is in no error."""
        is_plain = self.token.isascii() and self.token.isprintable() and " " not in self.token
        if not is_plain or not LEAST_TOKEN <= len(self.token) <= _MOST_TOKEN:
            raise SettingError(
                f"the token of clients must have {LEAST_TOKEN} to {_MOST_TOKEN} printable ASCII characters"
                " without spaces, for example from `openssl rand -hex 32`"
            )

    def tls(self) -> ssl.SSLContext | None:
        """The context of the server; None without TLS. Raises SettingError."""
        if not self.chain:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            load_chain(context, self.chain, self.chain_password)
        except (OSError, ValueError) as error:
            raise SettingError(
                "the certificate, its key and the password of the key are no PEM that fits together"
            ) from error
        return context
