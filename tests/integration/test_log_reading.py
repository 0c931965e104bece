"""Logs are read from a real Elasticsearch, and pruned there."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from orchestrator.leader.retention import OldLogs
from orchestrator.logs.reading.query import Grep, LogQuery
from orchestrator.logs.reading.reader import LogReader
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.shipping.http import Http
from orchestrator.logs.shipping.indices import DailyIndices
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.spool.writer import Spool
from tests.waiting import wait_until

SEARCHABLE_S = 30
DAY = "2026-11-22"


@pytest.fixture
def http(elasticsearch_url: str) -> Iterator[Http]:
    made = Http([elasticsearch_url])
    yield made
    made.close()


def document(number: int, **fields: object) -> bytes:
    time = f"{DAY}T10:{number // 60_000:02d}:{number // 1000 % 60:02d}.{number % 1000:03d}000Z"
    return json.dumps({"@timestamp": time, "log.level": "info", "message": f"m{number}", **fields}).encode()


def shipped(tmp_path: Path, url: str, alias: str, documents: list[bytes]) -> Path:
    """The folder of spools after these documents were shipped, each once."""
    root = tmp_path / "logs" / "spool"
    spool = Spool(root)
    for each in documents:
        spool.append(f"{alias}-{DAY}", each)
    shipper = Shipper(root, ElasticsearchTarget(Http([url]), alias), spool=spool)
    shipper.start()
    assert shipper.close(SEARCHABLE_S)
    spool.close(remove=True)
    refreshed = Http([url])
    refreshed.request("POST", f"/{alias}/_refresh")
    refreshed.close()
    return root


def test_more_than_a_page_of_one_moment_is_read_in_order_and_whole(
    tmp_path: Path, elasticsearch_url: str, log_alias: str
) -> None:
    # Lines of one poll have the same time: pages must not lose equal records.
    count = 12_345
    same = [
        json.dumps({"@timestamp": f"{DAY}T10:00:00.000000Z", "message": str(n)}).encode()
        for n in range(count)
    ]
    root = shipped(tmp_path, elasticsearch_url, log_alias, same)
    reader = LogReader(LogSettings(url=elasticsearch_url, alias=log_alias), root, report=pytest.fail)
    assert [entry.text("message") for entry in reader.all(LogQuery())] == [str(n) for n in range(count)]


def test_shipped_records_and_those_waiting_on_this_host_are_one_log(
    tmp_path: Path, elasticsearch_url: str, log_alias: str
) -> None:
    root = shipped(tmp_path, elasticsearch_url, log_alias, [document(n) for n in (1, 2, 4)])
    waiting = Spool(root)
    waiting.append(f"{log_alias}-{DAY}", document(3))
    reader = LogReader(LogSettings(url=elasticsearch_url, alias=log_alias), root, report=pytest.fail)
    assert [entry.text("message") for entry in reader.last(LogQuery(), 3)] == ["m2", "m3", "m4"]
    assert [entry.text("message") for entry in reader.all(LogQuery())] == ["m1", "m2", "m3", "m4"]
    waiting.close()


def test_fields_levels_times_and_words_are_looked_for(
    tmp_path: Path, elasticsearch_url: str, log_alias: str
) -> None:
    documents = [
        document(1, **{"job.id": "a", "job.attempt": 1, "log.stream": "stdout"}),
        document(2, **{"job.id": "a", "job.attempt": 2, "log.stream": "spark", "log.level": "warn"}),
        document(3, **{"job.id": "a", "job.attempt": 2, "log.level": "error", "error.stack_trace": "at x.Y"}),
        document(4, **{"job.id": "b", "spark.executor_id": "7"}),
    ]
    root = shipped(tmp_path, elasticsearch_url, log_alias, documents)
    reader = LogReader(LogSettings(url=elasticsearch_url, alias=log_alias), root, report=pytest.fail)

    def found(query: LogQuery) -> list[str]:
        return [entry.text("message") for entry in reader.all(query)]

    assert found(LogQuery.of(job_id="a")) == ["m1", "m2", "m3"]
    assert found(LogQuery.of(job_id="a", job_attempt="2")) == ["m2", "m3"]
    assert found(LogQuery.of(level="warning")) == ["m2", "m3"]
    assert found(LogQuery.of(log_stream=["stdout", "spark"])) == ["m1", "m2"]
    assert found(LogQuery.of(spark_executor_id="7")) == ["m4"]
    assert found(LogQuery.of(since=f"{DAY}T10:00:00.003000")) == ["m3", "m4"]

    assert found(LogQuery.of(grep=Grep("x\\.[XY]"))) == ["m3"]


def test_later_records_are_followed(tmp_path: Path, elasticsearch_url: str, log_alias: str) -> None:
    root = shipped(tmp_path, elasticsearch_url, log_alias, [document(1)])
    reader = LogReader(LogSettings(url=elasticsearch_url, alias=log_alias), root, report=pytest.fail)
    news = reader.follow(LogQuery(), reader.last(LogQuery(), 10))
    assert next(news) == []
    shipped(tmp_path, elasticsearch_url, log_alias, [document(2), document(3)])
    found = wait_until(lambda: next(news), SEARCHABLE_S, "the new ones are seen")
    assert [entry.text("message") for entry in found] == ["m2", "m3"]
    assert next(news) == []


@pytest.mark.parametrize("shown", [0, 10])
def test_a_record_of_the_future_hides_no_later_one(
    tmp_path: Path, elasticsearch_url: str, log_alias: str, shown: int
) -> None:
    ahead = json.dumps({"@timestamp": "2999-01-01T00:00:00.000000Z", "message": "ahead"}).encode()
    root = shipped(tmp_path, elasticsearch_url, log_alias, [ahead])
    reader = LogReader(LogSettings(url=elasticsearch_url, alias=log_alias), root, report=pytest.fail)
    news = reader.follow(LogQuery(), reader.last(LogQuery(), shown))
    next(news)
    time = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    now = json.dumps({"@timestamp": time, "message": "now"}).encode()
    shipped(tmp_path, elasticsearch_url, log_alias, [now])
    found = wait_until(lambda: next(news), SEARCHABLE_S, "the new one is seen")
    assert [entry.text("message") for entry in found] == ["now"]


def test_an_alias_without_any_index_is_an_empty_log(
    elasticsearch_url: str, tmp_path: Path, log_alias: str
) -> None:
    reader = LogReader(LogSettings(url=elasticsearch_url, alias=log_alias), tmp_path, report=pytest.fail)
    assert list(reader.all(LogQuery())) == []
    assert reader.last(LogQuery(), 5) == []


def test_indices_that_are_too_old_are_removed_and_no_others(http: Http, log_alias: str) -> None:
    ElasticsearchTarget(http, log_alias).prepare()
    days = ("2026-10-01", "2026-10-21", "2026-10-22", "2026-11-22")
    others = (f"{log_alias}-other", f"{log_alias}-2026-10-01-copy")
    for name in (*(f"{log_alias}-{day}" for day in days), *others):
        assert http.request("PUT", f"/{name}").status == 200
    indices = DailyIndices(http, log_alias)
    assert [str(index.day) for index in indices.all()] == list(days)
    old = indices.older_than(31, today=date(2026, 11, 22))
    assert [str(index.day) for index in old] == ["2026-10-01", "2026-10-21"]
    for index in old:
        indices.remove(index)
        indices.remove(index)  # another worker was faster
    assert [str(index.day) for index in indices.all()] == ["2026-10-22", "2026-11-22"]
    assert all(http.request("HEAD", f"/{name}").status == 200 for name in others)


def test_the_leader_removes_old_indices(http: Http, log_alias: str) -> None:
    ElasticsearchTarget(http, log_alias).prepare()
    assert http.request("PUT", f"/{log_alias}-2001-01-01").status == 200
    indices = DailyIndices(http, log_alias)
    assert OldLogs(lambda: indices, 30).step() > 0
    assert indices.all() == []
