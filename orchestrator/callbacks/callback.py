"""Calling the receivers of what happens to a job, and what they answer."""

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.callbacks.http_post import PostAnswer, Poster, PostError
from orchestrator.errors import OrchestratorError
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.models.definition import Callback
from orchestrator.policy.policy import Listed, Policy, Refused

CALLS_AT_ONCE = 8  # of a worker: each holds a thread that jobs are looked at with, for its timeout at most
_SUCCESS = "SUCCESS"
_VARIABLE = re.compile(r"\$\{env:(\w+)\}")
_NAME = r"\$\{env:\w+\}"
_ADDRESS = re.compile(  # strict, so that a password with a slash in it is not taken for a port
    rf"(?P<scheme>https?://)(?:[^/?#]*@)?"
    rf"(?P<host>(?:[\w.-]|\[[\da-fA-F:.]+\]|{_NAME})+(?::(?:\d+|{_NAME}))?)(?=[/?#]|$)"
    rf"|{_NAME}"
)
_MAX_SHOWN_CHARACTERS = 100  # of what the receiver wrote
_MAX_ADDRESS_CHARACTERS = 300  # as long as a name in the DNS may be, with scheme and port


class CallbackError(OrchestratorError):
    """A receiver could not be told; the message names the receiver's host and no more of it."""


class CallbackRefused(CallbackError):
    """The operator's settings do not allow this receiver: no further try is made."""


class NoPlace(OrchestratorError):
    """As many callbacks as there may be at once are under way."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    status: str | None = None


class Reply(BaseModel):
    """What a receiver answers; it may say more than is read."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    code: str
    data: _Data | None = None

    @property
    def status(self) -> str | None:
        """The status that the job shall have instead; None = as it was told."""
        return (self.data.status or None) if self.data is not None else None


class Callbacks:
    """Calls the receivers, a limited number at once. Thread-safe.

    `check` says how the operator lists a host and port for a pool and the URL of a definition, and raises
    Refused for what is not allowed.
    """

    def __init__(
        self,
        at_once: int = CALLS_AT_ONCE,
        *,
        check: Callable[[str, str, str, int], Listed] | None = None,
    ) -> None:
        self._check = check or Policy().check_callback
        self._guard = threading.Lock()
        self._under_way = Counter[str]()  # by what may be shown of their addresses
        self._waiting: dict[Callable[[], bool], str] = {}  # who waits for a place, and for whom, in order
        self._at_once = at_once
        self._poster = Poster()

    def call(
        self, callback: Callback, body: Mapping[str, Any], on_free: Callable[[], bool] | None = None
    ) -> Reply:
        """Tell what `callback_body` made, and return the answer, whose code is SUCCESS.

        Blocks for the timeout of the callback at most. Raises CallbackError, and NoPlace without having
        called: see `take_place`.
        """
        self.take_place(callback, on_free)
        return self.call_in_place(callback, body)

    def take_place(self, callback: Callback, on_free: Callable[[], bool] | None = None) -> None:
        """Take one for `call_in_place`, which gives it back; raises NoPlace.

        One receiver gets half of them: those that it is slow to answer keep no other's back. `on_free` is
        called when there may be a place after that, and says whether it is still wanted: else the next is.
        """
        receiver = address(callback.url)
        with self._guard:
            if reason := self._why_full(receiver):
                if on_free is not None:
                    self._waiting.setdefault(on_free, receiver)
                raise NoPlace(reason)
            if on_free is not None:
                self._waiting.pop(on_free, None)
            self._under_way[receiver] += 1

    def _why_full(self, receiver: str) -> str:
        if self._under_way.total() >= self._at_once:
            return "too many callbacks are under way"
        if self._under_way[receiver] >= max(1, self._at_once // 2):
            return f"too many callbacks to {receiver} are under way"
        return ""

    def _give_back(self, receiver: str) -> None:
        with self._guard:
            self._under_way[receiver] -= 1
            self._under_way += Counter()  # without those at zero: receivers come and go
        while (on_free := self._next_waiting()) is not None and not on_free():
            pass

    def _next_waiting(self) -> Callable[[], bool] | None:
        with self._guard:
            for on_free, receiver in self._waiting.items():
                if not self._why_full(receiver):
                    del self._waiting[on_free]
                    return on_free
        return None

    def call_in_place(self, callback: Callback, body: Mapping[str, Any]) -> Reply:
        """What `call` does once there is a place."""
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
        except Refused as error:
            raise CallbackRefused(str(error)) from None
        except (PostError, CallbackError) as error:
            raise CallbackError(f"{receiver}: {error}") from None
        finally:
            self._give_back(receiver)


def idempotency_key(body: Mapping[str, Any]) -> str:
    """The name of one event for ever: each try of it has the same, and nothing else has.

    The number alone would do, but for a worker that dies between an answer and its step while somebody stops
    the job: the next one then tells another status by that number.
    """
    return "-".join(str(body[name]) for name in ("run_key", "attempt", "event", "status", "number"))


def address(url: str) -> str:
    """As much of a URL as may be shown: scheme, host, port; secrets stand in the rest, in paths too."""
    found = _ADDRESS.match(url)
    if found is None:
        return "its URL"
    told = found[0] if found["scheme"] is None else f"{found['scheme']}{found['host']}"
    return told[:_MAX_ADDRESS_CHARACTERS]


def _resolved(url: str) -> str:
    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if not found:
            raise CallbackError(f"the environment of this worker has no variable {match[1]}")
        # Of an address the path may be a secret, its host is none.
        REDACTOR.add([found.partition("://")[2].partition("/")[2] if "://" in found else found])
        return found

    return _VARIABLE.sub(value, url)


def _reply(answer: PostAnswer) -> Reply:
    if 300 <= answer.status < 400:  # noqa: PLR2004 - the redirects of HTTP
        raise CallbackError(f"HTTP {answer.status}: redirects are not followed")
    if not 200 <= answer.status < 300:  # noqa: PLR2004 - the successes of HTTP
        raise CallbackError(f"HTTP {answer.status}")
    try:
        reply = Reply.model_validate_json(answer.body)
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
    """What a receiver wrote, in quotes, fit for logs and records."""
    text = REDACTOR.mask(text)  # before it is cut: half a secret is none to know
    cut = text[:_MAX_SHOWN_CHARACTERS] + ("..." if len(text) > _MAX_SHOWN_CHARACTERS else "")
    return json.dumps(cut)
