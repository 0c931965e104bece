"""The last lines that a program wrote to stderr: what it says before it ends with an exit code."""

import os
import re
import sys
from pathlib import Path

from spark_runner.protocol.plain_file import open_plain

_STDERR = Path("/proc/self/fd/2")  # of the program and its children; a pipe, as in a pod, cannot be read back
_MAX_BYTES = 16 * 1024
_MAX_LINES = 5
_OF_SPARK = re.compile(rb'\{"@timestamp":"[^"]{1,40}","log\.level":"[A-Z]{1,9}","log\.logger":.*')
"""An event in the layout of `spark_log`: on a cluster, Spark shares the stderr of the program."""


class LastWords:
    """Reads the stderr of this process from its own log, without what Spark wrote to it."""

    def __init__(self) -> None:
        self._start = _size()

    def lines(self) -> list[str]:
        """The last lines since this object was made; none if stderr is not a file that can be read."""
        try:
            sys.stderr.flush()
            with os.fdopen(open_plain(_STDERR), "rb") as log:
                size = os.fstat(log.fileno()).st_size
                first = self._start if size >= self._start else 0  # the log was cut meanwhile
                start = max(first, size - _MAX_BYTES)
                log.seek(start)
                found = log.read(_MAX_BYTES)
        except (OSError, ValueError, AttributeError):  # the program may have closed or replaced it
            return []
        rows = found.splitlines()
        if start > first:
            rows = rows[1:]  # half a line may hold half a secret
        texts = [_OF_SPARK.sub(b"", row).decode("utf-8", "replace").rstrip() for row in rows]
        return [text for text in texts if text.strip()][-_MAX_LINES:]


def _size() -> int:
    try:
        return _STDERR.stat().st_size
    except OSError:
        return 0
