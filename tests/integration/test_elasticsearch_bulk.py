"""What a task does when the server of an index refuses rows, is busy, full, away or loses answers."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from queues.embedded.ports import free_ports
from spark_runner.connectors.elasticsearch import bulk as bulk_module
from spark_runner.connectors.elasticsearch import client as client_module
from spark_runner.connectors.elasticsearch.bulk import Bulk
from spark_runner.connectors.elasticsearch.part import Lines
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.pushed_rows import settings_of_parts
from spark_runner.push.engine import Engine
from spark_runner.push.settings import Limits
from tests.elasticsearch_rows import changed, row, write
from tests.elasticsearch_support import Indices, options
from tests.log_proxy import Asked, LogProxy, Reset, Said
from tests.waiting import wait_until


@pytest.fixture
def proxy(elasticsearch_url: str) -> Iterator[LogProxy]:
    with LogProxy(elasticsearch_url) as found:
        yield found


def test_parts_have_at_most_so_many_bytes_and_a_larger_row_is_alone() -> None:
    rows = Lines.of([b"aa\n", b"bb\n", b"c" * 20 + b"\n", b"d\n", b"e\n", b"f\n"])
    parts = [bytes(each.data()) for each in rows.batches(6)]
    assert parts == [b"aa\nbb\n", b"c" * 20 + b"\n", b"d\ne\nf\n"]
    assert list(Lines.of([]).batches(6)) == []


def test_a_busy_server_gets_rows_again_and_in_their_order(indices: Indices, proxy: LogProxy) -> None:
    index, answers = indices.new("busy"), list[int]()

    def busy(asked: Asked) -> Said:
        answers.append(len(asked.records))
        if len(answers) == 1:
            return Said.error(429, "es_rejected_execution_exception")
        if len(answers) == 2:  # the older row alone is refused, so it must not come behind the newer one
            kept = b"".join(asked.records[1:])
            said = asked.forward(kept)
            document = json.loads(said.body)
            refused = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}
            items = [{"index": refused}, *document["items"]]
            return Said.document(200, {"errors": True, "items": items})
        return asked.forward()

    proxy.rule = busy
    assert write(proxy.url, [row(index, 1, v="old"), row(index, 2), row(index, 1, v="new")]) == []
    assert answers == [3, 3, 2]
    assert indices.documents(index) == {"1": {"n": 1, "v": "new"}, "2": {"n": 2}}


def test_a_lost_answer_doubles_no_row_with_an_id(indices: Indices, proxy: LogProxy) -> None:
    index, lost = indices.new("lost"), list[bool]()

    def lose(asked: Asked) -> Said:
        said = asked.forward()
        if not lost:
            lost.append(True)
            raise Reset
        return said

    proxy.rule = lose
    rows = [row(index, number, action="create") for number in range(10)]
    assert write(proxy.url, rows) == []
    assert lost
    assert indices.count(index) == 10


def test_a_task_waits_for_a_server_that_is_away_and_then_fails(indices: Indices, proxy: LogProxy) -> None:
    index = indices.new("away")
    proxy.away = True
    thread = threading.Thread(target=write, args=(proxy.url, [row(index, 1)]))
    thread.start()
    wait_until(lambda: proxy.refused > 2, 20, "the task has tried again")
    proxy.away = False
    thread.join(20)
    assert indices.count(index) == 1
    proxy.away = True
    with pytest.raises(Unreachable, match="does not answer"):
        write(proxy.url, [row(index, 1)], retry_timeout=0.3)


@pytest.mark.parametrize("block", ["read_only_allow_delete", "write"])  # by a full disk, by an operator
def test_a_blocked_index_makes_a_task_wait(indices: Indices, block: str) -> None:
    index, setting = indices.new("blocked"), f"index.blocks.{block}"
    indices.ask("PUT", f"/{index}/_settings", {setting: True})
    with pytest.raises(Unreachable, match=r"does not take rows: cluster_block_exception"):
        write(indices.url, [row(index, 1)], retry_timeout=0.3)
    thread = threading.Thread(target=write, args=(indices.url, [row(index, 1)]))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    indices.ask("PUT", f"/{index}/_settings", {setting: None})
    thread.join(20)
    assert indices.count(index) == 1


def test_rejected_rows_do_not_hide_their_neighbours(indices: Indices) -> None:
    index = indices.new("types", {"n": "long"})
    bad = row(index, "i" * 600)  # the server refuses the whole request for its id
    rejected = write(indices.url, [row(index, 1), row(index, "x"), bad, row(index, 2)])
    assert [reason.partition(":")[0] for reason, _ in rejected] == [
        "document_parsing_exception",
        "400 action_request_validation_exception",
    ]
    assert [text for _, text in rejected] == [row(index, "x"), bad]
    assert set(indices.documents(index)) == {"1", "2"}


def test_a_request_that_is_too_large_is_divided(indices: Indices, proxy: LogProxy) -> None:
    index = indices.new("large")
    proxy.rule = lambda asked: Said(413, b"") if len(asked.body) > 500 else asked.forward()
    rejected = write(proxy.url, [*(row(index, n) for n in range(20)), row(index, 99, text="x" * 600)])
    assert [reason for reason, _ in rejected] == ["413"]
    assert indices.count(index) == 20


def test_what_is_wrong_with_all_rows_fails_the_task(indices: Indices, proxy: LogProxy) -> None:
    index = indices.new("all")
    proxy.rule = lambda _: Said.error(400, "illegal_argument_exception")
    with pytest.raises(ConnectorError, match="illegal_argument_exception: injected"):
        write(proxy.url, [row(index, number) for number in range(100)])
    proxy.rule = lambda asked: changed(asked.forward(), 1, 403, "security_exception")
    with pytest.raises(ConnectorError, match=r"security_exception.*needs more rights") as found:
        write(proxy.url, [row(index, number) for number in range(3)])
    assert not isinstance(found.value, Unreachable)


@pytest.mark.parametrize("is_failed", [True, False])
@pytest.mark.parametrize(
    "items", [[], [{"index": {"status": 201}}] * 2, [{}], [{"index": {}}], [7], "none", None]
)
def test_an_answer_with_other_rows_is_none(
    indices: Indices, proxy: LogProxy, items: object, *, is_failed: bool
) -> None:
    answer = json.dumps({"errors": is_failed, "items": items}, separators=(",", ":")).encode()
    proxy.rule = lambda _: Said(200, answer)
    with pytest.raises(Unreachable, match="of another request"):
        write(proxy.url, [row(indices.new("other"), 1)], retry_timeout=0.2)


def test_rows_come_again_after_a_part_of_an_answer(indices: Indices, proxy: LogProxy) -> None:
    index, cut = indices.new("cut"), list[bytes]()

    def rule(asked: Asked) -> Said:
        said = asked.forward()
        if len(cut) < 2:  # as a proxy does that loses its server
            cut.append(said.body[: len(said.body) // (2 + len(cut))])
            return Said(200, cut[-1])
        return said

    proxy.rule = rule
    assert write(proxy.url, [row(index, number) for number in range(10)]) == []
    assert (len(cut), indices.count(index)) == (2, 10)


def test_a_check_of_the_target_that_has_no_answer_for_now_is_made_again(
    indices: Indices, proxy: LogProxy
) -> None:
    index, away = indices.new("checked"), list[Asked]()

    def rule(asked: Asked) -> Said:
        if not asked.is_bulk and not away:
            away.append(asked)
            return Said(503, b"")
        return (
            changed(asked.forward(), 0, 400, "illegal_argument_exception")
            if asked.is_bulk
            else asked.forward()
        )

    proxy.rule = rule
    ((reason, _),) = write(proxy.url, [row(index, 1)], index=index)
    assert reason == "illegal_argument_exception: by the test"
    assert away


def test_a_request_that_is_divided_counts_each_row_as_sent_again_once(
    indices: Indices, proxy: LogProxy
) -> None:
    given = options(proxy.url)
    proxy.rule = lambda asked: Said(413, b"") if len(asked.records) > 4 else asked.forward()
    index, push = indices.new("halves"), settings_of_parts(given, 30.0, is_ordered=True)
    with closing(Bulk(given, keyed=True)) as bulk, Engine(bulk.deliver, push, Limits()) as engine:
        engine.put(bulk.records(Lines.of([row(index, number) for number in range(8)])))
    found = engine.counts()
    assert (found["read"], found["delivered"], found["retried"], found["requests"]) == (8, 8, 8, 3)


def test_an_older_version_and_a_deleted_document_are_no_errors(indices: Indices) -> None:
    index = indices.new("versions")
    heads = [(5, "new"), (3, "old"), (5, "same")]
    rows = [
        f'{{"index":{{"_index":"{index}","_id":"1","version":{version},"version_type":"external"}}}}\n'
        f'{{"v":"{value}"}}\n'.encode()
        for version, value in heads
    ]
    gone = f'{{"delete":{{"_index":"{index}","_id":"2"}}}}\n'.encode()
    assert write(indices.url, [*rows, gone], version_column="v") == []
    assert indices.documents(index) == {"1": {"v": "new"}}


def test_a_concurrent_update_is_sent_again(indices: Indices, proxy: LogProxy) -> None:
    index, answers = indices.new("updates"), list[Asked]()

    def conflict(asked: Asked) -> Said:
        answers.append(asked)
        said = asked.forward()
        return changed(said, 0, 409, "version_conflict_engine_exception") if len(answers) == 1 else said

    proxy.rule = conflict
    update = f'{{"update":{{"_index":"{index}","_id":"1"}}}}\n{{"doc":{{"a":1}},"doc_as_upsert":true}}\n'
    assert write(proxy.url, [update.encode()]) == []
    assert len(answers) == 2


def test_rows_in_the_failure_store_are_rejected(indices: Indices, proxy: LogProxy) -> None:
    index = indices.new("store")

    def divert(_: Asked) -> Said:
        items = [{"create": {"status": 201}}, {"create": {"status": 201, "failure_store": "used"}}]
        return Said.document(200, {"errors": False, "items": items})

    proxy.rule = divert
    rejected = write(proxy.url, [row(index, 1), row(index, 2)])
    assert rejected == [("the server put it into the failure store of the data stream", row(index, 2))]


def failing(row: bytes, status: int, kind: str) -> Callable[[Asked], Said]:
    """A rule: the server fails on this row, and takes the others."""

    def rule(asked: Asked) -> Said:
        at = asked.records.index(row) if row in asked.records else None
        rows = [each for each in asked.records if each != row]
        items = json.loads(asked.forward(b"".join(rows)).body)["items"] if rows else []
        if at is not None:
            items.insert(at, {"index": {"status": status, "error": {"type": kind, "reason": "by the test"}}})
        return Said.document(200, {"errors": True, "items": items})

    return rule


def test_a_row_on_which_a_pipeline_fails_each_time_is_rejected(indices: Indices, proxy: LogProxy) -> None:
    index = indices.new("fails")
    bad = row(index, 1, v="bad")
    proxy.rule = failing(bad, 500, "null_pointer_exception")
    rows = [row(index, 0), bad, row(index, 2), row(index, 1, v="newer")]
    assert write(proxy.url, rows) == [("null_pointer_exception: by the test", bad)]
    assert len(proxy.bulks) == 6
    assert indices.documents(index)["1"] == {"n": 1, "v": "newer"}
    assert indices.count(index) == 3


@pytest.mark.parametrize(
    ("status", "kind"), [(503, "unavailable_shards_exception"), (500, "circuit_breaking_exception")]
)
def test_a_row_for_which_the_cluster_has_no_room_is_never_rejected(
    indices: Indices, proxy: LogProxy, monkeypatch: pytest.MonkeyPatch, status: int, kind: str
) -> None:
    monkeypatch.setattr(bulk_module, "_REPEATS", 1)
    index = indices.new("room")
    away = row(index, 1)
    proxy.rule = failing(away, status, kind)
    with pytest.raises(Unreachable, match=f"does not take rows: {kind}"):
        write(proxy.url, [away, row(index, 2)], retry_timeout=3)
    assert len(proxy.bulks) > 3


def test_a_server_that_fails_on_all_rows_is_waited_for(
    indices: Indices, proxy: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_module, "_REPEATS", 1)
    index = indices.new("broken")
    item = {"index": {"status": 500, "error": {"type": "already_closed_exception", "reason": "so it is"}}}
    proxy.rule = lambda asked: Said.document(200, {"errors": True, "items": [item] * len(asked.records)})
    with pytest.raises(Unreachable, match="does not take rows: already_closed_exception"):
        write(proxy.url, [row(index, 1), row(index, 2)], retry_timeout=0.5)


def test_another_server_takes_over_and_keys_and_compressed_bodies_are_understood(
    indices: Indices, proxy: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, seen = indices.new("hosts"), list[Asked]()

    def look(asked: Asked) -> Said:
        seen.append(asked)
        return asked.forward()

    proxy.rule = look
    monkeypatch.setattr(client_module, "_LOCAL", frozenset())
    (port,) = free_ports("127.0.0.1", 1)
    hosts = f"http://127.0.0.1:{port}, {proxy.url}"
    assert write(hosts, [row(index, 1)], api_key="some:key") == []
    (asked,) = seen
    headers = {name.lower(): value for name, value in asked.headers.items()}
    assert headers["authorization"] == "ApiKey c29tZTprZXk="
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(asked.body) == row(index, 1)
    assert indices.count(index) == 1


def test_a_service_that_serves_credentials_gets_no_request(
    proxy: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "is_metadata", lambda address: address == "127.0.0.1")
    with pytest.raises(ConnectorError, match="which no table may reach"):
        write(proxy.url, [row("any", 1)])
    assert proxy.bulks == []
