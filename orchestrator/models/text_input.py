"""Text from a file or standard input: bounded, and never read from a file that would block."""

import sys
from pathlib import Path

from spark_runner.plain_file import read_plain

MAX_INPUT_BYTES = 768 * 1024
"""The limit of one file: twice that of a definition, as YAML takes more space than its values."""


def read_file(path: Path) -> str:
    """The text of a regular file; raises ValueError for other files, OSError if it cannot be opened."""
    return _text(read_plain(path, MAX_INPUT_BYTES))


def read_standard_input() -> str:
    """The text on standard input; raises ValueError when it is too long or is not text."""
    stream = sys.stdin
    if not hasattr(stream, "buffer"):  # closed, or replaced by a calling program
        return stream.read(MAX_INPUT_BYTES + 1) if stream is not None else ""
    return _text(stream.buffer.read(MAX_INPUT_BYTES + 1))


def _text(data: bytes) -> str:
    if len(data) > MAX_INPUT_BYTES:
        message = f"is longer than {MAX_INPUT_BYTES:,} bytes, which is the limit"
        raise ValueError(message)
    try:
        return data.decode("utf-8-sig")  # without the byte order mark of some editors
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text ({error.reason} at byte {error.start})"
        raise ValueError(message) from error
