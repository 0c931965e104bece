"""The garbage collector of a cluster: removes the objects of deleted pods."""

import threading

import urllib3
from loguru import logger

from tests.servers.kubernetes.api import Api, ApiError

LOOK_S = 0.5
CORE = "/api/v1"
KINDS = {
    **dict.fromkeys(("configmaps", "secrets", "services", "persistentvolumeclaims", "pods"), CORE),
    "networkpolicies": "/apis/networking.k8s.io/v1",
}
"""The kinds of objects of a job, with their APIs."""


class Collector:
    """A thread that checks all objects every half second."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="garbage collector", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _supervise(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self._collect()
            except (ApiError, urllib3.exceptions.HTTPError) as error:
                logger.debug("test garbage collector: {}", error)  # the API is down

    def _collect(self) -> None:
        # List the owners last: an owner is older than its objects, so it is certainly listed.
        owned = [(kind, found) for kind, api in KINDS.items() for found in self._api.items(f"{api}/{kind}")]
        alive = {pod["metadata"]["uid"] for pod in self._api.items("/api/v1/pods")}
        for kind, found in owned:
            metadata = found["metadata"]
            owners = [owner["uid"] for owner in metadata.get("ownerReferences", [])]
            if owners and not alive.intersection(owners) and not metadata.get("deletionTimestamp"):
                path = f"{KINDS[kind]}/namespaces/{metadata['namespace']}/{kind}/{metadata['name']}"
                self._api.delete(path, uid=metadata["uid"])
