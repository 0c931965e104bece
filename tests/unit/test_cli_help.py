"""The help of each command says what docs/command-line.md promises."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from orchestrator.cli.app import app


def commands(found: Any, path: tuple[str, ...]) -> Iterator[tuple[str, TyperCommand]]:
    if not isinstance(found, TyperGroup):
        yield " ".join(path), found
        return
    context: Any = None  # the table of the commands needs none
    for name in found.list_commands(context):
        yield from commands(found.get_command(context, name), (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app), ("orchestrator",)))


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_has_an_example_that_it_can_parse(path: str) -> None:
    command = COMMANDS[path]
    lines = [line.strip() for line in (command.help or "").splitlines()]
    examples = [line.removeprefix("Example: ") for line in lines if line.startswith("Example: ")]
    assert examples
    for example in examples:
        assert example == path or example.startswith(f"{path} ")
        command.make_context(path, shlex.split(example.removeprefix(path)), resilient_parsing=False).close()
