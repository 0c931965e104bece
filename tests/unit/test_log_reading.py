"""Search and display of log records."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.logs.tail import pattern_of, since_of
from orchestrator.logs.reading.query import Grep, LogQuery, LogRecord
from orchestrator.logs.reading.reader import LogReader, SpooledLogs, merge_records
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.spool.writer import Spool
from orchestrator.model.errors import DefinitionError
from tests import bounded


def entry(number: int, time: Any = "2026-11-22T10:00:00.000000Z", **fields: Any) -> LogRecord:
    return LogRecord(f"p-{number}", {"@timestamp": time, "event.sequence": number, **fields})


def names(entries: list[LogRecord]) -> list[str]:
    return [each.id for each in entries]


def test_two_sources_are_merged_in_order_and_without_duplicates() -> None:
    here = [entry(1), entry(2), entry(3, "2026-11-22T10:00:02.000000Z")]
    there = [entry(2), entry(4, "2026-11-22T10:00:01.000000Z")]
    assert names(list(merge_records(here, there))) == ["p-1", "p-2", "p-4", "p-3"]


def test_of_one_moment_the_order_is_that_of_the_producer() -> None:
    numbers = [entry(number) for number in (2, 10, 9)]
    assert names(sorted(numbers, key=lambda each: each.order)) == ["p-2", "p-9", "p-10"]


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        (LogQuery(), True),
        (LogQuery.of(job_id="a"), True),
        (LogQuery.of(job_id="b"), False),
        (LogQuery.of(job_attempt="2"), True),
        (LogQuery.of(job_attempt="3"), False),
        (LogQuery.of(log_stream=["stdout", "spark"]), True),
        (LogQuery.of(spark_executor_id="1"), False),
        (LogQuery.of(level="warning"), True),
        (LogQuery.of(level="error"), False),
        (LogQuery.of(since="2026-11-22T10:00:00.000000"), True),
        (LogQuery.of(since="2026-11-22T10:00:00.000001"), False),
        (LogQuery.of(grep=Grep("dis[ck]")), True),
        (LogQuery.of(grep=Grep("at org\\.apache")), True),
        (LogQuery.of(grep=Grep("^full")), False),
    ],
)
def test_matching_of_queries_and_records(query: LogQuery, fits: bool) -> None:
    found = entry(
        1,
        message="disk full",
        **{
            "job.id": "a",
            "job.attempt": 2,
            "log.stream": "spark",
            "log.level": "WARN",
            "error.stack_trace": "at org.apache.spark.X",
        },
    )
    assert query.matches(found) is fits


@pytest.mark.parametrize("text", ["yesterday", "10 parsecs", ""])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match="--since"):
        since_of(text)


def test_times_are_compared_in_utc() -> None:
    assert since_of("2026-11-22T10:00:00+02:00") == "2026-11-22T08:00:00.000000"


def test_spools_of_running_processes_are_read_too_and_each_record_once(tmp_path: Path) -> None:
    spools = [Spool(tmp_path), Spool(tmp_path)]
    reader = SpooledLogs(tmp_path)
    for number, spool in enumerate(spools):
        spool.append("x", b'{"@timestamp":"2026-11-22T10:00:0%d.000000Z","message":"%d"}' % (number, number))
    assert [each.text("message") for each in reader.new(LogQuery())] == ["0", "1"]
    spools[0].append("x", b'{"@timestamp":"2026-11-22T10:00:02.000000Z","message":"2"}')
    assert [each.text("message") for each in reader.new(LogQuery())] == ["2"]
    assert reader.new(LogQuery()) == []
    for spool in spools:
        spool.close()


def test_without_elasticsearch_the_spool_is_followed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append("x", b'{"@timestamp":"2026-11-22T10:00:00.000000Z","message":"before"}')
    reader = LogReader(LogSettings(), tmp_path, report=pytest.fail)
    shown = reader.last(LogQuery(), 10)
    assert [each.text("message") for each in shown] == ["before"]
    news = reader.follow(LogQuery(), shown)
    assert next(news) == []
    spool.append("x", b'{"@timestamp":"2026-11-22T10:00:01.000000Z","message":"after"}')
    assert [each.text("message") for each in next(news)] == ["after"]
    spool.close()


def test_an_elasticsearch_that_does_not_answer_is_reported_once_and_the_spool_is_shown(
    tmp_path: Path,
) -> None:
    spool, reported = Spool(tmp_path), list[str]()
    spool.append("x", b'{"@timestamp":"2026-11-22T10:00:00.000000Z","message":"here"}')
    reader = LogReader(LogSettings(url="http://127.0.0.1:9"), tmp_path, report=reported.append)
    shown = reader.last(LogQuery(), 10)
    assert [each.text("message") for each in shown] == ["here"]
    assert next(reader.follow(LogQuery(), shown)) == []
    (words,) = reported
    assert words.startswith("http://127.0.0.1:9: ")
    assert "refused" in words
    spool.close()


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(.*a){30}$", "a{500}b", "(a?){100}a{100}$"])
def test_no_expression_takes_more_than_time_in_proportion_to_the_text(expression: str) -> None:
    found = bounded.outcome(lambda: [Grep(expression).is_in("a" * 200_000 + end) for end in ("b", "")])
    assert isinstance(found, list)


@pytest.mark.parametrize(
    "expression", ["(", "(?=a)", r"(a)\1", "(a{1000}){1000}", "a" * 1_001, "((a{100}){10}){10}"]
)
def test_an_expression_that_is_none_or_too_much_is_refused_in_words(expression: str) -> None:
    with pytest.raises(DefinitionError, match="is not a valid RE2 regular expression: ") as caught:
        pattern_of(expression)
    assert len(str(caught.value)) < 500


def test_a_text_with_half_of_a_character_is_searched_like_any_other() -> None:
    assert Grep("b$").is_in("\ud800b")
    assert Grep("\ud800").is_in("a\ud800")


@pytest.mark.parametrize("text", ["9999999d", "0001-01-01", "9999-12-31T23:59:59-12:00", "inf", "\u0663d"])
def test_a_time_that_no_clock_shows_is_refused_in_words(text: str) -> None:
    with contextlib.suppress(DefinitionError):  # the first and last days are times in some zones
        assert len(since_of(text)) == len("2026-11-22T10:00:00.000000")
