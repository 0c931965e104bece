"""The source of a worker's credentials for a cluster, and the only server that may receive them."""

import os
import re
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spark_runner.protocol.errors import RefusedSubmission

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_HOME_FILE = "~/.kube/config"
_REMEDIES: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "the credentials are not valid: renew the token or the certificate of {0}",
    HTTPStatus.FORBIDDEN: "grant the account of {0} the role for workers in docs/backends.md",
}
_POD_SERVERS = tuple(f"https://kubernetes{rest}" for rest in ("", ".default", ".default.svc"))
_POD_DOMAIN = "https://kubernetes.default.svc.cluster.local"
_PLAIN_URL = re.compile(
    r"https://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?"
)  # all clients parse these alike
_HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class KubernetesCredentials:
    """Found in kubectl's order: KUBECONFIG, `~/.kube/config`, or the service account of the worker's pod.

    `context` names a context of the kubeconfig; empty selects the current context.
    """

    context: str = ""

    @property
    def is_pod(self) -> bool:
        """Whether the worker runs in a pod and uses the pod's service account."""
        return _ACCOUNT.exists() and "KUBECONFIG" not in os.environ and not self.context

    def missing(self) -> str:
        """A message for the operator about a missing file on this host; empty if a file exists.

        The library's own messages name no file.
        """
        given = os.environ.get("KUBECONFIG")
        if self.is_pod or any(file.is_file() for file in _files()):
            return ""
        if given:
            return f"KUBECONFIG names {given}, which is not a file: correct it on the worker"
        return f"the worker has no kubeconfig: set KUBECONFIG on the worker, or create {_HOME_FILE}"

    def named_context(self) -> str:
        """The effective context by name, so that all clients use the same one; empty in a pod."""
        if self.context or self.is_pod:
            return self.context
        # kubectl uses the first file that names one, other clients the last.
        return next((str(name) for each in _documents() if (name := each.get("current-context"))), "")

    def servers(self) -> list[str]:
        """The addresses of the only server that receives the credentials; empty if the files name none."""
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
        """Raise RefusedSubmission if `url` is not the server that the operator's files name.

        An unreadable file names no server; the client that uses it reports that, and sends nothing.
        """
        if _identity(url) is None:
            raise RefusedSubmission(
                f"the master k8s://{url} is refused: the worker sends its credentials only over https, "
                "to an address without user, query and fragment"
            )
        servers = self.servers()
        if servers and not self.is_server(url):
            raise RefusedSubmission(
                f"the master k8s://{url} is refused: the worker's credentials are for {servers[0]}, "
                f"the server in {self}; an operator can add a context for another server to the kubeconfig"
            )

    def is_server(self, url: str) -> bool:
        """Whether the operator's files name the server `url` for these credentials."""
        wanted = _identity(url)
        return wanted is not None and any(_identity(server) == wanted for server in self.servers())

    def remedy(self, status: int) -> str:
        """The operator's remedy for a refusal with this HTTP status; empty if none is known."""
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
    """The readable files, in order; the client library reports the others."""
    # Imported on first use: few workers have such a cluster.
    import yaml  # noqa: PLC0415

    found = []
    for file in _files():
        try:
            found.append(yaml.safe_load(file.read_bytes()))
        except (OSError, ValueError, yaml.YAMLError):
            continue
    return [document for document in found if isinstance(document, dict)]


def _first(documents: list[dict[str, Any]], kind: str, part: str, name: str) -> dict[str, Any]:
    """The `part` of the first entry called `name`, as every client merges files; empty without one."""
    for document in documents:
        for entry in document.get(kind) or ():
            if isinstance(entry, dict) and entry.get("name") == name:
                found = entry.get(part)
                return found if isinstance(found, dict) else {}
    return {}


def _identity(url: str) -> tuple[str, int, str] | None:
    """Host, port and path of an https address that all clients parse alike; None for any other."""
    if not _PLAIN_URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").lower(), parts.port or _HTTPS_PORT, parts.path.rstrip("/")
    except ValueError:
        return None
