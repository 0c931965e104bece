"""Promises for each input: its error is for the user, of limited length, and safe on a terminal."""

import contextlib
import io
import unicodedata

from orchestrator.cli.exits import explain_error

MAX_MESSAGE = 32 * 1024
"""Characters of an error message: one or two screens of mistakes, a line each."""


class Broken(AssertionError):
    """A promise that does not hold for this input."""


def check_error(error: Exception) -> None:
    """Check that the command line explains this error as one of the user; raises Broken."""
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        explain_error(error, verbose=False)
    message = stderr.getvalue()
    if "unexpected" in message.partition(":")[2][:12]:
        raise Broken(f"not an error for users: {message[:500]!r}") from error
    if len(message) > MAX_MESSAGE:
        raise Broken(f"a message of {len(message):,} characters: {message[:200]!r}") from error
    check_printable(message)


def check_printable(text: str) -> None:
    """Check that the text has no control characters except line ends; raises Broken."""
    text = text.replace("\r\n", "\n")  # line ends of Windows in a script
    for character in text:
        if unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t":
            at = text.index(character)
            raise Broken(f"{character!r} reaches the terminal: {text[max(0, at - 40) : at + 40]!r}")
