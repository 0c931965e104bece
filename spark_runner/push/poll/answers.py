"""The answers to clients: JSON documents, with their heads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from spark_runner.push.poll.buffer import Page, ServingFailed
from spark_runner.push.poll.cursor import BadCursor, CursorGone
from spark_runner.push.poll.requests import BadRequest

_FAILED = (
    "the attempt that serves these rows has failed, or its job was killed, before all rows were acknowledged;"
    " a further attempt serves all rows again, at the address that `job show` prints then"
)
_BEGIN = "ask without `after` for the oldest row that is not acknowledged"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `tells_end`: the client learns that no more rows come, because of the end or of an error."""

    status: HTTPStatus
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    tells_end: bool = False
    has_rows: bool = False

    def encoded(self, *, is_head: bool, stays: bool) -> bytes:
        """All bytes of it."""
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(self.body)),
            "Cache-Control": "no-store",
            "Connection": "keep-alive" if stays else "close",
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if is_head else self.body)


def of_page(page: Page) -> Answer:
    """The answer with a page."""
    end = json.dumps(page.is_end).encode()
    body = b'{"rows":[%b],"next":"%b","end":%b}\n' % (b",".join(page.rows), str(page.cursor).encode(), end)
    return Answer(HTTPStatus.OK, body, tells_end=page.is_end, has_rows=bool(page.rows))


def of_head(*, has_failed: bool) -> Answer:
    """The answer to HEAD: whether rows are served."""
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "failed", _FAILED) if has_failed else _OK


def of_error(error: Exception) -> Answer:
    """The answer to a request that cannot be served."""
    match error:
        case BadRequest():
            return _error(error.status, error.code, str(error), error.headers)
        case BadCursor():
            return _error(HTTPStatus.BAD_REQUEST, "bad_cursor", str(error))
        case CursorGone():
            return _error(HTTPStatus.GONE, "cursor_gone", f"{error}; {_BEGIN}")
        case ServingFailed():
            return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "failed", _FAILED, tells_end=True)
        case _:  # a fault of this code must not reveal more to the client
            return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the request cannot be processed")


_OK = Answer(HTTPStatus.OK, b"")


def _error(
    status: HTTPStatus,
    code: str,
    words: str,
    headers: Mapping[str, str] | None = None,
    *,
    tells_end: bool = False,
) -> Answer:
    body = json.dumps({"error": {"code": code, "message": words}}).encode() + b"\n"
    return Answer(status, body, headers or {}, tells_end)
