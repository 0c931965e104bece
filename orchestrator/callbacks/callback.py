"""Calls the receivers of job events, and reads their replies."""

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.callbacks.http_post import PostAnswer, Poster, PostError
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.definition_parts import Callback
from orchestrator.model.errors import OrchestratorError
from orchestrator.policy.policy import Policy
from orchestrator.policy.rules import Listed, PolicyRefused

CALLS_AT_ONCE = 8  # per worker: each call occupies a handler thread, for its timeout at most
_SUCCESS = "SUCCESS"
_VARIABLE = re.compile(r"\$\{env:(\w+)\}")
_NAME = r"\$\{env:\w+\}"
_ADDRESS = re.compile(  # strict, so that a password with a slash is not mistaken for a port
    rf"(?P<scheme>https?://)(?:[^/?#]*@)?"
    rf"(?P<host>(?:[\w.-]|\[[\da-fA-F:.]+\]|{_NAME})+(?::(?:\d+|{_NAME}))?)(?=[/?#]|$)"
    rf"|{_NAME}"
)
_MAX_SHOWN_CHARACTERS = 100  # of a reply
_MAX_ADDRESS_CHARACTERS = 300  # the longest DNS name, with scheme and port


class CallbackError(OrchestratorError):
    """A callback has failed; of the receiver's URL, the message names only the host."""


class CallbackRefused(CallbackError):
    """The operator's settings do not allow this receiver; the callback is not retried."""


class CallbacksBusy(OrchestratorError):
    """The limit of concurrent callbacks is reached."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    status: str | None = None


class CallbackReply(BaseModel):
    """The reply of a receiver; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    code: str
    data: _Data | None = None

    @property
    def status(self) -> str | None:
        """The status that overrides the job's; None = no change."""
        return (self.data.status or None) if self.data is not None else None


class Callbacks:
    """Calls the receivers, with a limit of concurrent calls. Thread-safe.

    `check` returns how the operator lists a host and port, for a pool and the URL of a definition, and raises
    PolicyRefused if they are not allowed.
    """

    def __init__(
        self,
        at_once: int = CALLS_AT_ONCE,
        *,
        check: Callable[[str, str, str, int], Listed] | None = None,
    ) -> None:
        self._check = check or Policy().check_callback
        self._guard = threading.Lock()
        self._in_flight = Counter[str]()  # by the public part of their addresses
        self._waiting: dict[Callable[[], bool], str] = {}  # waiting callers in order, with their receivers
        self._at_once = at_once
        self._poster = Poster()

    def call(
        self, callback: Callback, body: Mapping[str, Any], on_free: Callable[[], bool] | None = None
    ) -> CallbackReply:
        """Send a body of `callback_body`, and return the reply, whose code is SUCCESS.

        Blocks for at most the timeout of the callback. Raises CallbackError, and CallbacksBusy before any
        call: see `reserve`.
        """
        self.reserve(callback, on_free)
        return self.call_reserved(callback, body)

    def reserve(self, callback: Callback, on_free: Callable[[], bool] | None = None) -> None:
        """Reserve a call for `call_reserved`, which releases it; raises CallbacksBusy.

        One receiver gets at most half of all calls, so that a slow one does not block the others. After
        CallbacksBusy, `on_free` is called once a call may be free. It returns whether its caller still needs
        it; otherwise the next waiting caller is called.
        """
        receiver = address(callback.url)
        with self._guard:
            if reason := self._why_full(receiver):
                if on_free is not None:
                    self._waiting.setdefault(on_free, receiver)
                raise CallbacksBusy(reason)
            if on_free is not None:
                self._waiting.pop(on_free, None)
            self._in_flight[receiver] += 1

    def _why_full(self, receiver: str) -> str:
        if self._in_flight.total() >= self._at_once:
            return "too many callbacks are in progress"
        if self._in_flight[receiver] >= max(1, self._at_once // 2):
            return f"too many callbacks to {receiver} are in progress"
        return ""

    def _release(self, receiver: str) -> None:
        with self._guard:
            self._in_flight[receiver] -= 1
            self._in_flight += Counter()  # drops those at zero, because the number of receivers is unbounded
        while (on_free := self._next_waiting()) is not None and not on_free():
            pass

    def _next_waiting(self) -> Callable[[], bool] | None:
        with self._guard:
            for on_free, receiver in self._waiting.items():
                if not self._why_full(receiver):
                    del self._waiting[on_free]
                    return on_free
        return None

    def call_reserved(self, callback: Callback, body: Mapping[str, Any]) -> CallbackReply:
        """Make a call after `reserve`; otherwise as `call`."""
        receiver = address(callback.url)
        try:
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": "spark-job-orchestrator",
                "Idempotency-Key": idempotency_key(body),
            }
            data = json.dumps(body).encode()
            pool = str(body["pool"])
            answer = self._poster.post(
                _resolved(callback.url),
                data,
                headers,
                seconds=callback.timeout,
                check=lambda host, port: self._check(pool, callback.url, host, port),
            )
            return _reply(answer)
        except PolicyRefused as error:
            raise CallbackRefused(str(error)) from None
        except (PostError, CallbackError) as error:
            raise CallbackError(f"{receiver}: {error}") from None
        finally:
            self._release(receiver)


def idempotency_key(body: Mapping[str, Any]) -> str:
    """The unique key of one event: all attempts to deliver it have this key, and no other event does.

    The number alone is not enough. If a worker dies between a reply and its commit while an operator stops
    the job, the next worker reports another status under the same number.
    """
    return "-".join(str(body[name]) for name in ("run_key", "attempt", "event", "status", "number"))


def address(url: str) -> str:
    """The public part of a URL: scheme, host and port. The rest, paths included, may hold secrets."""
    found = _ADDRESS.match(url)
    if found is None:
        return "its URL"
    public = found[0] if found["scheme"] is None else f"{found['scheme']}{found['host']}"
    return public[:_MAX_ADDRESS_CHARACTERS]


def _resolved(url: str) -> str:
    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if not found:
            raise CallbackError(f"the environment of this worker has no variable {match[1]}")
        # The path of an address may be a secret, its host is not.
        REDACTOR.add([found.partition("://")[2].partition("/")[2] if "://" in found else found])
        return found

    return _VARIABLE.sub(value, url)


def _reply(answer: PostAnswer) -> CallbackReply:
    if 300 <= answer.status < 400:  # noqa: PLR2004 - the redirects of HTTP
        raise CallbackError(f"HTTP {answer.status}: redirects are not followed")
    if not 200 <= answer.status < 300:  # noqa: PLR2004 - the successes of HTTP
        raise CallbackError(f"HTTP {answer.status}")
    try:
        reply = CallbackReply.model_validate_json(answer.body)
    except ValidationError as error:
        raise CallbackError(f"its answer {_mistake(error)}") from None
    if reply.code != _SUCCESS:
        raise CallbackError(f"its answer has the code {shown(reply.code)}, which is not SUCCESS")
    return reply


def _mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "json_invalid":
        return "is not valid JSON"
    if not field:
        return "is not a JSON object"
    return f"has no {field}" if first["type"] == "missing" else f"has a {field} of a wrong type"


def shown(text: str) -> str:
    """A text of a receiver in quotes, masked and shortened for logs and records."""
    text = REDACTOR.mask(text)  # before it is cut, because half a secret would not be recognised
    cut = text[:_MAX_SHOWN_CHARACTERS] + ("..." if len(text) > _MAX_SHOWN_CHARACTERS else "")
    return json.dumps(cut)


class CallbackDelivery:
    """A call in progress, and its outcome."""

    def __init__(self, number: int, call: Callable[[], CallbackReply], on_end: Callable[[], None]) -> None:
        self.number = number
        self.outcome: CallbackReply | CallbackError | None = None  # None while it is in progress
        self._call, self._on_end = call, on_end

    def start(self) -> None:
        """Start the call; `on_end` is called once there is an outcome."""
        thread = threading.Thread(target=self._run, name=f"callback-{self.number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread is available: call here, because the call is reserved already
            self._run()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except CallbackError as error:
            self.outcome = error
        except Exception as error:  # noqa: BLE001 - the job waits for an outcome in any case
            self.outcome = CallbackError(f"it could not be called: {type(error).__name__}")
        self._on_end()
