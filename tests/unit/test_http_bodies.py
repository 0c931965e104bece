"""Bodies of requests of the HTTP connector, and results of single rows in answers."""

import gzip
import json
from typing import Any

import pytest

from spark_runner.connectors.errors import ConnectorError, OptionError
from tests.http_support import ROWS, in_turn, plan, sender
from tests.servers.web import Received, Reply, web_server

EVENTS = {"batch_format": "cloudevents", "event_type": "org.example.row", "event_source": "/rows"}


@pytest.mark.parametrize(("size", "kind"), [("1", "cloudevents"), ("4", "cloudevents-batch")])
def test_a_row_is_an_event_with_its_key(size: str, kind: str) -> None:
    with web_server() as server:
        with sender(f"{server.url}/items", batch_size=size, **EVENTS) as found:
            assert found.write(ROWS) == []
        documents = [json.loads(each.body) for each in server.received]
        assert {each.headers["content-type"] for each in server.received} == {f"application/{kind}+json"}
    events = documents if size == "1" else documents[0]
    assert sorted(events, key=lambda event: str(event["id"])) == [
        {
            "specversion": "1.0",
            "type": "org.example.row",
            "source": "/rows",
            "datacontenttype": "application/json",
            "id": f"key-{n}",
            "data": {"n": n},
        }
        for n in range(4)
    ]


@pytest.mark.parametrize("missing", ["event_type", "event_source", "idempotency_header"])
def test_events_need_a_type_a_source_and_an_id(missing: str) -> None:
    with pytest.raises(OptionError, match=missing):
        plan("http://h/items", **{**EVENTS, missing: ""})


def test_a_compressed_body_is_the_same_each_time() -> None:
    with web_server(in_turn(Reply(503), Reply())) as server:
        with sender(f"{server.url}/items", batch_size="4", compression="gzip") as found:
            assert found.write(ROWS) == []
        first, second = server.received
        assert first.body == second.body
        assert first.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(first.body)) == [{"n": n} for n in range(4)]


def results_of(received: Received, each: dict[int, Any]) -> Reply:
    rows = json.loads(received.body)
    items = [each.get(row["n"], {"status": 201}) for row in rows]
    return Reply(body=json.dumps({"data": {"items": items}}).encode())


def test_rows_of_a_batch_are_taken_refused_or_sent_again_by_their_results() -> None:
    turns = iter(range(100))

    def reply(received: Received) -> Reply:
        busy = {2: {"status": 429}, 3: {"status": 500}} if next(turns) == 0 else {}
        return results_of(received, {1: {"status": 422, "error": {"reason": "no  n"}}, **busy})

    with web_server(reply) as server:
        with sender(f"{server.url}/items", batch_size="4", results="data.items") as found:
            assert found.write(ROWS) == [('HTTP 422 {"reason": "no n"}', '{"n":1}')]
        sent = [[row["n"] for row in json.loads(each.body)] for each in server.received]
        keys = {each.headers["idempotency-key"] for each in server.received}
    assert sent == [[0, 1, 2, 3], [2, 3]]
    assert len(keys) == 2


def test_a_result_without_a_status_is_judged_by_its_error() -> None:
    each = {0: {"ok": True}, 1: {"why": "bad"}, 2: {"why": None}, 3: {"why": ""}}
    with web_server(lambda received: results_of(received, each)) as server:
        options = {"results": "data.items", "result_error": "why"}
        with sender(f"{server.url}/items", batch_size="4", **options) as found:
            assert found.write(ROWS) == [("HTTP bad", '{"n":1}')]


@pytest.mark.parametrize(
    "body",
    [b"{}", b"no json", b'{"items": [{}]}', b'{"items": {"0": {}}}', b"[" * 100_000, b"null"],
)
def test_an_answer_without_the_results_ends_the_write(body: bytes) -> None:
    with web_server(lambda _: Reply(body=body)) as server:
        with (
            sender(f"{server.url}/items", batch_size="4", results="items") as found,
            pytest.raises(ConnectorError, match=r"has no array with 4 results at 'items'"),
        ):
            found.write(ROWS)
        assert len(server.received) == 1


def test_a_secret_in_a_result_is_masked() -> None:
    with web_server(lambda received: results_of(received, {0: {"error": "token sesame is old"}})) as server:
        options = {"results": "data.items", "token": "sesame"}
        with sender(f"{server.url}/items", batch_size="4", **options) as found:
            assert found.write(ROWS) == [("HTTP token *** is old", '{"n":0}')]
