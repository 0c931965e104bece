"""The records of an answer, and the way to the next page."""

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode, urljoin

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.http.address import quoted, statuses
from spark_runner.connectors.http.answers import Answer
from spark_runner.connectors.http.client import Client, same_server
from spark_runner.connectors.http.json_path import value_at
from spark_runner.connectors.templates import columns_of, pieces

MAX_BYTES = 64 * 1024 * 1024  # of one page
_MISSING = 404
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\b)', re.IGNORECASE)
_MARK = f"number {secrets.token_hex(8)} "  # before numbers that Python would round
_MARKED = re.compile(rf'"{_MARK}([^"]*)"')
_HALVES = re.compile("[\ud800-\udfff]")  # of a surrogate pair: JSON may have one alone, UTF-8 not


class Pages:
    """The pages of a table."""

    def __init__(self, client: Client, options: Mapping[str, Any]) -> None:
        if columns_of(client.path):
            raise ConnectorError("a table that is read has a URL without columns")
        self._client, self._options, self._paging = client, options, str(options["paging"])
        self._success = statuses(options["success_status"])
        self._param = str(options["page_param"]) or self._paging
        size = {options["page_size_param"]: options["page_size"]} if options["page_size_param"] else {}
        self._start = _with(quoted("".join(each.text for each in pieces(client.path))), size)

    def __iter__(self) -> Iterator[list[str]]:
        """The records of each page, as JSON; raises ConnectorError, and Unreachable."""
        options, counts = self._options, self._paging in {"page", "offset"}
        position = options["first_page"] if self._paging == "page" else 0
        path: str | None = _with(self._start, {self._param: position}) if counts else self._start
        seen, before = {path}, ""
        for number in range(options["max_pages"]):
            assert path is not None  # noqa: S101 - for mypy: the loop ends below
            answer = self._client.get(path, {"accept": "application/json"}, MAX_BYTES)
            if number and self._paging == "page" and answer.status == _MISSING:
                return  # as some servers say that there is no such page
            document = self._document(answer)
            records = self._records(document)
            digest = sha256(answer.data).hexdigest() if counts else ""
            if counts and records and digest == before:
                raise self._error(f"page {number + 1} is the same as the one before; check 'page_param'")
            before = digest
            if records:
                yield [_text(each) for each in records]
            if counts:
                position += 1 if self._paging == "page" else len(records)
                path = _with(self._start, {self._param: position}) if records else None
            else:
                path = self._next(answer, document, path)
                if path in seen:
                    raise self._error(f"page {number + 1} leads to a page that was read before")
                seen.add(path)
            if path is None:
                return
        raise self._error(f"there are more pages than max_pages, {options['max_pages']:,}")

    def _document(self, answer: Answer) -> Any:
        if answer.status not in self._success:
            raise self._client.refusal(answer)
        if not answer.is_whole:
            raise self._error(f"an answer has more than {MAX_BYTES:,} bytes; ask for smaller pages")
        try:
            return json.loads(answer.data, parse_float=_marked, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise self._error("an answer is no JSON") from error

    def _records(self, document: Any) -> list[Any]:
        found = value_at(document, self._options["records"])
        if isinstance(found, dict):
            return [found]
        if isinstance(found, list):
            return found
        place = f"at '{self._options['records']}' " if self._options["records"] else ""
        raise self._error(f"an answer has {place}no array of records; check 'records'")

    def _next(self, answer: Answer, document: Any, path: str) -> str | None:
        if self._paging == "none":
            return None
        given = self._options["cursor_path"]
        found = value_at(document, given) if given else _linked(answer)
        if found in (None, "", False, 0):  # each of them is the end somewhere
            return None
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise self._error(f"'{given}' is no text")
        found = str(found).removeprefix(_MARK)
        if self._paging == "cursor":
            return _with(self._start, {self._options["cursor_param"]: found})
        try:
            return same_server(urljoin(f"{self._client.server}{path}", found), self._client.server)
        except ValueError as error:
            reason = self._client.shown(str(error))
            raise self._error(f"the link to the next page is wrong: {reason}") from None

    def _error(self, words: str) -> ConnectorError:
        return ConnectorError(f"{self._client.server}: {words}")


def _with(path: str, parameters: Mapping[str, Any]) -> str:
    added = urlencode(parameters)
    return f"{path}{'&' if '?' in path else '?'}{added}" if added else path


def _linked(answer: Answer) -> str | None:
    """The next page in the headers `Link`, as RFC 8288 defines them."""
    for header in answer.headers.get_all("Link", []):
        for target, parameters in _LINK.findall(header):
            if _NEXT.search(parameters):
                return str(target)
    return None


def _marked(number: str) -> str:
    return f"{_MARK}{number}"


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _text(record: Any) -> str:
    text = _MARKED.sub(r"\1", json.dumps(record, ensure_ascii=False, separators=(",", ":")))
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
