"""The pages of a worker: metrics, and probes of whether it lives and is ready."""

import hmac
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from loguru import logger
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

Check = Callable[[], str]
"""Returns the problem, empty if there is none. Called often: it must be quick and send no request."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The results of the checks of one probe, one per line."""

    is_well: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A named probe, as in `/livez`, with its checks."""

    name: str
    checks: Mapping[str, Check] = field(default_factory=dict)

    def report(self) -> ProbeReport:
        """Run each check; one that raises has failed."""
        results = {name: _run(name, check) for name, check in self.checks.items()}
        is_well = not any(results.values())
        lines = [
            f"[-]{name} failed: {words}" if words else f"[+]{name} ok" for name, words in results.items()
        ]
        return ProbeReport(is_well, (*lines, f"{self.name} check {'passed' if is_well else 'failed'}"))


def _run(name: str, check: Check) -> str:
    try:
        return " ".join(check().split())
    except Exception as error:  # noqa: BLE001 - a bug in one check must not hide the others
        logger.warning("the check {} has raised an error: {}", name, error)
        return "the check has raised an error"


WORDS = "text/plain; charset=utf-8"
PageResponse = tuple[HTTPStatus, str, bytes]  # status, content type, body
FRESH_SECONDS = 1.0  # for this time one reading of the metrics serves all clients
_PATIENCE_SECONDS = 5.0


class Pages:
    """Answers requests. `token`: the bearer token that clients have to send, None = none."""

    def __init__(self, registry: CollectorRegistry, probes: Mapping[str, Probe], token: str | None) -> None:
        self._registry, self._probes = registry, probes
        self._token = token
        self._guard = threading.Lock()
        self._metrics, self._fresh_until = b"", 0.0  # monotonic

    def answer(self, target: str, authorization: str) -> PageResponse:
        """Status, content type and body for a request.

        Without a token a probe only reveals whether it passes, as Kubernetes' own servers do.
        """
        path, _, query = target.partition("?")
        name = path.removeprefix("/")
        is_allowed = self._is_allowed(authorization)
        if name in self._probes:
            is_verbose = any(part.partition("=")[0] == "verbose" for part in query.split("&"))
            if is_verbose and not is_allowed:
                return _UNAUTHORIZED
            return self._probe(name, is_verbose=is_verbose, is_allowed=is_allowed)
        if name != "metrics":
            paths = ", ".join(f"/{known}" for known in ("metrics", *self._probes))
            return HTTPStatus.NOT_FOUND, WORDS, f"the pages are {paths}\n".encode()
        if not is_allowed:
            return _UNAUTHORIZED
        return self._read()

    def _read(self) -> PageResponse:
        """The metrics, collected once for all clients that ask at the same time."""
        if not self._guard.acquire(timeout=_PATIENCE_SECONDS):
            return HTTPStatus.SERVICE_UNAVAILABLE, WORDS, b"the previous reading is not finished\n"
        try:
            if time.monotonic() >= self._fresh_until:
                self._metrics = generate_latest(self._registry)
                self._fresh_until = time.monotonic() + FRESH_SECONDS
            return HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, self._metrics
        finally:
            self._guard.release()

    def _probe(self, name: str, *, is_verbose: bool, is_allowed: bool) -> PageResponse:
        report = self._probes[name].report()
        status = HTTPStatus.OK if report.is_well else HTTPStatus.INTERNAL_SERVER_ERROR
        lines = report.lines if is_verbose or (is_allowed and not report.is_well) else report.lines[-1:]
        words = "ok" if report.is_well and not is_verbose else "\n".join(lines)
        return status, WORDS, f"{words}\n".encode()

    def _is_allowed(self, authorization: str) -> bool:
        if self._token is None:
            return True
        sent = authorization.encode("utf-8", "replace")
        return hmac.compare_digest(sent, f"Bearer {self._token}".encode())


_UNAUTHORIZED: PageResponse = (HTTPStatus.UNAUTHORIZED, WORDS, b"a bearer token is required\n")
