"""A group that loads a command when it is used: help and completion need only the names."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from spark_runner.protocol.text import did_you_mean

# To find plugins, pydantic reads the metadata of every package that is installed.
_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
_GROUP = "app"


@dataclass(frozen=True, slots=True)
class Command:
    """The location of a command, and its line in the help of its group.

    `target` is `module:attribute`: a Typer, or a function that becomes a command.
    """

    name: str
    target: str
    help: str
    is_quick: bool = False  # starts no process, and needs no pydantic plugins
    passes_on: bool = False  # receives unknown arguments and options as they are


class LazyGroup(TyperGroup):
    """A group with the commands of its table."""

    lazy: Sequence[Command] = ()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature of click
        """The names, in the order of the table."""
        return [command.name for command in self.lazy]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - likewise
        """Load one command; None for an unknown name."""
        found = next((command for command in self.lazy if command.name == cmd_name), None)
        return None if found is None else _load(found)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; the error of an unknown name has the nearest one."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - likewise
        """Write the table of commands without loading any."""
        limit = formatter.width - 6 - max(len(command.name) for command in self.lazy)
        rows = [
            (command.name, TyperCommand(command.name, help=command.help).get_short_help_str(limit))
            for command in self.lazy
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def lazy_app(commands: Sequence[Command], *, no_args_is_help: bool = True, **options: Any) -> typer.Typer:
    """A Typer with these commands."""
    group = type("Group", (LazyGroup,), {"lazy": tuple(commands)})
    app = typer.Typer(cls=group, no_args_is_help=no_args_is_help, rich_markup_mode=None, **options)
    app.callback()(_no_options)  # typer requires a callback if it has no command
    return app


def _no_options() -> None:
    pass


class _Plugins:
    """Whether this process, and not the user, has disabled the plugins of pydantic."""

    left_out = False


def leave_out_plugins() -> None:
    """Disable the plugins of pydantic until a command is loaded that is not quick."""
    if _PLUGINS not in os.environ:  # a value of the user takes precedence
        os.environ[_PLUGINS] = "__all__"
        _Plugins.left_out = True


def enable_plugins() -> None:
    """Enable the plugins of pydantic again, unless the user has disabled them."""
    if _Plugins.left_out:
        _Plugins.left_out = False
        del os.environ[_PLUGINS]


def _load(command: Command) -> Any:
    module, _, attribute = command.target.partition(":")
    if not (command.is_quick or attribute == _GROUP):
        enable_plugins()  # drivers and other child processes may use them
    target = getattr(import_module(module), attribute)
    from orchestrator.logs.console import configure_loguru  # noqa: PLC0415 - not for help and completion

    configure_loguru()  # the modules just loaded may log
    if isinstance(target, typer.Typer):
        target._add_completion = False  # noqa: SLF001 - completion belongs to the program, not to each group
        target.rich_markup_mode = None
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        passed = {"allow_extra_args": True, "ignore_unknown_options": True} if command.passes_on else None
        single.command(command.name, context_settings=passed)(target)
        target = single
    loaded = typer.main.get_command(target)
    loaded.name = command.name
    return loaded
