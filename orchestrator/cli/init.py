"""`orchestrator init`."""

import os
import shlex
import stat
import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import Quiet, Verbose
from orchestrator.cli.output import stderr_console
from orchestrator.config.settings import config_file
from orchestrator.config.template import render
from orchestrator.logs.files import PRIVATE, replace_file
from orchestrator.model.errors import AlreadyExists, SettingsError

_STDOUT = Path("-")


def init(
    file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The file; `-` = stdout. Default: where commands look for it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Write a file of settings: each with its description and default, all commented out.

    The file changes nothing until a line is edited. Only its owner may read it. A file that exists stays
    as it is, and the exit code is 5, unless --force is given.

    Example: orchestrator init --file orchestrator.toml
    """
    if file == _STDOUT:
        sys.stdout.write(render())
        return
    target = (config_file() if file is None else file.expanduser()).absolute()
    _write(target, render(), force=force)
    if quiet:
        return
    console = stderr_console()
    console.print(f"wrote {target}: every setting with its default, commented out", markup=False)
    console.print("next:")
    steps = [
        ("orchestrator doctor", "check this host: Java, memory, disks, ports"),
        ("orchestrator new NAME", "write a job that runs at once"),
        ("orchestrator config show", "show the settings in force"),
    ]
    if target != config_file().absolute():
        steps.insert(0, (f"export ORCHESTRATOR_CONFIG={shlex.quote(str(target))}", "let commands use it"))
    width = max(len(command) for command, _ in steps)
    for command, purpose in steps:
        console.print(f"  {command:<{width}}  # {purpose}", markup=False)


def _write(target: Path, text: str, *, force: bool) -> None:
    """Write the file with mode 0600, or leave all as it was; raises AlreadyExists, SettingsError."""
    try:
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, mode=0o700)
        if force and os.path.lexists(target):
            if not stat.S_ISREG(target.lstat().st_mode):
                raise SettingsError(f"{target} is not a regular file; name another one with --file")
            replace_file(target, text.encode())
        else:
            _create(target, text)
    except FileExistsError as error:
        if target.parent.is_dir():
            raise AlreadyExists(f"{target} exists and was not changed; --force replaces it") from error
        raise SettingsError(f"{target.parent} is not a directory; name another file") from error
    except OSError as error:
        raise SettingsError(f"{target} cannot be written: {error.strerror}; name another file") from error


def _create(target: Path, text: str) -> None:
    opened = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as written:
            written.write(text)
    except OSError:  # half a file would be read by every command
        target.unlink(missing_ok=True)
        raise
