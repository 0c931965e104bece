"""The requests of clients, whose head is read already: what is none is answered with the reason."""

import hmac
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException, HTTPMessage, parse_headers
from urllib.parse import parse_qsl, urlsplit

from spark_runner.push.errors import PushError
from spark_runner.push.poll.cursor import Cursor

PATH = "/rows"
MAX_WAIT_S = 60.0
MAX_HEAD_BYTES = 16 * 1024
"""Of a request line with its headers."""
_MAX_PARAMETERS = 10
_VERSIONS = ("HTTP/1.0", "HTTP/1.1")
_PARTS = 3  # of a request line
# A proxy may read other lines in another way, and take a part of a request for a further one.
_FIELDS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n")
_PLAIN: Mapping[str, str] = {}


class BadRequest(PushError):
    """A request that is answered with an error."""

    def __init__(
        self, status: HTTPStatus, code: str, words: str, headers: Mapping[str, str] = _PLAIN
    ) -> None:
        super().__init__(words)
        self.status, self.code, self.headers = status, code, headers


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a client asks for; `after` is None without a cursor, and `limit` without one in rows.

    `is_head`: it asks whether there is an answer, and for no rows. `stays`: it may send further requests.
    """

    is_head: bool = False
    after: Cursor | None = None
    limit: int | None = None
    wait: float = 0.0
    stays: bool = field(default=True)


def read_request(head: bytes, token: str) -> PageRequest:
    """The request with this head, of a client that has the token; raises BadRequest, BadCursor.

    The head is empty if it was longer than MAX_HEAD_BYTES.
    """
    if not head:
        words = f"a request has at most {MAX_HEAD_BYTES} bytes"
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too_large", words)
    line, _, rest = head.partition(b"\r\n")
    parts = line.decode("latin-1").split(" ")
    if len(parts) != _PARTS or parts[2] not in _VERSIONS:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "bad_request", "it is no request of HTTP/1.1")
    method, target, version = parts
    if not _FIELDS.fullmatch(rest):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "bad_request", "its headers are none of HTTP/1.1")
    try:
        headers = parse_headers(io.BytesIO(rest))
    except HTTPException as error:
        words = "it has too many headers"
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too_large", words) from error
    _check_token(headers, token)
    if method not in {"GET", "HEAD"}:
        allow = {"Allow": "GET, HEAD"}
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED, "bad_method", "use GET or HEAD", allow)
    lengths = headers.get_all("content-length") or []
    if "transfer-encoding" in headers or any(each.strip() != "0" for each in lengths):
        raise BadRequest(HTTPStatus.BAD_REQUEST, "bad_request", "a request has no body")
    try:
        url = urlsplit(target)
    except ValueError as error:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "bad_request", "its URL is wrong") from error
    if url.path != PATH:
        raise BadRequest(HTTPStatus.NOT_FOUND, "not_found", f"only {PATH} is served")
    connection = headers.get("connection", "").lower()
    stays = version == _VERSIONS[1] and "close" not in connection
    return _with_parameters(url.query, PageRequest(method == "HEAD", stays=stays))


def _check_token(headers: HTTPMessage, token: str) -> None:
    given = headers.get_all("authorization") or []
    scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    is_right = hmac.compare_digest(value.strip().encode(), token.encode())
    if not (is_right and scheme.lower() == "bearer"):
        words = "send the token of the table as `Authorization: Bearer TOKEN`"
        challenge = {"WWW-Authenticate": "Bearer"}
        raise BadRequest(HTTPStatus.UNAUTHORIZED, "unauthorized", words, challenge)


def _with_parameters(query: str, request: PageRequest) -> PageRequest:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError as error:
        raise _bad("it has too many parameters") from error
    given = dict(pairs)
    if unknown := given.keys() - {"after", "limit", "wait"}:
        raise _bad(f"parameter {min(unknown)[:60]!a} is unknown; there are `after`, `limit` and `wait`")
    if len(given) < len(pairs):
        raise _bad("a parameter is there twice")
    limit = _number(given, "limit", 1, None)
    wait = _number(given, "wait", 0, MAX_WAIT_S) or 0.0
    after = Cursor.of(given["after"]) if "after" in given else None
    return PageRequest(request.is_head, after, None if limit is None else int(limit), wait, request.stays)


def _number(given: Mapping[str, str], name: str, least: int, most: float | None) -> float | None:
    if name not in given:
        return None
    text = given[name]
    is_plain = text.isascii() and text.replace(".", "", 0 if most is None else 1).isdecimal()
    value = float(text) if is_plain and len(text) <= 12 else math.nan  # noqa: PLR2004 - digits, enough for any
    if not least <= value <= (math.inf if most is None else most):
        bounds = f"of at least {least}" if most is None else f"of seconds from {least} to {most:g}"
        raise _bad(f"`{name}` must be a number {bounds}")
    return value


def _bad(words: str) -> BadRequest:
    return BadRequest(HTTPStatus.BAD_REQUEST, "bad_request", words)
