import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.checker import check_folder
from tests.chaos.events import Event, Fields, Kind
from tests.chaos.history import CorruptHistory, History, in_shard, read_histories, read_history
from tests.chaos.rules import Rules
from tests.chaos.snapshot import Record, Snapshot, Token, parse_token
from tests.waiting import wait_until

ENDLESS = """
import sys
from pathlib import Path
from tests.chaos.events import Kind
from tests.chaos.history import History

history = History(Path(sys.argv[1]), "a")
number = 0
while True:
    history.add(Kind.PUT_SENT, id=f"i{number}", run_key="r" * 50)
    number += 1
"""


STEP: Fields = {
    "id": "i",
    "run_key": "r",
    "version": 0,
    "queue": "accept",
    "to_queue": "running",
    "due": 0,
    "released": True,
    "extra": {"why": "ü", "n": 0},
}


def torn(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"kind":"put_se')


def test_an_event_is_read_as_it_was_written(tmp_path: Path) -> None:
    with History(tmp_path, "a") as history:
        history.add(Kind.STEP_ACKED, **STEP)
    started, step = read_history(history.path)
    assert (started.kind, started.extra) == (Kind.STARTED, {"pid": os.getpid()})
    assert step == Event(Kind.STEP_ACKED, "a", step.t, **STEP)
    assert started.t <= step.t


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    with History(tmp_path, "a") as history:
        history.add(Kind.PUT_SENT, id="i")
    torn(history.path)
    assert [event.kind for event in read_history(history.path)] == [Kind.STARTED, Kind.PUT_SENT]


def test_the_next_incarnation_begins_a_new_line(tmp_path: Path) -> None:
    with History(tmp_path, "a") as first:
        torn(first.path)
    with History(tmp_path, "a") as second:
        second.add(Kind.PUT_SENT, id="i")
    events = [(event.kind, event.incarnation) for event in read_history(second.path)]
    assert events == [(Kind.STARTED, 0), (Kind.STARTED, 1), (Kind.PUT_SENT, 1)]


def test_a_line_that_no_death_explains_is_an_error(tmp_path: Path) -> None:
    with History(tmp_path, "a") as history:
        torn(history.path)
        history.add(Kind.PUT_SENT, id="i")
        history.add(Kind.PUT_SENT, id="j")
    with pytest.raises(CorruptHistory, match="line 2"):
        list(read_history(history.path))


def test_events_of_a_killed_process_are_there(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)]) as actor:
        path = tmp_path / "a.jsonl"
        wait_until(lambda: path.exists() and path.stat().st_size > 100_000, 20, "the actor writes")
        actor.send_signal(signal.SIGKILL)
    ids = [event.id for event in read_history(path) if event.kind is Kind.PUT_SENT]
    assert len(ids) > 500
    assert ids == [f"i{number}" for number in range(len(ids))]


def test_shards_part_the_items_and_judge_the_same(tmp_path: Path) -> None:
    ids = [f"i{number}" for number in range(20)]
    with History(tmp_path, "a") as history:
        for item_id in ids:
            for kind in (Kind.PUT_SENT, Kind.PUT_ACKED):
                history.add(kind, id=item_id, run_key=f"r-{item_id}", queue="accept", version=0)
    parts = [{event.id for event in read_histories(tmp_path, shard, 3)} - {""} for shard in range(3)]
    assert all(parts)
    assert sorted(item_id for part in parts for item_id in part) == sorted(ids)
    assert in_shard("i1", 0, 1)

    left = {item_id: Record(0, f"r-{item_id}", "accept") for item_id in ids[1:]}  # the first is lost

    def snapshot(only: object) -> Snapshot:
        assert callable(only)
        there = {item_id: record for item_id, record in left.items() if only(item_id)}
        return Snapshot(there, tuple(Token("accept", "p", item_id) for item_id in there))

    reports = [check_folder(tmp_path, snapshot, Rules(frozenset(), 1), shards) for shards in (1, 3)]
    assert [[violation.id for violation in report.violations] for report in reports] == [["i0"], ["i0"]]
    assert reports[0].seen == reports[1].seen
    assert reports[0].seen["items"] == 20
    assert reports[0].seen["started"] == 1


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("queue-|flights|019a0c5e1f2|6441f0b3c2a10", ("flights", 0x19A0C5E1F2)),
        ("foreign", ("foreign", None)),
        ("queue-|a|xyz|1", ("queue-|a|xyz|1", None)),
    ],
)
def test_a_token_is_read_without_the_code_under_test(name: str, parsed: tuple[str, int | None]) -> None:
    assert parse_token(name) == parsed
