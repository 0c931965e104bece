import socket
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.logs.errors import TargetUnreachable
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.target import LogTarget
from orchestrator.logs.shipping.targets import open_target
from orchestrator.logs.spool.writer import Spool
from tests.hostile_server import stranger
from tests.log_shipping_support import dead_letters, document, fill, record, shipping, wait_settled
from tests.log_stub import Said, Stub, log_stub
from tests.sls_stub import HOST, SlsStore, refused
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def key_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, and the names of projects, which the real SDK puts before the endpoint, on loopback."""
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "key-id")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "key-secret")
    monkeypatch.setenv("ALIBABA_CLOUD_SECURITY_TOKEN", "sts-token")
    monkeypatch.setenv("NO_PROXY", "*")
    resolve = socket.getaddrinfo

    def local(host: Any, *arguments: Any, **named: Any) -> Any:
        return resolve("127.0.0.1" if str(host).endswith(HOST) else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", local)


def sls(stub: Stub) -> LogTarget:
    target = open_target(
        LogSettings.model_validate(
            {
                "url": stub.url.replace("127.0.0.1", HOST),
                "kind": "sls",
                "project": "orchestrator-logs",
                "logstore": "jobs",
            }
        )
    )
    assert target is not None
    return target


def test_every_record_arrives_once_by_job_and_host(tmp_path: Path) -> None:
    store, root = SlsStore(), tmp_path / "spool"
    spool = Spool(root)
    documents = [document(number, job_id=f"j-{number % 3}", job_attempt=2) for number in range(60)]
    documents += [document(60, labels={"team": "a"}, event_sequence=7)]
    ids = fill(spool, documents)
    with log_stub(store) as stub, shipping(root, sls(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted(ids)
    by_id = dict(zip(ids, documents, strict=True))
    for log in store.logs:
        sent = by_id[log.fields["event.id"]]
        assert (log.topic, log.source) == (sent.get("job.id", ""), "host-1")
        assert log.time == round(datetime.fromisoformat(sent["@timestamp"]).timestamp() * 1e6) * 1000
        assert log.fields["message"] == sent["message"]
        assert set(log.fields) == {"event.id", *sent}
    (last,) = (log for log in store.logs if log.fields["event.id"] == "r-60")
    assert (last.fields["labels"], last.fields["event.sequence"]) == ('{"team": "a"}', "7")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(refused(403, "WriteQuotaExceed", "qps"), id="quota of the project"),
        pytest.param(refused(403, "ShardWriteQuotaExceed", "shard 0"), id="quota of a shard"),
        pytest.param(Said(429, b"busy", {"Retry-After": "1"}), id="busy"),
        pytest.param(refused(500, "InternalServerError"), id="an error there"),
        pytest.param(Said(502, b"<html>bad gateway</html>", {"Content-Type": "text/html"}), id="a gateway"),
        pytest.param(refused(400, "PostBodyTooLarge"), id="too large"),
        pytest.param(Said(413, b"<html>too large</html>", {"Content-Type": "text/html"}), id="for a gateway"),
        pytest.param(Said(0, cut=True), id="an answer that ends in its middle"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_request_that_is_not_taken_comes_again_and_what_was_taken_does_not(
    tmp_path: Path, said: Said, before: int
) -> None:
    store, root = SlsStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(number, job_id=f"j-{number % 4}") for number in range(20)])
    taken = [Said(200, takes=True)] * before
    with log_stub(store, *taken, said) as stub, shipping(root, sls(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted(ids)
    assert dead_letters(root) == []


def test_one_send_is_one_request_whatever_the_sdk_would_do() -> None:
    with log_stub(SlsStore(), refused(500, "InternalServerError"), Said(0, cut=True)) as stub:
        target = sls(stub)
        for count in (1, 2):
            with pytest.raises(TargetUnreachable):
                target.send([record("r-1", document(1))])
            assert len(stub.requests) == count


def test_copies_after_a_lost_answer_have_one_id(tmp_path: Path) -> None:
    store, root = SlsStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(number) for number in range(10)])
    with log_stub(store, Said(0, takes=True, cut=True)) as stub, shipping(root, sls(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert Counter(store.ids) == dict.fromkeys(ids, 2)
    assert store.groups[0] == store.groups[1]


def test_a_record_that_sls_refuses_becomes_a_dead_letter_and_the_others_arrive_once(tmp_path: Path) -> None:
    store, root = SlsStore(), tmp_path / "spool"
    spool = Spool(root)
    documents = [document(number, job_id=f"j-{number % 2}") for number in range(40)]
    documents[17]["message"] = "poison"
    ids = fill(spool, documents)
    with log_stub(store) as stub, shipping(root, sls(stub), spool) as shipper:
        wait_settled(shipper, len(ids))
    assert sorted(store.ids) == sorted({*ids} - {"r-17"})
    (letter,) = dead_letters(root)
    assert letter["action"]["create"]["_id"] == "r-17"
    assert "InvalidEncoding" in letter["reason"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (refused(401, "Unauthorized", "AccessKeyId not found"), "Unauthorized: AccessKeyId not found"),
        (refused(401, "SignatureNotMatch"), "SignatureNotMatch"),
        (refused(404, "LogStoreNotExist", "logstore jobs not exist"), "logstore jobs not exist"),
        (refused(400, "RequestTimeExpired", "more than 15 minutes"), "RequestTimeExpired"),
    ],
)
def test_records_stay_in_the_spool_until_an_operator_has_fixed_the_server(
    tmp_path: Path, said: Said, words: str
) -> None:
    store, root = SlsStore(), tmp_path / "spool"
    spool = Spool(root)
    ids = fill(spool, [document(number) for number in range(5)])
    with log_stub(store, said) as stub, shipping(root, sls(stub), spool) as shipper:
        wait_until(lambda: shipper.status()["paused"], 30, "the shipper waits for people")
        assert words in str(shipper.status()["trouble"])
        assert shipper.counts.created == 0
    assert sorted(store.ids) == sorted(ids)
    assert dead_letters(root) == []


def test_a_redirect_takes_the_token_of_the_worker_nowhere_else(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    fill(spool, [document(1)])
    with stranger() as elsewhere, log_stub(SlsStore()) as stub:
        stub.script = [Said(307, b"", {"Location": f"{elsewhere.url}/logstores/jobs/shards/lb"})]
        with shipping(tmp_path / "spool", sls(stub), spool) as shipper:
            wait_settled(shipper, 1)
    assert elsewhere.seen == []
