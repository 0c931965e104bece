"""Folds prose between words on a terminal, which would break words; a pipe and a file get whole lines."""

import os
import re
import sys
from textwrap import TextWrapper
from typing import TextIO

import typer

from orchestrator.logs.visible import visible

# Code, the caret below it, frames of a traceback, and commands to copy: all are indented.
_WHOLE = re.compile(r"[ \t]")
_QUOTED = re.compile(r"`[^`\n]+`")  # a command in prose
_KEPT = "\0"  # for a blank that is no place to fold; `visible` leaves none in a text
_LEAST_WIDTH = 20


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal; None for anything else, which gets whole lines."""
    if not stream.isatty():
        return None
    if (columns := os.environ.get("COLUMNS", "")).isdecimal():  # as rich reads it
        return int(columns) or None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None


def folded(text: str, width: int | None, *, indent: int = 0, hang: int | None = None) -> str:
    """The text with its lines of prose folded between words, and indented: those after a fold by `hang`.

    Indented lines stay whole, as do paths and commands in backticks that are longer than the terminal.
    """
    margin = " " * indent
    if width is None:
        return "\n".join(margin + line for line in text.split("\n"))
    wrapper = TextWrapper(
        width=max(width, _LEAST_WIDTH),
        initial_indent=margin,
        subsequent_indent=margin if hang is None else " " * hang,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    lines = list[str]()
    for line in text.split("\n"):
        if len(line) + indent <= width or _WHOLE.match(line):
            lines.append(margin + line)
        else:
            kept = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", _KEPT), line)
            lines += [part.replace(_KEPT, " ") for part in wrapper.wrap(kept)]
    return "\n".join(lines)


def say(words: str) -> None:
    """Write prose to stderr, without rich, which is slow to load."""
    typer.echo(folded(visible(words), width_of(sys.stderr)), err=True)
