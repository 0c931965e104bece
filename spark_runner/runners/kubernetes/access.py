"""Where a worker's name and rights in a cluster come from, and the one server that may see them."""

import os
import re
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spark_runner.errors import RefusedSubmission

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_HOME_FILE = "~/.kube/config"
_REMEDIES: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "it does not know who the worker is: renew the token or the certificate of {0}",
    HTTPStatus.FORBIDDEN: "give the account of {0} the role for workers of docs/backends.md",
}
_POD_SERVERS = tuple(f"https://kubernetes{rest}" for rest in ("", ".default", ".default.svc"))
_POD_DOMAIN = "https://kubernetes.default.svc.cluster.local"
_PLAIN_URL = re.compile(r"https://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?")  # that all clients read alike
_HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class KubernetesCredentials:
    """Found as kubectl does it: KUBECONFIG, `~/.kube/config`, or the service account of the worker's pod.

    `context` is one of the kubeconfig's, empty for its current one.
    """

    context: str = ""

    @property
    def is_pod(self) -> bool:
        """Whether the worker is itself a pod and takes the account of that."""
        return _ACCOUNT.exists() and "KUBECONFIG" not in os.environ and not self.context

    def missing(self) -> str:
        """What is missing on this host, in words for its operator; empty where a file is there.

        The library's own words name no file.
        """
        given = os.environ.get("KUBECONFIG")
        if self.is_pod or any(file.is_file() for file in _files()):
            return ""
        if given:
            return f"KUBECONFIG is {given}, where no file is: correct it on the worker"
        return f"the worker has no kubeconfig: set KUBECONFIG there, or make {_HOME_FILE}"

    def named_context(self) -> str:
        """The context in force: the current one by its name, which all clients then use; empty in a pod."""
        if self.context or self.is_pod:
            return self.context
        # kubectl takes the first file that names one, other clients take the last.
        return next((str(name) for each in _documents() if (name := each.get("current-context"))), "")

    def servers(self) -> list[str]:
        """The addresses of the one server that gets the credentials; empty where the files name none."""
        if self.is_pod:
            host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
            port = os.environ.get("KUBERNETES_SERVICE_PORT", str(_HTTPS_PORT))
            address = f"[{host}]" if ":" in host else host
            return [*([f"https://{address}:{port}"] if host else []), *_POD_SERVERS, _POD_DOMAIN]
        documents = _documents()
        context = _first(documents, "contexts", "context", self.named_context())
        cluster = _first(documents, "clusters", "cluster", str(context.get("cluster", "")))
        server = cluster.get("server")
        return [str(server)] if server else []

    def check(self, url: str) -> None:
        """Raise RefusedSubmission where `url` is not the server that the operator's files name.

        What cannot be read names none; whoever uses it says so then, and sends nothing.
        """
        if _identity(url) is None:
            raise RefusedSubmission(
                f"the master k8s://{url} is refused: the worker's credentials are sent over https alone, "
                "to an address without user, query and fragment"
            )
        servers = self.servers()
        if servers and not self.is_server(url):
            raise RefusedSubmission(
                f"the master k8s://{url} is refused: the worker's credentials are for {servers[0]}, "
                f"the server in {self}; an operator can add a context for another server to the kubeconfig"
            )

    def is_server(self, url: str) -> bool:
        """Whether the operator's files name `url` as the server for these credentials."""
        wanted = _identity(url)
        return wanted is not None and any(_identity(server) == wanted for server in self.servers())

    def remedy(self, status: int) -> str:
        """What an operator can do against a refusal with this HTTP status; empty where we do not know."""
        return _REMEDIES.get(status, "").format(self)

    def __str__(self) -> str:
        if self.is_pod:
            return "the service account of its pod"
        given = os.environ.get("KUBECONFIG")
        file = f"KUBECONFIG={given}" if given else _HOME_FILE
        return f"{file} (context {self.context})" if self.context else file


def _files() -> list[Path]:
    given = os.environ.get("KUBECONFIG")
    return [Path(file).expanduser() for file in filter(None, (given or _HOME_FILE).split(os.pathsep))]


def _documents() -> list[dict[str, Any]]:
    """The files that can be read, in their order; the client library reports the others."""
    # Imported where it is used: few workers have such a cluster.
    import yaml  # noqa: PLC0415

    found = []
    for file in _files():
        try:
            found.append(yaml.safe_load(file.read_bytes()))
        except (OSError, ValueError, yaml.YAMLError):
            continue
    return [document for document in found if isinstance(document, dict)]


def _first(documents: list[dict[str, Any]], kind: str, part: str, name: str) -> dict[str, Any]:
    """What the first entry of a name says, as each client merges several files; empty without one."""
    for document in documents:
        for entry in document.get(kind) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                said = entry.get(part)
                return said if isinstance(said, dict) else {}
    return {}


def _identity(url: str) -> tuple[str, int, str] | None:
    """Host, port and path of an https address that all clients read alike; None for any other."""
    if not _PLAIN_URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").lower(), parts.port or _HTTPS_PORT, parts.path.rstrip("/")
    except ValueError:
        return None
