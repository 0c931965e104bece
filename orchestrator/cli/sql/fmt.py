"""`orchestrator sql fmt`: writes scripts in their canonical form, without Spark."""

import stat
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.exits import Exit
from orchestrator.cli.options import Quiet, Verbose
from orchestrator.cli.output import stderr_console
from orchestrator.cli.sql.script import STANDARD_INPUT
from orchestrator.logs.files import replace_file
from orchestrator.model.errors import DefinitionError
from orchestrator.model.reading import read_file, read_standard_input
from orchestrator.sql.format.dialects import Dialect, rewritten
from orchestrator.sql.format.script import format_script
from spark_runner.sql.text.source import MAX_SCRIPT_CHARACTERS, ScriptSource


def fmt(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Scripts; - is standard input, and writes standard output."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a script would change.")
    ] = False,
    to: Annotated[
        Dialect | None, typer.Option("--to", help="Rewrite each CREATE TABLE in this dialect.")
    ] = None,
    quiet: Quiet = False,
    _verbose: Verbose = 0,
) -> None:
    """Write scripts in their canonical form: space, line breaks, and the case of keywords.

    The statements stay the same, and comments, hints, strings and variables keep their text. A statement with
    a comment inside keeps its lines.

    Example: orchestrator sql fmt examples/flights.sql --check
    """
    changed = 0
    for file in files:
        text = _read(file)
        found = _formatted(file, text, to)
        changed += found != text
        if file == "-" and not check:
            sys.stdout.write(found)
        elif found != text:
            if not check:
                _write(Path(file), found)
            if not quiet:
                verb = "would be formatted" if check else "formatted"
                stderr_console().print(f"{_shown(file)}: {verb}", markup=False)
    if check and changed:
        raise typer.Exit(Exit.FAILED)


def _read(file: str) -> str:
    if file != "-" and Path(file).suffix != ".sql":
        raise DefinitionError(f"{file}: only scripts (.sql) can be formatted")
    try:
        return read_standard_input() if file == "-" else read_file(Path(file))
    except ValueError as error:
        raise DefinitionError(f"{_shown(file)}: {error}") from error
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be read: {error.strerror}") from error


def _formatted(file: str, text: str, to: Dialect | None) -> str:
    if len(text) > MAX_SCRIPT_CHARACTERS:
        raise DefinitionError(
            f"{_shown(file)}: has {len(text):,} characters, the limit is {MAX_SCRIPT_CHARACTERS:,}"
        )
    source = ScriptSource(_shown(file), text)
    return format_script(source) if to is None else format_script(source, partial(rewritten, to))


def _write(file: Path, text: str) -> None:
    """Replace the file that the path names, behind any links, and keep its permissions."""
    target = file.resolve()
    try:
        replace_file(target, text.encode("utf-8"), mode=stat.S_IMODE(target.stat().st_mode))
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be written: {error.strerror}") from error


def _shown(file: str) -> str:
    return STANDARD_INPUT if file == "-" else file
