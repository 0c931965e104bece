from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.cli.options import parse_labels, parse_since, parse_statuses
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job import MAX_LABEL_BYTES, searchable
from orchestrator.model.name_patterns import NameFilter
from orchestrator.model.states import Status
from orchestrator.model.times import ago
from queues import encode


def test_statuses_are_separated_by_commas_or_given_again() -> None:
    assert parse_statuses(["RUNNING,accept", " DEAD "]) == [Status.RUNNING, Status.ACCEPT, Status.DEAD]
    assert parse_statuses(None) == []
    with pytest.raises(DefinitionError, match="did you mean 'RUNNING'"):
        parse_statuses(["RUNING"])
    for bad in ("", "RUNNING,", "x" * 10_000):
        with pytest.raises(DefinitionError, match="expected ACCEPT, RUNNING"):
            parse_statuses([bad])


def test_labels_must_all_match() -> None:
    assert parse_labels(["team=sales", "url=a=b", "team=sales"]) == {"team": "sales", "url": "a=b"}
    for bad in (["team"], ["=sales"]):
        with pytest.raises(DefinitionError, match="write NAME=VALUE"):
            parse_labels(bad)
    with pytest.raises(DefinitionError, match="'team' cannot be 'a' and 'b'"):
        parse_labels(["team=a", "team=b"])


def test_since_is_a_duration_or_a_time() -> None:
    found = parse_since("2h")
    assert found is not None
    assert abs(found - datetime.now(UTC) + timedelta(hours=2)) < timedelta(minutes=1)
    assert parse_since("2026-11-22T10:00:00+02:00") == datetime(2026, 11, 22, 8, tzinfo=UTC)
    assert parse_since(None) is None
    for bad in ("soon", "0001-01-01T00:00:00+23:00", ""):
        with pytest.raises(DefinitionError, match="--since"):
            parse_since(bad)


def test_a_record_keeps_the_first_labels_within_its_limit() -> None:
    few = {"team": "sales", "tier": "gold"}
    assert searchable(few) == few
    many = {f"label-{number}": "é" * 20 for number in range(1_000)}
    kept = searchable(many)
    assert list(kept) == list(many)[: len(kept)]
    assert 5 < len(kept) < 30
    assert len(encode(kept)) <= MAX_LABEL_BYTES
    assert searchable({"long": "x" * 2_000}) == {}
    assert searchable({"api_token": "x", "team": "a"}) == {"team": "a"}, "records are logged and can be read"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "now"),
        (-120, "now"),
        (1, "1 s ago"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (7_200, "2 h ago"),
        (86_400 * 40, "40 d ago"),
    ],
)
def test_times_are_relative(seconds: float, words: str) -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    assert ago((now - timedelta(seconds=seconds)).isoformat(), now) == words


def test_a_time_of_a_far_future_is_shown_as_it_is() -> None:
    assert ago("2026-11-23T00:00:00Z", datetime(2026, 11, 22, tzinfo=UTC)).startswith("2026-11-2")


@pytest.mark.parametrize(("time", "words"), [(None, ""), ("", ""), ("soon", "soon"), (7, "7")])
def test_what_is_no_time_stays_as_it_is(time: object, words: str) -> None:
    assert ago(time) == words


@pytest.mark.parametrize(
    ("names", "name", "matches"),
    [
        ((), "daily", True),
        (("daily",), "daily", True),
        (("daily",), "daily-2", False),
        (("daily",), "Daily", False),
        (("dai*",), "daily", True),
        (("dai*",), "Daily", False),
        (("dai*",), "a-daily", False),
        (("load-?", "daily"), "load-7", True),
        (("load-[ab]",), "load-c", False),
        (("daily", "x*"), "daily", True),
        (("*",), None, False),
    ],
)
def test_a_name_may_be_a_pattern_of_a_shell(names: tuple[str, ...], name: object, matches: bool) -> None:
    assert NameFilter(names).matches(name) == matches


def test_a_pattern_with_many_wildcards_is_matched_in_no_time() -> None:
    assert not NameFilter(("*a" * 50,)).matches("a" * 49 + "b" * 200)
