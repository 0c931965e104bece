"""The parts of a URL with columns, and lists of statuses; the compiler checks options by them, too."""

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
_STATUSES = re.compile(r"\s*(\d{3})\s*(?:-\s*(\d{3})\s*)?")
DOTS = re.compile(r"(^|/)(\.|%2e){1,2}(?=[/?]|$)", re.IGNORECASE)
"""Segments of a path that lead elsewhere."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server, as its URLs name it."""

    scheme: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """Host and port; the header `Host` has the port only if it is not that of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}"


def split(url: str) -> tuple[Server, str]:
    """The server of a URL, and its path with the query; raises ValueError, without the URL in its text."""
    found = _URL.fullmatch(url)
    if found is None or not url.isprintable() or " " in url:
        raise ValueError("it is not an http or https URL without a fragment, such as https://host/items/{id}")
    scheme, place, rest = found[1].lower(), found[2], found[3]
    if "@" in place:
        raise ValueError("it holds a password, which would be visible; use 'username' and 'password'")
    if "{" in place or "}" in place:
        raise ValueError("columns can be in its path and query alone")
    try:
        parts = urlsplit(f"//{place}")
        server = Server(scheme, parts.hostname or "", parts.port or _PORTS[scheme])
        server.host.encode("idna")
    except ValueError:
        server = Server(scheme, "", 0)
    if not server.host:
        raise ValueError("its host or port is wrong")
    path = rest if rest.startswith("/") else f"/{rest}"
    if DOTS.search(path):
        raise ValueError("its path has a segment '.' or '..'")
    return server, path


def statuses(text: str) -> frozenset[int]:
    """The statuses in a list such as `200-299,409`; raises ValueError."""
    found = set[int]()
    for part in filter(str.strip, text.split(",")):
        match = _STATUSES.fullmatch(part)
        if match is None:
            raise ValueError("write statuses as 200-299,409")
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def quoted(path: str) -> str:
    """A path and query as a request has them; what is quoted stays as it is."""
    return quote(path, safe="%/:=&?~+!$,;'@()*[]")
