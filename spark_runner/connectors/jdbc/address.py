"""The address of a database, read from its JDBC URL."""

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

_URL = re.compile(r"jdbc:([a-z0-9]+)://([^/?]*)(?:/([^?]*))?(?:\?(.*))?", re.IGNORECASE)
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "org.mariadb.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
}
POSTGRESQL, MYSQL = "postgresql", "mysql"


@dataclass(frozen=True)
class Address:
    """The parts of a URL `jdbc:kind://host:port/database?parameters`.

    `host` is empty if the URL has another form, or names several hosts.
    """

    url: str
    kind: str
    host: str = ""
    port: int = 0
    database: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The dialect of its SQL: POSTGRESQL, MYSQL (also of MariaDB), or another kind."""
        return MYSQL if self.kind in {"mysql", "mariadb"} else self.kind

    @property
    def plain(self) -> str:
        """The URL without its parameters, equal for the same database."""
        if not self.host:
            return self.url.partition("?")[0]
        return f"jdbc:{self.family}://{self.host}:{self.port}/{self.database}"

    @property
    def driver(self) -> str:
        """The class of the driver that this connector brings; empty if it brings none."""
        return _DRIVERS.get(self.kind, "")

    @property
    def shown(self) -> str:
        """The database in messages."""
        where = f"{self.host}:{self.port}" if self.host else self.plain
        return f"database '{self.database}' at {where}" if self.database else where


def parse(url: str) -> Address:
    """The parts of a JDBC URL."""
    found = _URL.fullmatch(url)
    if found is None:
        return Address(url, url.removeprefix("jdbc:").partition(":")[0].lower())
    kind, host, port = found[1].lower(), found[2].lower(), ""
    if "," in host or "(" in host:  # several, or the description of one
        host = ""
    elif host.startswith("["):  # IPv6
        host, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = host.partition(":")
    if port and not port.isdecimal():
        host = ""
    parameters = dict(urllib.parse.parse_qsl(found[4] or "", keep_blank_values=True))
    number = int(port) if host and port else _PORTS.get(kind, 0)
    return Address(url, kind, host, number, urllib.parse.unquote(found[3] or ""), parameters)
