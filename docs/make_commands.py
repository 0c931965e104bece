"""Makes docs/commands.md from the command line: each command with its arguments, options and example."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from docs.generated import Part, code, prose, table
from orchestrator.cli.app import app

_EXAMPLE = "Example: "
_OF_ALL = {"--help", "--verbose", "--quiet"}


def made() -> str:
    """One section per command, in the order of the help."""
    return "\n".join(_sections(typer.main.get_command(app), ("orchestrator",)))


def _sections(group: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name in group.list_commands(None):
        found, whole = group.get_command(None, name), (*path, name)
        heading = f"{'#' * len(whole)} {' '.join(whole[1:])}"
        if isinstance(found, TyperGroup):
            lines = {each.name: each.help for each in getattr(group, "lazy", ())}
            yield f"{heading}\n\n{lines.get(name) or found.help or ''}\n"
            yield from _sections(found, whole)
        else:
            yield f"{heading}\n\n{_command(found, whole)}"


def _command(command: Any, path: tuple[str, ...]) -> str:
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    usage = " ".join((" ".join(path), *command.collect_usage_pieces(context)))
    texts, examples = [], []
    for line in (command.help or "").splitlines():
        if line.strip().startswith(_EXAMPLE):
            examples.append(line.strip().removeprefix(_EXAMPLE))
        else:
            texts.append(line)
    records = (each.get_help_record(context) for each in command.params if _OF_ALL.isdisjoint(each.opts))
    rows = [(code(" ".join(name.split())), prose(words)) for name, words in filter(None, records)]
    parts = (
        f"```text\n{usage}\n```",
        prose("\n".join(texts).replace("\b", "").strip()),
        "```sh\n" + "\n".join(examples) + "\n```" if examples else "",
        table(("argument or option", "meaning"), rows),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


PART = Part(__file__, "commands.md", "the command line", made)

if __name__ == "__main__":
    PART.write()
