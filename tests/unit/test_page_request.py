"""Requests for pages of logs and their replies come from other hosts: what is none is refused in words."""

import json
import zlib
from typing import Any

import pytest

from orchestrator.driver_logs.page_request import PageRequest, page_data, page_of
from orchestrator.driver_logs.run_reader import LogPage
from orchestrator.logs.reading.query import LogRecord


def reply(**changes: Any) -> bytes:
    document = {"records": [], "cursor": {}, "is_full": False, "fields": {}} | changes
    return b"p" + zlib.compress(json.dumps(document).encode())


REPLIES = {
    "empty": b"",
    "of another kind": b"x" + reply()[1:],
    "cut": reply()[:-3],
    "no text": b"p" + zlib.compress(b"\xff\xfe"),
    "no mapping": b"p" + zlib.compress(b"[]"),
    "nested": b"p" + zlib.compress(b"[" * 1_000_000),
    "too long": b"p" + zlib.compress(b" " * (9 << 20)),
    "a wrong record": reply(records=[{"message": ["a"]}]),
    "a wrong cursor": reply(cursor={"a": "b"}),
    "too many logs": reply(cursor=dict.fromkeys(map(str, range(2_000)), 0)),
}


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_no_reply_is_refused_in_words_of_ours(name: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as refused:
        page_of(REPLIES[name])
    assert "pydantic" not in str(refused.value)
    assert len(str(refused.value)) < 3_000


def test_a_request_of_a_later_version_is_refused_with_the_field_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="unknown field 'colour'") as refused:
        PageRequest.decode(b'{"job": "a", "attempt": 1, "colour": "red"}')
    assert "pydantic" not in str(refused.value)


def test_a_page_comes_back_as_it_was_also_with_bytes_that_are_no_text() -> None:
    record = LogRecord("key-2-stdout-7", {"log.stream": "stdout", "event.sequence": 7, "message": "a\udcff"})
    fields = {"job.run_key": "key", "job.attempt": 2}
    page = LogPage([record], {"a": 9}, is_full=True, fields=fields)
    assert page_of(page_data(page)) == page
