"""An Elasticsearch with TLS only and mandatory authentication."""

import base64
import hashlib
import json
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.servers.elasticsearch import local_elasticsearch
from tests.servers.secured import Certificates

_SUPERUSER, _PASSWORD = "root", "the-secret-of-the-superuser"
_TLS = {
    "xpack.security.enabled": "true",
    "xpack.security.enrollment.enabled": "false",
    "xpack.security.http.ssl.enabled": "true",
    "xpack.security.http.ssl.key": "server.key",
    "xpack.security.http.ssl.certificate": "server.pem",
    "xpack.security.http.ssl.certificate_authorities": "ca.pem",
}


USER, SHIPPER = "shipper", "shipper:the-secret-of-the-shipper"
"""A user with the rights that docs/logs.md lists; in files, as this distribution has no API keys."""


@dataclass(frozen=True)
class SecuredElasticsearch:
    url: str
    certificates: Certificates

    def ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request as the superuser."""
        try:
            return _ask(self.url + path, method, self.certificates, document)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error


@contextmanager
def secured_elasticsearch(tmp_path: Path, rights: Mapping[str, Any]) -> Iterator[SecuredElasticsearch]:
    """A server on which `SHIPPER` has these rights; it starts slowly, and few tests need it."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    certificates = Certificates(folder)

    def prepare(config: Path) -> None:
        for name in ("server.key", "server.pem", "ca.pem"):
            shutil.copy(folder / name, config / name)
        # In files: each of the programs for it is a JVM that takes seconds.
        (config / "roles.yml").write_text(yaml.safe_dump({USER: rights}), "utf-8")
        users = {_SUPERUSER: _PASSWORD, USER: SHIPPER.partition(":")[2]}
        lines = [f"{user}:{{SHA}}{_sha1(password)}\n" for user, password in users.items()]
        (config / "users").write_text("".join(lines), "utf-8")
        (config / "users_roles").write_text(f"superuser:{_SUPERUSER}\n{USER}:{USER}\n", "utf-8")

    def answers(url: str) -> bool:
        try:
            return str(_ask(f"{url}/_cluster/health", "GET", certificates)["status"]) in {"yellow", "green"}
        except (OSError, ValueError):
            return False

    with local_elasticsearch(_TLS, scheme="https", prepare=prepare, answers=answers) as url:
        yield SecuredElasticsearch(url, certificates)


def _sha1(password: str) -> str:
    return base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()  # noqa: S324 - for a server of this test


def _ask(
    url: str, method: str, certificates: Certificates, document: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    login = base64.b64encode(f"{_SUPERUSER}:{_PASSWORD}".encode()).decode()
    headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
    data = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - our own server
    context = ssl.create_default_context(cafile=certificates.ca)
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310 - likewise
        return dict(json.load(answer))
