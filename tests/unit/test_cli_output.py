import json

import pytest

from orchestrator.cli.live import describe_progress, states
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import duration, elapsed, show_rows
from orchestrator.models.job import JobView
from orchestrator.states import Queue, Status

ROWS = [{"id": "a", "n": 1}, {"id": "b", "n": 22}]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (12.34, "12.3 s"), (245, "4 min 05 s"), (7800, "2 h 10 min")]
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_elapsed_needs_both_ends() -> None:
    assert elapsed("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.500Z") == "1.5 s"
    assert elapsed(None, "2026-01-01T00:00:01.500Z") == ""


def test_json_is_one_array_and_jsonl_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(ROWS, {"id": "id"}, OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == ROWS
    show_rows(ROWS, {"id": "id"}, OutputFormat.JSONL)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS


def test_a_table_has_the_named_columns_and_no_markup_is_read_from_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_rows([{"id": "[red]x[/red]", "n": 1}], {"id": "name", "n": "count"}, OutputFormat.TABLE)
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "count"]
    assert row.split() == ["[red]x[/red]", "1"]


def view(times: dict[str, str], status: Status = Status.SUCCESS) -> JobView:
    return JobView(
        id="j",
        run_key="k",
        name="j",
        pool="default",
        queue=Queue.FINISH,
        status=status,
        attempt=1,
        created="",
        updated="",
        started=None,
        ended=None,
        error=None,
        times=times,
    )


def test_states_come_in_the_order_in_which_they_were_passed() -> None:
    at = "2026-01-01T00:00:0{}.000Z".format
    passed = states(view({"accept": at(1), "finish": at(4), "running": at(2), "success": at(4)}))
    assert [queue for queue, _, _ in passed] == [Queue.ACCEPT, Queue.RUNNING, Queue.SUCCESS, Queue.FINISH]
    assert [None if left is None else left - came for _, came, left in passed] == [1, 2, 0, None]


def test_progress_is_one_line() -> None:
    stages = [{"stage": 3, "tasks": 8, "done": 5}]
    assert describe_progress({"phase": "INSERT INTO t", "stages": stages}) == (
        "INSERT INTO t · stage 3: 5/8 tasks"
    )
    assert describe_progress({"phase": "", "stages": []}) == ""
    rows = {"phase": "it reads", "read": {"rows": 1234, "bytes": 5}, "written": {"rows": 0, "bytes": 0}}
    assert describe_progress(rows) == "it reads · 1,234 rows read"
    assert describe_progress(None) == ""
