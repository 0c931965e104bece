"""Where a worker's name and rights in a cluster come from, and what to do when they do not suffice."""

import os
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_HOME_FILE = "~/.kube/config"
_REMEDIES: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "it does not know who the worker is: renew the token or the certificate of {0}",
    HTTPStatus.FORBIDDEN: "give the account of {0} the role for workers of docs/backends.md",
}


@dataclass(frozen=True, slots=True)
class Access:
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
        files = given.split(os.pathsep) if given else [_HOME_FILE]
        if self.is_pod or any(Path(file).expanduser().is_file() for file in filter(None, files)):
            return ""
        if given:
            return f"KUBECONFIG is {given}, where no file is: correct it on the worker"
        return f"the worker has no kubeconfig: set KUBECONFIG there, or make {_HOME_FILE}"

    def remedy(self, status: int) -> str:
        """What an operator can do against a refusal with this HTTP status; empty where we do not know."""
        return _REMEDIES.get(status, "").format(self)

    def __str__(self) -> str:
        if self.is_pod:
            return "the service account of its pod"
        given = os.environ.get("KUBECONFIG")
        file = f"KUBECONFIG={given}" if given else _HOME_FILE
        return f"{file} (context {self.context})" if self.context else file
