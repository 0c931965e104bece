"""What holds for each input: the error is for its user, of a bounded size, and a terminal can show it."""

import contextlib
import io
import unicodedata

from orchestrator.cli.exits import explain_error

MAX_MESSAGE = 32 * 1024
"""Characters of an error message: a screen or two of mistakes, a line each."""


class Broken(AssertionError):
    """A promise that does not hold for this input."""


def check_error(error: Exception) -> None:
    """The command line explains this error as one of its user; raises Broken."""
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        explain_error(error, verbose=False)
    message = stderr.getvalue()
    if "unexpected" in message.partition(":")[2][:12]:
        raise Broken(f"no user understands {message[:500]!r}") from error
    if len(message) > MAX_MESSAGE:
        raise Broken(f"a message of {len(message):,} characters: {message[:200]!r}") from error
    check_printable(message)


def check_printable(text: str) -> None:
    """A terminal shows this text and obeys nothing in it but the ends of lines; raises Broken."""
    text = text.replace("\r\n", "\n")  # of a script with the line ends of Windows
    for character in text:
        if unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t":
            place = text.index(character)
            raise Broken(f"{character!r} reaches the terminal: {text[max(0, place - 40) : place + 40]!r}")
