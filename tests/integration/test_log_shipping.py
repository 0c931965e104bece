"""Logs to a real Elasticsearch: records that it accepts, refuses, or accepts later."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from loguru import logger

from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping import pace
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.spool.folder import folders_in
from orchestrator.logs.spool.writer import Spool
from tests.log_index import LogIndex
from tests.log_proxy import Asked, LogProxy, Reset, Said
from tests.log_support import QUICK, SMALL, dead_letters, document, drain, opened
from tests.waiting import wait_until

ARRIVE_S = 30


@pytest.fixture(autouse=True)
def _quick_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(pace, "_LONGEST_DELAY_SECONDS", 0.2)


@contextmanager
def shipped(root: Path, index: LogIndex, url: str = "") -> Iterator[tuple[Spool, Shipper, list[str]]]:
    """A spool with its shipper and the reports of that."""
    said = list[str]()
    with opened(root, SMALL) as spool:
        shipper = Shipper(root, index.target(url), spool=spool, options=QUICK, report=said.append)
        shipper.start()
        try:
            yield spool, shipper, said
        finally:
            shipper.close(0)


def put(spool: Spool, index: LogIndex, numbers: range, text: str = "") -> None:
    for number in numbers:
        assert spool.append(index.day(), document(number, text))


def settled(shipper: Shipper) -> int:
    counts = shipper.counts
    return counts.created + counts.duplicates + counts.dead


def arrives(index: LogIndex, shipper: Shipper, numbers: range | list[int]) -> None:
    wait_until(lambda: settled(shipper) >= len(numbers), ARRIVE_S, "every record is settled")
    assert index.numbers() == sorted(numbers)


def busy_for_half(asked: Asked) -> Said:
    """A rule: every other document of a request is refused for now."""
    if not asked.is_bulk:
        return asked.forward()
    records = asked.records
    taken = json.loads(asked.forward(b"".join(records[::2])).body)["items"]
    busy = {"create": {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "busy"}}}
    items = [taken[number // 2] if number % 2 == 0 else busy for number in range(len(records))]
    return Said.document(200, {"errors": True, "items": items})


# ---------------------------------------------------------------------- accepted records
def test_a_log_record_is_found_under_the_alias_in_the_index_of_its_own_day(
    log_index: LogIndex, tmp_path: Path
) -> None:
    settings = LogSettings(url=log_index.url, alias=log_index.alias, timezone="Europe/Berlin")
    pipeline = LogPipeline(settings, tmp_path, "test")
    pipeline.open()
    for day, hour in ((1, 22), (1, 23), (2, 22)):
        moment = datetime(2026, 1, day, hour, 30, 15, 123456, tzinfo=UTC)
        at = logger.patch(lambda record, moment=moment: record.update(time=moment))  # type: ignore[misc]
        at.bind(job_id="j1", colour="red").info("it is {}", hour)
    pipeline.close()
    assert pipeline.trouble == ""
    found = sorted(log_index.documents(), key=lambda each: str(each["@timestamp"]))
    days = [each["_index"].removeprefix(f"{log_index.alias}-") for each in found]
    assert days == ["2026-01-01", "2026-01-02", "2026-01-02"]
    assert found[0]["@timestamp"] == "2026-01-01T22:30:15.123456Z"
    assert (found[0]["message"], found[0]["job.id"]) == ("it is 22", "j1")
    log_index.client.indices.refresh(index=log_index.alias)
    hits = log_index.client.search(index=log_index.alias, query={"term": {"labels.colour": "red"}})
    assert hits["hits"]["total"]["value"] == 3
    assert folders_in(tmp_path / "spool") == []


def test_a_record_that_exists_already_is_settled(log_index: LogIndex, tmp_path: Path) -> None:
    root = tmp_path / "spool"
    with shipped(root, log_index) as (spool, shipper, _):
        for number in range(40):
            for _ in range(2):
                assert spool.append(log_index.day(), document(number), identity=f"id-{number}")
        wait_until(lambda: settled(shipper) == 80, ARRIVE_S, "all are settled")
        assert (shipper.counts.created, shipper.counts.duplicates, shipper.counts.dead) == (40, 40, 0)
    assert log_index.numbers() == list(range(40))


# ---------------------------------------------------------------------- refused records
def test_what_does_not_fit_the_mapping_is_put_aside_with_the_reason_and_its_neighbours_arrive(
    log_index: LogIndex, tmp_path: Path
) -> None:
    root, bad = tmp_path / "spool", {"@timestamp": "no date", "message": "n100 bad"}
    broken = b'{"message": "n101 bro'
    with shipped(root, log_index) as (spool, shipper, _):
        put(spool, log_index, range(10))
        assert spool.append(log_index.day(), json.dumps(bad).encode(), identity="bad")
        assert spool.append(log_index.day(), broken, identity="broken")
        put(spool, log_index, range(10, 20))
        wait_until(lambda: settled(shipper) == 22, ARRIVE_S, "all are settled")
        assert (shipper.counts.created + shipper.counts.duplicates, shipper.counts.dead) == (20, 2)
    assert log_index.numbers() == list(range(20))
    letters = {letter["action"]["create"]["_id"]: letter for letter in dead_letters(root)}  # type: ignore[index]
    assert sorted(letters) == ["bad", "broken"]
    assert letters["bad"]["document"] == bad
    assert letters["bad"]["status"] == 400
    assert "@timestamp" in str(letters["bad"]["reason"])
    assert letters["broken"]["document"] == broken.decode()


def test_a_number_that_is_none_is_kept_and_shown(log_index: LogIndex, tmp_path: Path) -> None:
    with shipped(tmp_path / "spool", log_index) as (spool, shipper, _):
        for number, attempt in enumerate(["many", {"a": 1}, [1, 2], 2**70, 1.5, None]):
            text = {"@timestamp": "2026-01-01T00:00:00Z", "message": f"n{number}", "job.attempt": attempt}
            assert spool.append(log_index.day(), json.dumps(text).encode())
        wait_until(lambda: settled(shipper) == 6, ARRIVE_S, "all are settled")
        found, dead = set(log_index.numbers()), dead_letters(tmp_path / "spool")
    assert len(found) + len(dead) == 6
    assert {0, 2, 3, 4, 5} <= found


def test_a_request_that_is_too_large_goes_in_parts(log_index: LogIndex, tmp_path: Path) -> None:
    def small(asked: Asked) -> Said:
        if asked.is_bulk and len(asked.body) > 2_000:
            return Said(413, b"<html>413 Request Entity Too Large</html>", "text/html")
        return asked.forward()

    root = tmp_path / "spool"
    with LogProxy(log_index.url, small) as proxy, shipped(root, log_index, proxy.url) as (spool, shipper, _):
        put(spool, log_index, range(60))
        put(spool, log_index, range(1_000, 1_001), "x" * 3_000)
        put(spool, log_index, range(60, 120))
        wait_until(lambda: settled(shipper) == 121, ARRIVE_S, "all are settled")
    assert log_index.numbers() == list(range(120))
    (letter,) = dead_letters(root)
    assert letter["status"] == 413


def test_one_document_for_which_a_whole_request_is_refused_is_found_out(
    log_index: LogIndex, tmp_path: Path
) -> None:
    def strict(asked: Asked) -> Said:
        if asked.is_bulk and b"n37 " in asked.body:
            return Said.error(400, "parse_exception")
        return asked.forward()

    root = tmp_path / "spool"
    with (
        LogProxy(log_index.url, strict) as proxy,
        shipped(root, log_index, proxy.url) as (spool, shipper, _),
    ):
        put(spool, log_index, range(100))
        wait_until(lambda: settled(shipper) == 100, ARRIVE_S, "all are settled")
        assert (shipper.counts.created, shipper.counts.dead) == (99, 1)
    assert log_index.numbers() == [*range(37), *range(38, 100)]
    (letter,) = dead_letters(root)
    assert (letter["status"], "parse_exception" in str(letter["reason"])) == (400, True)


# ---------------------------------------------------------------------- records accepted later
def test_what_is_not_taken_at_present_comes_again_and_nothing_else_does(
    log_index: LogIndex, tmp_path: Path
) -> None:
    with (
        LogProxy(log_index.url, busy_for_half) as proxy,
        shipped(tmp_path / "spool", log_index, proxy.url) as (spool, shipper, _),
    ):
        put(spool, log_index, range(200))
        arrives(log_index, shipper, range(200))
        assert (shipper.counts.created, shipper.counts.duplicates) == (200, 0)
        assert shipper.counts.retried >= 100


def test_a_cluster_that_takes_no_writes_gets_them_later(log_index: LogIndex, tmp_path: Path) -> None:
    indices = log_index.client.indices
    for block in ("index.blocks.read_only_allow_delete", "index.blocks.write"):
        root = tmp_path / block
        with shipped(root, log_index) as (spool, shipper, _):
            put(spool, log_index, range(10))
            wait_until(lambda: settled(shipper) == 10, ARRIVE_S, "the first arrive")
            indices.put_settings(index=log_index.day(), settings={block: True})
            put(spool, log_index, range(10, 30))
            wait_until(lambda: shipper.counts.retried, ARRIVE_S, "they are not taken")
            indices.put_settings(index=log_index.day(), settings={block: None})
            arrives(log_index, shipper, range(30))
        assert dead_letters(root) == []
        indices.delete(index=log_index.day())


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "security_exception"), (403, "security_exception"), (404, "other")]
)
def test_who_may_not_write_says_so_once_keeps_all_and_goes_on_when_it_may(
    log_index: LogIndex, tmp_path: Path, status: int, kind: str
) -> None:
    with (
        LogProxy(log_index.url, lambda _asked: Said.error(status, kind)) as proxy,
        shipped(tmp_path / "spool", log_index, proxy.url) as (spool, shipper, said),
    ):
        put(spool, log_index, range(50))
        wait_until(lambda: said, ARRIVE_S, "the alarm is given")
        assert shipper.status()["paused"]
        assert settled(shipper) == 0
        proxy.rule = Asked.forward
        arrives(log_index, shipper, range(50))
        wait_until(lambda: len(said) == 2, ARRIVE_S, "its end is reported")
        assert str(status) in said[0]
        assert said[1] == "logs are shipped again"
        assert not shipper.status()["paused"]
        assert shipper.status()["trouble"] == ""


def test_a_reply_that_is_lost_in_the_middle_makes_no_doubles(log_index: LogIndex, tmp_path: Path) -> None:
    lost = list[int]()

    def losing(asked: Asked) -> Said:
        said = asked.forward()
        if asked.is_bulk and len(lost) < 5:
            lost.append(len(asked.records))
            raise Reset(said)
        return said

    with (
        LogProxy(log_index.url, losing) as proxy,
        shipped(tmp_path / "spool", log_index, proxy.url) as (spool, shipper, _),
    ):
        put(spool, log_index, range(500))
        arrives(log_index, shipper, range(500))
        assert 0 < shipper.counts.duplicates <= sum(lost)


def test_an_index_that_is_deleted_meanwhile_comes_back_as_the_template_has_it(
    log_index: LogIndex, tmp_path: Path
) -> None:
    root = tmp_path / "spool"
    with shipped(root, log_index) as (spool, shipper, _):
        for start in range(0, 200, 20):
            put(spool, log_index, range(start, start + 20))
            wait_until(lambda end=start + 20: settled(shipper) >= end, ARRIVE_S, "they arrive")  # type: ignore[misc]
            log_index.client.indices.delete(index=log_index.day())
        put(spool, log_index, range(200, 220))
        wait_until(lambda: settled(shipper) == 220, ARRIVE_S, "all are settled")
    assert log_index.numbers() == list(range(200, 220))
    mapping = log_index.client.indices.get_mapping(index=log_index.day())[log_index.day()]["mappings"]
    assert mapping["dynamic"] == "false"
    assert dead_letters(root) == []


def test_the_next_process_delivers_what_a_hanging_server_left(log_index: LogIndex, tmp_path: Path) -> None:
    root = tmp_path / "spool"
    with LogProxy(log_index.url) as proxy:
        with opened(root) as spool:
            shipper = Shipper(root, log_index.target(proxy.url), spool=spool, options=QUICK)
            proxy.rule = lambda asked: proxy.hang(asked) if asked.is_bulk else asked.forward()
            shipper.start()
            put(spool, log_index, range(100))
            assert proxy.hung.wait(ARRIVE_S)
            assert not shipper.close(0.2)
        proxy.released.set()
        assert drain(root, log_index.target())
    assert log_index.numbers() == list(range(100))
    assert folders_in(root) == []
