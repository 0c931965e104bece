import io
import json
import sys

import pytest
import typer
from loguru import logger
from rich.text import Text

from orchestrator.admin.views import JobDetail
from orchestrator.cli.acting import confirm
from orchestrator.cli.app import run_app
from orchestrator.cli.exits import Exit, explain_error
from orchestrator.cli.job.show import document_of as show_document
from orchestrator.cli.job.show import show_detail
from orchestrator.cli.logs.printing import RecordPrinter
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import duration, elapsed, show_rows, stderr_console, stdout_console
from orchestrator.cli.result import show_end
from orchestrator.cli.states import states
from orchestrator.logs.console import log_to_stderr
from orchestrator.logs.reading.query import LogRecord
from orchestrator.logs.visible import visible, visible_json
from orchestrator.model.errors import DefinitionError
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from queues import QueueFull, TooManyPools
from queues.session.rights import Identity

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


EVIL = "a\x1b]0;owned\x07\x9b2J\u202eb\u2066c\u2028d\r\udc80"
SHOWN = r"a\x1b]0;owned\x07\x9b2J\u202eb\u2066c\u2028d\x0d\udc80"
BY_RICH = SHOWN.replace(r"\x07", "").replace(r"\x0d", "")  # rich drops these two


def test_no_text_of_others_commands_the_terminal_or_hides_what_stands_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = io.StringIO()  # with nothing typed
    monkeypatch.setattr(sys, "stdin", keyboard)
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    show_rows([{"id": EVIL}], {"id": "name"}, OutputFormat.TABLE)
    assert capsys.readouterr().out.splitlines()[2].strip() == SHOWN
    stdout_console().print(EVIL, markup=False, soft_wrap=True)
    stderr_console().print(EVIL, markup=False)
    seen = capsys.readouterr()
    assert (seen.out.strip(), seen.err.strip()) == (BY_RICH, SHOWN)
    explain_error(DefinitionError(EVIL), verbose=False)
    explain_error(RuntimeError(EVIL), verbose=False)
    assert capsys.readouterr().err.count(SHOWN) == 2
    with pytest.raises(typer.Exit):
        confirm(EVIL, yes=False)
    assert SHOWN in capsys.readouterr().err
    printer = RecordPrinter(OutputFormat.TABLE, prefix=False)
    printer.print(LogRecord("x", {"log.stream": "stdout", "message": EVIL}))
    assert capsys.readouterr().out == "{}\n".format(SHOWN.replace("udc80", "x80")), "a byte that is no text"


def test_control_codes_of_rich_pass_to_a_terminal() -> None:
    console = stdout_console()
    with console.capture() as captured:
        console.print(Text("red", style="red"))
        console.show_cursor(show=False)
    assert captured.get() == "red\n"  # no terminal
    coloured = type(console)(force_terminal=True, color_system="standard")
    with coloured.capture() as captured:
        coloured.print(Text(f"red{EVIL}", style="red"), soft_wrap=True)
    assert captured.get() == f"\x1b[31mred{BY_RICH}\x1b[0m\n"


@pytest.mark.parametrize("output", [OutputFormat.JSON, OutputFormat.JSONL])
def test_json_says_the_same_and_commands_no_terminal(
    output: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    show_rows([{"id": EVIL}], {"id": "name"}, output)
    text = capsys.readouterr().out
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) in ({"id": EVIL}, [{"id": EVIL}])


@pytest.mark.parametrize(
    "text", ["plain", "a\tb\nc\r\n", "\u00fc\u4e2d\U0001f468\u200d\U0001f469", "\u0645\u06cc\u200c\u062e"]
)
def test_texts_of_all_languages_are_shown_as_they_are(text: str) -> None:
    assert visible(text) == text


def test_words_of_the_log_on_stderr_command_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr("INFO")
    try:
        logger.info("the job says {}", EVIL)
    finally:
        logger.remove()
    assert SHOWN in capsys.readouterr().err


def test_the_text_of_an_error_is_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (DefinitionError("x" * 1_000_000), RuntimeError("x" * 1_000_000)):
        explain_error(error, verbose=False)
        assert "[... 980,000 characters ...]" in capsys.readouterr().err


@pytest.mark.parametrize("letter", "\xad\u034f\u115f\u1160\u17b4\u2060\u3164\ufeff\uffa0\U0001d173\U000e0041")
def test_no_name_looks_like_another_by_letters_that_cannot_be_seen(letter: str) -> None:
    name = f"ada{letter}"
    assert visible(name).startswith("ada\\")
    assert visible_json(json.dumps(name, ensure_ascii=False)).startswith('"ada\\u')
    assert json.loads(visible_json(json.dumps(name, ensure_ascii=False))) == name
    assert str(Identity("digest", name)) == "digest:ada\ufffd"


def test_a_wrong_value_of_an_option_is_named_without_words_of_a_library(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_app(["job", "list", "-o", "xml"]) == 2
    _, error = capsys.readouterr()
    assert "Invalid value for '--output' / '-o': 'xml' is not one of 'table', 'json', 'jsonl'." in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["job", "lst"], "No such command 'lst'; did you mean 'list'?"),
        (["zokeeper"], "No such command 'zokeeper'; did you mean 'zookeeper'?"),
        (["job", "xyzzy"], "No such command 'xyzzy'\n"),
    ],
)
def test_an_unknown_command_has_the_nearest_name(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["run", "job.py", "--date", "2026-01-01"], "run SCRIPT -- --date ..."),
        (["job", "submit", "job.yaml", "-x"], "job submit SCRIPT -- -x ..."),
        (["run", "a.sql", "--sett", "x=1"], ""),
        (["job", "list", "--nam", "x"], ""),
        (["run", "job.py", "--id"], ""),
    ],
)
def test_an_option_of_the_program_without_the_mark_is_explained(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(arguments) == 2
    error = capsys.readouterr().err
    assert ("write -- before its arguments" in error) == bool(hint)
    assert hint in error


def test_the_hint_at_the_arguments_of_a_program_controls_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_app(["run", "job.py", "--\x1b[2Jdate"]) == 2
    error = capsys.readouterr().err
    assert r"-- --\x1b[2Jdate ..." in error
    assert "\x1b" not in error


def test_a_blank_line_is_before_each_table_of_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"table": "src", "rows": 3, "quarantined": 1, "dropped": 0, "place": "file:/bad"}
    attempt = {"attempt": 1, "state": "succeeded", "tables": [{"target": "t", "rows": 2}], "bad_rows": [bad]}
    show_detail(
        JobDetail(
            view({"accept": "2026-01-01T00:00:00.000Z"}), "k", "/jobs/j", {}, [attempt], None, None, None
        )
    )
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    heads = [index for index, line in enumerate(lines) if line.startswith("──")]
    assert len(heads) == 4
    assert all(not lines[index - 2] for index in heads)


@pytest.mark.parametrize("quarantined", [0, 2])
def test_the_report_of_a_run_has_the_command_that_shows_rows_that_did_not_fit(
    quarantined: int, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {"table": "t", "rows": 9, "quarantined": quarantined, "dropped": 1, "place": "file:/x"}
    attempt = {"attempt": 1, "state": "succeeded", "bad_rows": [bad]}
    job = view({"accept": "2026-01-01T00:00:00.000Z"})
    detail = JobDetail(job, "k", "/jobs/j", {}, [attempt], None, None, None)
    show_end(detail, "/orchestrator")
    said = capsys.readouterr().err
    assert (f" job quarantine {job.id}\n" in said) is bool(quarantined)
    assert f" job show {job.id}\n" in said
    show_end(detail, None)
    assert "quarantine" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ui", "line"),
    [("http://driver:4040", "app-1 · http://driver:4040"), ("http://x/\x1b[2J", "app-1"), (5, "app-1")],
)
def test_the_pages_of_a_job_are_shown_if_they_are_pages(
    ui: object, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = view({"accept": "2026-01-01T00:00:00.000Z"})
    seen = seen.model_copy(update={"history": "http://history:18080/history/app-1"})
    progress = {"application_id": "app-1", "ui": ui}
    detail = JobDetail(seen, "k", "/jobs/j", {}, [{"attempt": 1, "state": "started"}], progress, None, None)
    show_detail(detail)
    shown = [text.strip() for text in capsys.readouterr().out.splitlines()]
    assert f"spark:    {line}" in shown
    assert "history:  http://history:18080/history/app-1" in shown
    document = show_document(detail)
    assert document["ui"] == (ui if line.endswith("4040") else None)
    assert document["history"] == "http://history:18080/history/app-1"


@pytest.mark.parametrize("error", [QueueFull("accept", "nightly", 10), TooManyPools("nightly", 64)])
def test_a_put_that_has_no_room_is_a_conflict_and_no_failure_of_a_job(error: Exception) -> None:
    assert explain_error(error, verbose=False) is Exit.CONFLICT
