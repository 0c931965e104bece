"""The pushes of a job on a page: plain words, whatever a driver reports."""

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orchestrator.cli.job.pushes import pushes

MOST_CHARACTERS = 200_000  # of a page with all that is shown
COUNTS = {"read": 1200, "delivered": 1000, "dead": 3, "retried": 7, "errors": 2, "timeouts": 1}
PUSH = {
    **COUNTS,
    "requests": 200,
    "tasks": 2,
    "stale": 0,
    "stopped": 0,
    "in_flight": 3,
    "buffered": 20,
    "oldest": 1.25,
    "threads": 4,
    "active": 3,
    "read_seconds": 61.0,
    "push_seconds": 3700.0,
    "stopped_seconds": 0.0,
    "p50": 0.0213,
    "p99": 0.4,
    "speed_in": {"10": 2000.0, "60": 1234.4, "300": 99.0},
    "speed_out": {"10": 1500.0, "60": 1000.0, "300": 80.0},
    "lanes": {"a": {**COUNTS, "speed": 12.3}},
    "limits": {"concurrency": 4, "rate": 0, "buffer": 1000, "is_suspended": False, "paused": []},
}


def page(progress: Mapping[str, Any]) -> str:
    """The page as a terminal shows it."""
    console = Console(file=StringIO(), width=200, highlight=False, emoji=False)
    for lines, lanes in pushes(progress):
        console.print("\n".join(lines), markup=False, soft_wrap=True)
        console.print(lanes)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def page_of(**changes: Any) -> str:
    limits = {**PUSH["limits"], **changes.pop("limits", {})}  # type: ignore[dict-item]  # it is a mapping
    return page({"pushes": {"dst": {**PUSH, **changes, "limits": limits}}})


def test_the_address_of_rows_that_clients_fetch_is_shown() -> None:
    address = f"https://{'h' * 253}:12345/rows"
    assert f"clients fetch its rows at {address}" in page_of(address=address).replace("\n", "")
    assert "clients fetch" not in page_of(address=7)
    assert "\x1b" not in page_of(address="http://\x1b[31m")


def test_a_push_is_shown_with_its_numbers() -> None:
    assert [line.rstrip() for line in page_of(limits={"rate": 2.5}).splitlines()] == [
        "push into dst",
        "in 2,000 rows/s (1 min: 1,234, 5 min: 99) · out 1,500 rows/s (1 min: 1,000, 5 min: 80)",
        "3 of 4 requests in flight, at most 2.5 a second · 20 of 1,000 rows buffered · the oldest for 1.2 s",
        "latency 21 ms, p99 400 ms · 2 tasks · 3 of 4 threads busy",
        "its source sets the pace: rows are sent as they come",
        "time: 1 min 01 s to read and transform, 1 h 01 min in requests, 0.0 s stopped by a full buffer",
        "lane    read   waiting   delivered   rows/s   dead   retried   errors   timeouts",
        "───────────────────────────────────────────────────────────────────────────────────",
        "a      1,200       197       1,000       12      3         7        2          1",
    ]


def test_what_a_source_has_and_scheduling_errors_are_shown_where_there_are_any() -> None:
    shown = page_of(lag=1200, available=1000, recovered=2, late=3)
    assert "1,200 rows behind its source, which has 1,000 more" in shown
    assert "scheduling: 3 answers after a rollback, 2 order groups recovered" in shown
    assert "behind" not in page_of()
    assert "scheduling" not in page_of(recovered=0, late=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stopped": 1}, "its target sets the pace: the buffer is full, and reading waits"),
        (
            {"stopped": 1, "limits": {"rate": 2}},
            "its target or its rate limit sets the pace: the buffer is full, and reading waits",
        ),
        (
            {"stopped": 1, "limits": {"paused": ["a"]}},
            "its target or a paused lane sets the pace: the buffer is full, and reading waits",
        ),
        ({"buffered": 41}, "its target sets the pace: rows wait for it"),
        (
            {"buffered": 41, "in_flight": 0, "limits": {"rate": 2}},
            "its target or its rate limit sets the pace: rows wait for it",
        ),
        (
            {"buffered": 41, "requests": 0, "delivered": 0},
            "its source sets the pace: rows are sent as they come",
        ),
        ({"in_flight": 4}, "its target sets the pace: all requests that it may have are in flight"),
        ({}, "its source sets the pace: rows are sent as they come"),
        ({"stopped": 1, "limits": {"is_suspended": True}}, "an operator has suspended it"),
        ({"tasks": 0, "in_flight": 0, "limits": {"concurrency": 0}}, "no task of it runs now"),
        (
            {"in_flight": 0, "limits": {"concurrency": "many"}},
            "its source sets the pace: rows are sent as they come",
        ),
    ],
)
def test_one_line_says_which_stage_the_others_wait_for(changes: dict[str, Any], words: str) -> None:
    assert page_of(**changes).splitlines()[4] == words


def test_tasks_without_contact_are_named() -> None:
    assert "2 tasks, 1 without contact" in page_of(stale=1)


def test_paused_lanes_are_marked_also_before_their_first_row() -> None:
    shown = page_of(lanes={"a": COUNTS, "b": COUNTS}, limits={"paused": ["b", "c"]}).splitlines()
    marks = {line.split()[0]: line.split()[-1] for line in shown[8:]}
    assert marks == {"a": "1", "b": "paused", "c": "paused", "all": "1"}


def test_all_lanes_together_wait_for_and_are_delivered_at_the_sums() -> None:
    *_, total = page_of(lanes={"a": COUNTS, "b": COUNTS}).splitlines()
    assert total.split()[:5] == ["all", "1,200", "197", "1,000", "1,500"]


@pytest.mark.parametrize("counts", [{"read": 1, "delivered": 5}, {"read": 1, "delivered": -1e14, "dead": 3}])
def test_no_lane_waits_for_less_than_nothing(counts: dict[str, Any]) -> None:
    *_, lane = page_of(lanes={"a": counts}).splitlines()
    assert not lane.split()[2].startswith("-")


def test_a_job_without_a_push_has_no_such_page() -> None:
    assert page({}) == page({"pushes": {}}) == page({"phase": "running"}) == ""


# ---------------------------------------------------------------------- a driver that is not trusted
HOSTILE = "\x1b[2J\u202e\nall is well\x07"


def test_names_cannot_control_the_terminal_or_make_lines_of_their_own() -> None:
    shown = page({"pushes": {HOSTILE: {**PUSH, "lanes": {HOSTILE: COUNTS, "b": {}}}}})
    assert not {"\x1b", "\u202e", "\x07"} & {*shown}
    assert not any(line.startswith("all is well") for line in shown.splitlines())


def test_a_page_is_bounded() -> None:
    names = [f"{number}-{'x' * 10_000}" for number in range(5_000)]
    push = {**PUSH, "lanes": dict.fromkeys(names, COUNTS), "limits": {"paused": names}}
    shown = page({"pushes": dict.fromkeys(names, push)})
    assert len(shown) < MOST_CHARACTERS
    assert shown.count("5,000 lanes, the first 60 by name:") == 10
    assert shown.count("push 10 of 5,000 into ") == 1


NAMES = [
    *PUSH,
    "lag",
    "available",
    "recovered",
    "late",
    "concurrency",
    "rate",
    "buffer",
    "is_suspended",
    "paused",
    "10",
    "60",
    "300",
    "read",
    "speed",
    "",
]
WRONG = [float("nan"), float("inf"), 10**400, -(10**400), -1, True, "many", None, [None], {"60": "x"}]
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(WRONG) | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from(NAMES)
NESTED = st.recursive(VALUES, lambda values: st.dictionaries(FIELDS, values, max_size=8), max_leaves=20)


def variants(field: str, value: object) -> Iterator[dict[str, Any]]:
    """Progress with this value at each level."""
    limits: dict[str, Any] = PUSH["limits"]  # type: ignore[assignment]  # it is a mapping
    yield {"pushes": value}
    yield {"pushes": {"a": value}}
    yield {"pushes": {"a": {**PUSH, field: value}}}
    yield {"pushes": {"a": {**PUSH, "limits": {**limits, field: value}}}}
    yield {"pushes": {"a": {**PUSH, "lanes": {"b": value, "c": {field: value}}}}}


@pytest.mark.parametrize("field", NAMES)
def test_a_wrong_value_in_any_place_makes_a_page(field: str) -> None:
    for value in WRONG:
        for progress in variants(field, value):
            assert len(page(progress)) < 3000


@given(NESTED, FIELDS)
def test_values_of_any_type_make_a_page(value: object, field: str) -> None:
    for progress in variants(field, value):
        assert len(page(progress)) < MOST_CHARACTERS
