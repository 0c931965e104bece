"""Pages of the HTTP connector: how a read finds the next one, and when it ends."""

import itertools
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.pages import Pages
from spark_runner.connectors.options import to_plan, validate
from tests.servers.web import Received, Reply, web_server

ITEMS = [{"id": number} for number in range(7)]


def pages(url: str, **options: str) -> list[list[Any]]:
    given = to_plan(validate("http", {"url": url, "retry_timeout": "5", **options}))
    with closing(Client(given)) as client:
        return [[json.loads(each) for each in page] for page in Pages(client, given)]


def parameter(received: Received, name: str, default: int = 0) -> int:
    return int(parse_qs(urlsplit(received.path).query).get(name, [str(default)])[0])


def reply(document: Any, **headers: str) -> Reply:
    return Reply(body=json.dumps(document).encode(), headers=headers)


def by_page(received: Received) -> Reply:
    start = 3 * (parameter(received, "page") - 1)
    return reply({"data": {"items": ITEMS[start : start + 3]}})


def by_page_with_an_end(received: Received) -> Reply:
    return by_page(received) if parameter(received, "page") < 4 else Reply(404)


def by_offset(received: Received) -> Reply:
    # It gives less than it is asked for.
    assert parameter(received, "limit") == 5
    start = parameter(received, "offset")
    return reply({"data": {"items": ITEMS[start : start + 3]}})


def by_cursor(received: Received) -> Reply:
    start = parameter(received, "after")
    return reply({"data": {"items": ITEMS[start : start + 3]}, "next": start + 3 if start < 6 else None})


def by_link(received: Received) -> Reply:
    start = parameter(received, "start")
    link = (
        f'</i?x=1>; rel="first", </i?start={start + 3}&q=a%20b>; rel="next"'
        if start < 6
        else "</i>; rel=first"
    )
    return reply({"data": {"items": ITEMS[start : start + 3]}}, Link=link)


@pytest.mark.parametrize(
    ("server", "options", "requests"),
    [
        (by_page, {"paging": "page"}, 4),
        (by_page_with_an_end, {"paging": "page"}, 4),
        (by_offset, {"paging": "offset", "page_size": "5", "page_size_param": "limit"}, 4),
        (by_cursor, {"paging": "cursor", "cursor_param": "after", "cursor_path": "next"}, 3),
        (by_cursor, {"paging": "cursor", "cursor_param": "after", "cursor_path": "next", "url": "?q=1"}, 3),
        (by_link, {"paging": "link"}, 3),
    ],
)
def test_each_record_is_read_once(
    server: Callable[[Received], Reply], options: dict[str, str], requests: int
) -> None:
    with web_server(server) as found:
        given = {**options, "url": f"{found.url}/i{options.get('url', '')}"}
        read = pages(**given, records="data.items")
        assert list(itertools.chain(*read)) == ITEMS
        assert len(found.received) == requests
        assert all(("q=1" in each.path) == ("url" in options) for each in found.received)


def test_a_link_may_be_in_the_answer_and_must_lead_to_the_same_server() -> None:
    def linked(received: Received) -> Reply:
        return reply({"items": [1], "next": "/i?page=2" if "page" not in received.path else ""})

    with web_server(linked) as server:
        options = {"paging": "link", "records": "items", "cursor_path": "next"}
        assert pages(f"{server.url}/i", **options) == [[1], [1]]
        server.reply = lambda _: reply({"items": [1], "next": "https://elsewhere.example.org/i"})
        with pytest.raises(ConnectorError, match=r"leads to another server, https://elsewhere\.example"):
            pages(f"{server.url}/i", **options)


@pytest.mark.parametrize(
    ("answers", "options", "words"),
    [
        (
            lambda n: {"items": [n], "next": n % 2 + 1},
            {"paging": "cursor", "cursor_path": "next", "max_pages": "9"},
            "page 3 leads to",
        ),
        (
            lambda _: {"items": [1]},
            {"paging": "page", "max_pages": "9"},
            "page 2 is the same as the one before; check 'page_param'",
        ),
        (
            lambda n: {"items": [n], "next": n},
            {"paging": "cursor", "cursor_path": "next", "max_pages": "5"},
            "there are more pages than max_pages, 5",
        ),
        (
            lambda _: {"items": [1], "next": [2]},
            {"paging": "cursor", "cursor_path": "next", "max_pages": "9"},
            "'next' is no text",
        ),
        (lambda _: {"other": []}, {}, "an answer has at 'items' no array of records"),
    ],
)
def test_a_read_without_end_or_without_records_fails(
    answers: Callable[[int], Any], options: dict[str, str], words: str
) -> None:
    numbers = itertools.count(1)
    with (
        web_server(lambda _: reply(answers(next(numbers)))) as server,
        pytest.raises(ConnectorError, match=words),
    ):
        pages(f"{server.url}/i", records="items", **options)


@pytest.mark.parametrize("body", [b"<html>", b"[1", b"[NaN]", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_json_is_named(body: bytes) -> None:
    with web_server(lambda _: Reply(body=body)) as server, pytest.raises(ConnectorError, match="is no JSON"):
        pages(f"{server.url}/i")


def test_a_page_that_is_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_runner.connectors.http.pages.MAX_BYTES", 100)
    with (
        web_server(lambda _: Reply(body=b" " * 101)) as server,
        pytest.raises(ConnectorError, match="100 bytes"),
    ):
        pages(f"{server.url}/i")


def test_numbers_keep_all_their_digits_and_records_may_be_the_answer() -> None:
    text = '{"a":0.12345678901234567890123,"b":"\\u00e4 \\ud800","c":[1.10,{"d":1e400}]}'
    with web_server(lambda _: Reply(body=text.encode())) as server:
        given = to_plan(validate("http", {"url": f"{server.url}/i"}))
        with closing(Client(given)) as client:
            assert list(Pages(client, given)) == [[text.replace("\\u00e4", "ä")]]


def test_a_read_waits_for_a_server_that_is_busy_and_stops_at_a_refusal() -> None:
    replies = iter([Reply(503), Reply(drop=True), reply([1])])
    with web_server(lambda _: next(replies, Reply(401, b"who?"))) as server:
        assert pages(f"{server.url}/i") == [[1]]
        with pytest.raises(ConnectorError, match="refused: 401 who\\?; check the login"):
            pages(f"{server.url}/i")
        with pytest.raises(ConnectorError, match="has a URL without columns"):
            pages(f"{server.url}/{{id}}")
