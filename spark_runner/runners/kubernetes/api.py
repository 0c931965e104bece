"""The API of one Kubernetes cluster: the only module that imports the client library.

Objects are plain JSON documents.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from http import HTTPStatus
from typing import Any, cast

from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.plain_file import parse_json
from spark_runner.runners.http_json import no_answer
from spark_runner.runners.kubernetes.access import KubernetesCredentials

CONNECT_SECONDS = 5.0
READ_SECONDS = 15.0
WATCH_SECONDS = 30
"""The server ends a watch after this time; a watch that is silent for longer has lost its connection."""

_TIMEOUT = (CONNECT_SECONDS, READ_SECONDS)
_WATCH_TIMEOUT = (CONNECT_SECONDS, WATCH_SECONDS + READ_SECONDS)
INSTALL = "pip install 'spark-job-orchestrator[kubernetes]'"

Document = dict[str, Any]


def api_url(master: str) -> str:
    """The address of the API in a master URL."""
    return master.removeprefix("k8s://")


class KubernetesError(SparkRunnerError):
    """The Kubernetes API did not answer, or refused a request; `status` is the HTTP status, 0 without one."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class KubernetesApi:
    """Requests to the API at `url` with `credentials`, which are for this server only."""

    def __init__(self, url: str, credentials: KubernetesCredentials) -> None:
        self.url = url
        self.credentials = credentials

    def pods(self, namespace: str, selector: str) -> tuple[list[Document], str]:
        """The current pods with these labels from the cluster's store, and the version of this answer."""
        document = self._json(
            lambda: self._core.list_namespaced_pod(
                namespace, label_selector=selector, _preload_content=False, _request_timeout=_TIMEOUT
            )
        )
        return document["items"], document["metadata"]["resourceVersion"]

    def watch_pods(self, namespace: str, selector: str, version: str) -> Iterator[Document]:
        """The changes after `version`, for WATCH_SECONDS; raises KubernetesError, 410 if it has expired."""
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
        """The last lines of a container's log, or of its last seconds, each line with its time.

        None if the log does not exist yet, or no longer.
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
        """Create a secret; an existing secret of the same name counts as this one."""
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
        """Begin to delete exactly this pod; a missing pod is no error."""
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
    def _core(self) -> Any:  # the library's types change between versions, its names do not
        try:
            # Imported on first use: few workers have such a cluster, and the others need not install it.
            from kubernetes import client, config  # noqa: PLC0415
        except ImportError as error:
            raise KubernetesError(f"the Kubernetes client is not installed: {INSTALL}") from error
        settings, load = client.Configuration(), cast("Any", config)  # `config` is untyped
        if missing := self.credentials.missing():
            raise KubernetesError(f"no access to {self.url}: {missing}")
        try:
            if self.credentials.is_pod:
                load.load_incluster_config(client_configuration=settings)
            else:
                load.load_kube_config(
                    os.environ.get("KUBECONFIG"),  # the library itself reads it only on import
                    context=self.credentials.named_context() or None,
                    client_configuration=settings,
                )
        except Exception as error:  # of any type: the file may be no YAML, or hold something else
            raise KubernetesError(
                f"no access to {self.url}: {error}; correct {self.credentials} on the worker"
            ) from error
        if not (self.credentials.is_server(self.url) and self.credentials.is_server(settings.host)):
            raise KubernetesError(
                f"no access to {self.url}: {self.credentials} on the worker names the server "
                f"{settings.host}, and the worker sends its credentials to no other server, only over https"
            )
        settings.retries = False  # the caller decides about retries
        return client.CoreV1Api(client.ApiClient(settings))

    def _json(self, request: Callable[[], Any]) -> Document:
        document: Document = json.loads(self._ask(request).data)
        return document

    def _ask(self, request: Callable[[], Any]) -> Any:
        _ = self._core  # loaded here: its errors are KubernetesError already
        from kubernetes.client import ApiException  # noqa: PLC0415 - as above
        from urllib3.exceptions import HTTPError, ProtocolError  # noqa: PLC0415 - it comes with the client

        try:
            try:
                return request()
            except ProtocolError:  # the server closed a kept connection: once more, on a new one
                return request()
        except ApiException as error:
            if not error.status:  # the library reports TLS errors so
                raise self._unreachable(error.reason) from error
            raise self._refusal(error.status, error.body or error.reason or "") from error
        except (HTTPError, OSError) as error:
            raise self._unreachable(error) from error

    def _pieces(self, response: Any) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

        try:
            yield from response.stream(65536)
        except (HTTPError, OSError) as error:
            raise KubernetesError(
                f"the Kubernetes API at {self.url} stopped answering: {no_answer(str(error))}"
            ) from error

    def _unreachable(self, error: object) -> KubernetesError:
        words = no_answer(str(error))
        hint = f"check the address in `spark.master`, and the certificates of {self.credentials}"
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
        words = f"the Kubernetes API at {self.url} refused the request ({status}): {message}"
        if remedy := self.credentials.remedy(status):
            words = f"{words}; {remedy}"
        return KubernetesError(words, status=status, reason=reason)
