"""The API of one Kubernetes cluster: the only module that knows the client library.

Objects are plain JSON documents.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from http import HTTPStatus
from typing import Any, cast

from spark_runner.errors import SparkRunnerError
from spark_runner.plain_file import parse_json
from spark_runner.runners.kubernetes.access import KubernetesCredentials
from spark_runner.runners.no_answer import no_answer

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0
WATCH_SECONDS = 30
"""After so long the server ends a watch; one that is silent for longer has lost its connection."""

_TIMEOUT = (CONNECT_SECONDS, READ_SECONDS)
_WATCH_TIMEOUT = (CONNECT_SECONDS, WATCH_SECONDS + READ_SECONDS)
INSTALL = "pip install 'spark-job-orchestrator[kubernetes]'"

Document = dict[str, Any]


def api_url(master: str) -> str:
    """The address of the API in the name of a master."""
    return master.removeprefix("k8s://")


class KubernetesError(SparkRunnerError):
    """The Kubernetes API did not answer, or refused a request: `status` is its HTTP status, 0 without one."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class KubernetesApi:
    """Requests to the API at `url` with the credentials of `access`, which are for this server alone."""

    def __init__(self, url: str, access: KubernetesCredentials) -> None:
        self.url = url
        self._access = access

    def pods(self, namespace: str, selector: str) -> tuple[list[Document], str]:
        """All pods with these labels as the cluster's store has them now, and the version of this answer."""
        document = self._json(
            lambda: self._core.list_namespaced_pod(
                namespace, label_selector=selector, _preload_content=False, _request_timeout=_TIMEOUT
            )
        )
        return document["items"], document["metadata"]["resourceVersion"]

    def watch_pods(self, namespace: str, selector: str, version: str) -> Iterator[Document]:
        """What changes after `version`, for WATCH_SECONDS; raises KubernetesError, 410 for one too old."""
        response = self._ask(
            lambda: self._core.list_namespaced_pod(
                namespace,
                label_selector=selector,
                resource_version=version,
                watch=True,
                allow_watch_bookmarks=True,
                timeout_seconds=WATCH_SECONDS,
                _preload_content=False,
                _request_timeout=_WATCH_TIMEOUT,
            )
        )
        with closing(response):
            rest = b""
            for piece in self._pieces(response):
                *lines, rest = (rest + piece).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise KubernetesError(
                            status.get("message", ""),
                            status=status.get("code", 0),
                            reason=status.get("reason", ""),
                        )
                    yield event

    def pod_log(
        self, namespace: str, name: str, container: str, *, tail_lines: int, since_seconds: int | None = None
    ) -> bytes | None:
        """The end of what a container has written, or of the last seconds of it, each line with its time.

        None when there is nothing to be had any more (or yet).
        """
        since = {} if since_seconds is None else {"since_seconds": since_seconds}
        try:
            response = self._ask(
                lambda: self._core.read_namespaced_pod_log(
                    name,
                    namespace,
                    container=container,
                    tail_lines=tail_lines,
                    timestamps=True,
                    **since,
                    _preload_content=False,
                    _request_timeout=_TIMEOUT,
                )
            )
        except KubernetesError as error:
            if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST}:
                return None
            raise
        data: bytes = response.data
        return data

    def create_secret(self, namespace: str, secret: Mapping[str, Any]) -> None:
        """Create a secret; one of that name that is there already is taken as this one."""
        try:
            self._ask(
                lambda: self._core.create_namespaced_secret(
                    namespace, dict(secret), _preload_content=False, _request_timeout=_TIMEOUT
                )
            )
        except KubernetesError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise

    def delete_secrets(self, namespace: str, selector: str) -> None:
        """Delete all secrets with these labels."""
        self._ask(
            lambda: self._core.delete_collection_namespaced_secret(
                namespace, label_selector=selector, _preload_content=False, _request_timeout=_TIMEOUT
            )
        )

    def delete_pod(self, namespace: str, name: str, uid: str, *, grace_seconds: float) -> None:
        """Begin to delete exactly this pod; one that is gone is no error."""
        options = {"gracePeriodSeconds": max(1, round(grace_seconds)), "preconditions": {"uid": uid}}
        try:
            self._ask(
                lambda: self._core.delete_namespaced_pod(
                    name, namespace, body=options, _preload_content=False, _request_timeout=_TIMEOUT
                )
            )
        except KubernetesError as error:
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                raise

    @cached_property
    def _core(self) -> Any:  # its types change from version to version, its names do not
        try:
            # Imported where it is used: few workers have such a cluster, and the others need not have it.
            from kubernetes import client, config  # noqa: PLC0415
        except ImportError as error:
            raise KubernetesError(f"the Kubernetes client is not installed: {INSTALL}") from error
        settings, load = client.Configuration(), cast("Any", config)  # it has no types
        if missing := self._access.missing():
            raise KubernetesError(f"no access to {self.url}: {missing}")
        try:
            if self._access.is_pod:
                load.load_incluster_config(client_configuration=settings)
            else:
                load.load_kube_config(
                    os.environ.get("KUBECONFIG"),  # the library itself reads it once, when it is imported
                    context=self._access.named_context() or None,
                    client_configuration=settings,
                )
        except Exception as error:  # all kinds: of a file that is no YAML, or has something else in it
            raise KubernetesError(
                f"no access to {self.url}: {error}; correct {self._access} on the worker"
            ) from error
        if not (self._access.is_server(self.url) and self._access.is_server(settings.host)):
            raise KubernetesError(
                f"no access to {self.url}: {self._access} on the worker names the server {settings.host}, "
                "and its credentials are sent to no other, and over https alone"
            )
        settings.retries = False  # who asks knows best whether to ask again
        return client.CoreV1Api(client.ApiClient(settings))

    def _json(self, request: Callable[[], Any]) -> Document:
        document: Document = json.loads(self._ask(request).data)
        return document

    def _ask(self, request: Callable[[], Any]) -> Any:
        core_is_there = self._core  # its own errors are KubernetesError already
        del core_is_there
        from kubernetes.client import ApiException  # noqa: PLC0415 - as above
        from urllib3.exceptions import HTTPError, ProtocolError  # noqa: PLC0415 - it comes with the client

        try:
            try:
                return request()
            except ProtocolError:  # a kept connection that the server closed meanwhile: on a new one, once
                return request()
        except ApiException as error:
            if not error.status:  # as the library puts the errors of TLS
                raise self._silence(error.reason) from error
            raise self._refusal(error.status, error.body or error.reason or "") from error
        except (HTTPError, OSError) as error:
            raise self._silence(error) from error

    def _pieces(self, response: Any) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

        try:
            yield from response.stream(65536)
        except (HTTPError, OSError) as error:
            raise KubernetesError(
                f"the Kubernetes API at {self.url} is silent: {no_answer(str(error))}"
            ) from error

    def _silence(self, error: object) -> KubernetesError:
        words = no_answer(str(error))
        hint = f"check the address in `spark.master`, and the certificates of {self._access}"
        return KubernetesError(f"the Kubernetes API at {self.url} does not answer: {words}; {hint}")

    def _refusal(self, status: int, body: object) -> KubernetesError:
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
        try:
            document = parse_json(text)
        except ValueError:
            document = {}
        if not isinstance(document, dict):
            document = {}
        message, reason = document.get("message", text), document.get("reason", "")
        words = f"the Kubernetes API at {self.url} refused it ({status}): {message}"
        if remedy := self._access.remedy(status):
            words = f"{words}; {remedy}"
        return KubernetesError(words, status=status, reason=reason)
