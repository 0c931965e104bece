"""`orchestrator new`: writes a script and a definition that run at once."""

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.new.questions import Given, ask
from orchestrator.cli.new.texts import SAMPLE, Answers, definition_text, script_text
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import stderr_console
from orchestrator.cli.result import program_name
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import AlreadyExists, DefinitionError
from orchestrator.model.plan import check_sql
from orchestrator.model.reading import read_document


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the job, and of its files.")],
    source: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A file or folder to read, or FORMAT:PATH; '' = a small sample."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="PATH", help="A folder to write, or FORMAT:PATH, or print.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="How the job runs: batch, available-now or streaming.")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Five fields of cron, or 'every 10m'; '' = no schedule.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--directory", metavar="FOLDER", help="Where to write the files.")
    ] = Path(),
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    _verbose: Verbose = 0,
) -> None:
    """Write a SQL script and a definition that run at once, and print the next commands.

    On a terminal it asks for what the options do not give; otherwise it uses defaults. It replaces no file.

    Example: orchestrator new totals --source orders.csv --target output/totals
    """
    folder = folder.absolute()
    answers = ask(_checked(name), folder, Given(source, target, mode, schedule))
    files = _files(answers, folder)
    _check(answers, files, folder)
    _write(files)
    table, job = answers.source_table, _shown(folder / f"{name}.yaml")
    commands = [
        f"{program_name()} {command}"
        for command in (
            f"sql preview {job} {table}",
            f"sql explain {job}",
            f"run {job}",
            f"job submit {job}",
        )
    ]
    if output is not OutputFormat.TABLE:
        print_json({"files": [str(path) for path in files], "next": commands}, output)
        return
    for path in files:
        typer.echo(_shown(path))
    if not quiet:
        _show_next(commands, is_scheduled=answers.schedule.is_set)


def _checked(name: str) -> str:
    build_definition({"name": name, "script": "SELECT 1"}, name)  # raises for a name that no job may have
    return name


def _files(answers: Answers, folder: Path) -> dict[Path, str]:
    files = {
        folder / f"{answers.name}.sql": script_text(answers),
        folder / f"{answers.name}.yaml": definition_text(answers),
    }
    return {folder / answers.sample_file: SAMPLE, **files} if answers.is_sample else files


def _check(answers: Answers, files: Mapping[Path, str], folder: Path) -> None:
    """Raise AlreadyExists for a file that is there, and SqlError for a script that cannot be submitted."""
    if there := [path for path in files if path.exists() or path.is_symlink()]:
        shown = ", ".join(_shown(path) for path in there)
        raise AlreadyExists(f"{shown}: already there; choose another name or --directory, or remove it first")
    document = read_document(files[folder / f"{answers.name}.yaml"], f"{answers.name}.yaml")
    script = files[folder / f"{answers.name}.sql"]
    fields = {**document, "script": script, "directory": str(folder)}
    found = check_sql(build_definition(fields, f"{answers.name}.yaml"), f"{answers.name}.sql")
    if found.plan is None:
        raise found.error()


def _write(files: Mapping[Path, str]) -> None:
    """Write all files or none."""
    written = list[Path]()
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise DefinitionError(f"{error.filename}: cannot be written: {error.strerror}") from error


def _shown(path: Path) -> str:
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


def _show_next(commands: Sequence[str], *, is_scheduled: bool) -> None:
    purposes = (
        "rows of the source",
        "check it with Spark",
        "run it here, now",
        "register its schedule" if is_scheduled else "enqueue it for workers",
    )
    console = stderr_console()
    console.print("\nnext:")
    for purpose, command in zip(purposes, commands, strict=True):
        console.print(f"  {purpose + ':':<24}{command}", markup=False)
