"""Another Python process that owns servers, for tests of its end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def owner_process(program: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run `program` with the argument `folder`; kill it at the end of the context."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
