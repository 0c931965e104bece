"""The questions of `orchestrator new`, and the values without a terminal."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer
from pydantic import ValidationError

from orchestrator.cli.new.columns import CsvColumns
from orchestrator.cli.new.places import PRINT, Source, Target, parse_source, parse_target
from orchestrator.cli.new.texts import Answers
from orchestrator.logs.visible import visible
from orchestrator.model.errors import DefinitionError
from orchestrator.model.fields import parse_seconds
from orchestrator.model.schedule import Schedule
from spark_runner.protocol.text import did_you_mean, without_prefix
from spark_runner.sql.compiler.modes import BATCH, MODES

T = TypeVar("T")
_EVERY = "every "
_SAMPLE_COLUMNS = CsvColumns(
    ",",
    (
        ("order_id", "BIGINT"),
        ("customer", "STRING"),
        ("amount", "DECIMAL(10, 2)"),
        ("ordered_on", "DATE"),
    ),
)


@dataclass(frozen=True, slots=True)
class Given:
    """The options of the command line; None = not given."""

    source: str | None
    target: str | None
    mode: str | None
    schedule: str | None


def ask(name: str, folder: Path, given: Given) -> Answers:
    """The answers: those of the command line, else of the terminal, else the defaults.

    Raises DefinitionError for a value of the command line that cannot be used.
    """
    sample, usual = f"{name}-sample.csv", f"output/{name}"
    text, source = _answer(
        given.source,
        "Source: a file or folder to read (empty: a small sample)",
        "",
        lambda text: parse_source(text, folder) if text else Source("csv", sample, _SAMPLE_COLUMNS),
    )
    _, target = _answer(
        given.target,
        f"Target: a folder to write, as PATH or FORMAT:PATH, or {PRINT}",
        usual,
        lambda text: _target(text, folder, source, usual),
    )
    _, mode = _answer(
        given.mode, f"Mode: {', '.join(MODES)}", BATCH, lambda each: _mode(each, text, source, folder)
    )
    if not text and mode != BATCH:  # a stream reads the new files of a folder
        source = Source("csv", f"{name}-sample", _SAMPLE_COLUMNS)
    _, schedule = _answer(
        given.schedule,
        "Schedule: five fields of cron, or `every 10m` (empty: only when it is submitted)",
        "",
        parse_schedule,
    )
    return Answers(name, source, target, mode, schedule, is_sample=not text)


def _answer(given: str | None, question: str, default: str, parse: Callable[[str], T]) -> tuple[str, T]:
    """The text and its value; a question is repeated until the answer can be used."""
    if given is not None:
        return given.strip(), parse(given.strip())
    if not sys.stdin.isatty():
        return default, parse(default)
    while True:
        try:
            text = str(typer.prompt(question, default=default, show_default=bool(default), err=True)).strip()
        except typer.Abort:  # the end of the input; after a Ctrl-C the exit code is that of the signal
            raise DefinitionError("no answer, nothing was written; give options instead") from None
        try:
            return text, parse(text)
        except DefinitionError as error:
            typer.echo(visible(f"  {error}"), err=True)


def _target(text: str, folder: Path, source: Source, usual: str) -> Target:
    if text == usual:  # below the script, wherever the command is typed
        return Target(source.file_format, usual)
    return parse_target(text, folder, source)


def _mode(text: str, given: str, source: Source, folder: Path) -> str:
    """The mode, if the source can be read in it; `given` is the text of the source."""
    mode = text.lower()
    if mode not in MODES:
        hint = did_you_mean(mode, MODES) or f"; it is one of {', '.join(MODES)}"
        raise DefinitionError(f"mode {text!r} is not supported{hint}")
    if mode == BATCH or not given:
        return mode
    if (folder / source.path).is_file():
        raise DefinitionError(
            f"mode {mode!r} reads the new files of a folder, and source {given!r} is a file; give its folder,"
            f" or choose mode {BATCH!r}"
        )
    if source.columns is None:
        raise DefinitionError(
            f"mode {mode!r} needs declared columns, and none are found in source {given!r}; choose mode"
            f" {BATCH!r}, and declare them in the script before you change its mode"
        )
    return mode


def parse_schedule(text: str) -> Schedule:
    """The schedule in `every 10m` or five fields of cron; one that is not set if the text is empty."""
    try:
        if text.lower().startswith(_EVERY):
            schedule = Schedule(every=parse_seconds(text[len(_EVERY) :].strip()))
            if not schedule.is_set:
                raise DefinitionError(f"schedule {text!r}: 0 s is not a period: give 1s or more")
            return schedule
        return Schedule(cron=text)
    except ValidationError as error:
        message = without_prefix(error.errors()[0]["msg"])
        raise DefinitionError(f"schedule {text!r}: {message}") from error
    except ValueError as error:
        raise DefinitionError(f"schedule {text!r}: {error}") from error
