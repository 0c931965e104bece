"""Reading JSON, YAML and text of users: no value changes its text, and no input is without an end."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from spark_runner.protocol.plain_file import read_plain
from spark_runner.protocol.text import shortened


def read_document(text: str, source: str) -> Any:
    """The value of JSON or YAML text; raises ValueError with position and reason for text that is neither."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError:
        pass  # then it must be YAML
    except RecursionError:
        raise ValueError(f"{source}: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    from orchestrator.model.yaml_reading import read_yaml  # noqa: PLC0415 - lazy: slow to load

    return read_yaml(text, source)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"field {shortened(twice, 100)!r} is given twice")
    return document


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


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
