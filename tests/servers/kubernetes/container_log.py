"""The log of a container in the format of runtimes: each line with its time in nanoseconds."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 16 * 1024
"""A longer line is split, as by runtimes."""


def keep_log(output: BinaryIO, path: Path) -> None:
    """Write the output of a container to the log until every process has closed it."""
    with output, path.open("ab", buffering=0) as log:
        while part := output.readline(CHUNK_BYTES):
            kind = "F" if part.endswith(b"\n") else "P"
            log.write(f"{_now()} {kind} ".encode() + part.removesuffix(b"\n") + b"\n")


@dataclass(frozen=True)
class Part:
    """One entry: a line, or a part of a line."""

    at: str
    is_end: bool
    text: bytes

    @property
    def seconds(self) -> float:
        """Time of the entry since the epoch."""
        return datetime.fromisoformat(self.at).timestamp()


def parts(log: BinaryIO) -> Iterator[Part]:
    """All complete entries from the position of the file; it stays at the first incomplete one."""
    while True:
        start = log.tell()
        entry = log.readline()
        if not entry.endswith(b"\n"):
            log.seek(start)
            return
        at, kind, text = entry[:-1].split(b" ", 2)
        yield Part(at.decode(), kind == b"F", text)


def _now() -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"
