"""Text that users give by a file or on standard input: never waited for in vain, and never without end."""

import sys
from pathlib import Path

from spark_runner.plain_file import read_plain

MAX_INPUT_BYTES = 768 * 1024
"""Of one file: twice what a definition may have, as YAML takes more room than what it says."""


def read_file(path: Path) -> str:
    """The text of a regular file; raises ValueError for what is none, OSError for what cannot be opened."""
    return _text(read_plain(path, MAX_INPUT_BYTES))


def read_standard_input() -> str:
    """All of it; raises ValueError when it is too long or no text."""
    stream = sys.stdin
    if not hasattr(stream, "buffer"):  # closed, or replaced by a program that calls us
        return stream.read(MAX_INPUT_BYTES + 1) if stream is not None else ""
    return _text(stream.buffer.read(MAX_INPUT_BYTES + 1))


def _text(data: bytes) -> str:
    if len(data) > MAX_INPUT_BYTES:
        message = f"is longer than {MAX_INPUT_BYTES:,} bytes, which is the limit"
        raise ValueError(message)
    try:
        return data.decode("utf-8-sig")  # without the mark that some editors put first
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text ({error.reason} at byte {error.start})"
        raise ValueError(message) from error
