import base64
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.logs.settings import LogSettings, TargetKind
from orchestrator.logs.shipping.target import LogTarget
from orchestrator.logs.shipping.targets import open_target
from orchestrator.logs.spool.writer import Spool
from tests.log_shipping_support import NOW, dead_letters, document, fill, shipping, wait_settled
from tests.log_stub import Said, Stub, log_stub
from tests.loki_stub import LokiStore
from tests.waiting import wait_until

PAGE = b"<html><h1>413 Request Entity Too Large</h1></html>"
HTML = {"Content-Type": "text/html"}
LARGER = b"rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5 vs. 4)"
RATE = b"Ingestion rate limit exceeded for user fake (limit: 4194304 bytes/sec)"


def loki(stub: Stub, **settings: object) -> LogTarget:
    target = open_target(LogSettings.model_validate({"url": stub.url, "kind": TargetKind.LOKI, **settings}))
    assert target is not None
    return target


def test_every_record_arrives_once_in_streams_of_a_service_a_host_a_level_and_an_hour(tmp_path: Path) -> None:
    store, root, key = LokiStore(), tmp_path / "spool", tmp_path / "key"
    key.write_text("12345:token\n", encoding="utf-8")
    spool = Spool(root)
    levels = ["info", "warning", "error"]
    documents = [document(number, log_level=levels[number % 3], job_id="j-1") for number in range(90)]
    ids = fill(spool, documents)
    with log_stub(store) as stub, shipping(root, loki(stub, key_file=key, tenant="team-a"), spool) as shipper:
        wait_settled(shipper, len(ids))
        assert shipper.counts.document()["retried"] == 0
    assert sorted(store.ids) == sorted(ids)
    by_id = dict(zip(ids, documents, strict=True))
    for labels, time, line in store.lines:
        assert set(labels) == {"service_name", "host", "level", "hour"}
        assert (labels["service_name"], labels["host"]) == ("worker", "host-1")
        assert labels["level"] == line["log.level"]
        assert line == {"event.id": line["event.id"], **by_id[line["event.id"]]}
        assert time % 1_000_000 == 0  # milliseconds are what the documents have
    for request in stub.requests:
        assert request.headers["authorization"] == f"Basic {base64.b64encode(b'12345:token').decode()}"
        assert request.headers["x-scope-orgid"] == "team-a"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([Said(429, RATE)], id="busy"),
        pytest.param([Said(500, b"at least 2 live replicas required")], id="no ingesters"),
        pytest.param([Said(503, b"<html>no upstream</html>", HTML)] * 2, id="a gateway without Loki"),
        pytest.param([Said(413, PAGE, HTML)], id="too large for a gateway"),
        pytest.param([Said(500, LARGER)], id="too large for an ingester"),
        pytest.param([Said(0, cut=True)], id="an answer that ends in its middle"),
    ],
)
def test_a_push_that_is_not_taken_comes_again(tmp_path: Path, script: list[Said]) -> None:
    store, root = LokiStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(number) for number in range(50)])
    with log_stub(store, *script) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted(ids)
    assert (store.copies, dead_letters(root)) == (0, [])


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(Said(0, takes=True, cut=True), id="the connection ends"),
        pytest.param(Said(500, b"context deadline exceeded", takes=True), id="a timeout behind it"),
        pytest.param(Said(429, b"Per stream rate limit exceeded", takes=True), id="a part was too much"),
    ],
)
def test_records_accepted_without_a_reply_are_stored_once(tmp_path: Path, said: Said) -> None:
    store, root = LokiStore(), tmp_path / "spool"
    spool = Spool(root)
    # Hours between the first and the last of a push: the first must not be too late on the second try.
    documents = [document(number, at=NOW - timedelta(minutes=20 * (20 - number))) for number in range(20)]
    ids = fill(spool, documents)
    with log_stub(store, said) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted(ids)
    assert (store.copies, dead_letters(root)) == (len(ids), [])


def test_a_server_that_asks_for_time_gets_it(tmp_path: Path) -> None:
    store, root = LokiStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(0)])
    busy = Said(429, RATE, {"Retry-After": "1"})
    with log_stub(store, busy) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    first, second = stub.requests
    assert second.time - first.time >= 1


def test_a_line_that_is_too_long_becomes_a_dead_letter_and_the_others_arrive(tmp_path: Path) -> None:
    store, root = LokiStore(max_line=1_000), tmp_path / "spool"
    spool = Spool(root)
    documents = [document(number) for number in range(40)]
    documents[17]["message"] = "x" * 2_000
    ids = fill(spool, documents)
    with log_stub(store) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
        assert shipper.counts.dead == 1
    assert sorted(store.ids) == sorted({*ids} - {"r-17"})
    (letter,) = dead_letters(root)
    assert letter["action"]["create"]["_id"] == "r-17"
    assert (letter["status"], "Max entry size" in letter["reason"]) == (400, True)


def test_records_that_another_process_left_hours_ago_are_not_too_late(tmp_path: Path) -> None:
    store, root = LokiStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(number) for number in range(30)])
    with log_stub(store) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
        left = Spool(root)
        late = [document(number, at=NOW - timedelta(hours=5)) for number in range(30)]
        ids += fill(left, late, "late")
        left.close()
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted(ids)
    assert dead_letters(root) == []


def test_a_record_that_is_too_old_for_loki_becomes_a_dead_letter_at_once(tmp_path: Path) -> None:
    store, root = LokiStore(), tmp_path / "spool"
    spool = Spool(root)
    old = [document(number, at=NOW - timedelta(days=8)) for number in range(15)]
    ids = fill(spool, [*old, *(document(number) for number in range(5))])
    with log_stub(store) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted(ids[15:])
    assert len(dead_letters(root)) == 15
    assert len(stub.requests) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(401, b"no org id"), "401 no org id"),
        (Said(403, b"forbidden"), "403 forbidden"),
        (Said(404, b"page not found"), "404 page not found"),
        (Said(400, b"missing required labels team for user fake"), "missing required labels"),
        (Said(260, b"ingestion blocked for user fake until 2027"), "ingestion blocked"),
    ],
)
def test_records_stay_in_the_spool_until_an_operator_has_fixed_the_server(
    tmp_path: Path, said: Said, words: str
) -> None:
    store, root = LokiStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(number) for number in range(5)])
    with log_stub(store, said) as stub, shipping(root, loki(stub), spool) as shipper:
        wait_until(lambda: shipper.status()["paused"], 30, "the shipper waits for people")
        assert words in str(shipper.status()["trouble"])
        assert shipper.counts.created == 0
    assert sorted(store.ids) == sorted(ids)  # the end of a process tries once more
    assert dead_letters(root) == []
