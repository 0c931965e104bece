"""The Python for which packages are installed: its version and platform."""

import json
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache

from spark_runner.protocol.errors import SubmissionError

_LOOK_SECONDS = 30.0  # a Python starts within 0.1 s; the disk may be a network's
_LOOK = """
import json, sys, sysconfig
print(json.dumps(["%d.%d" % sys.version_info[:2], sysconfig.get_platform()]))
"""


@dataclass(frozen=True, slots=True)
class TargetPython:
    """A Python of this host."""

    path: str
    version: str  # for example 3.11
    platform: str  # for example linux-x86_64

    @property
    def is_own(self) -> bool:
        """Whether it is the Python of this process."""
        return self.path == sys.executable


@cache
def python_at(path: str) -> TargetPython:
    """The Python with this path; starts it unless it is that of this process. Raises SubmissionError."""
    if path == sys.executable:
        return TargetPython(path, f"{sys.version_info[0]}.{sys.version_info[1]}", sysconfig.get_platform())
    try:
        done = subprocess.run(
            [path, "-I", "-c", _LOOK], check=True, capture_output=True, timeout=_LOOK_SECONDS, text=True
        )
        version, platform = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise SubmissionError(f"the Python {path} of the pool does not start: {error}") from error
    return TargetPython(path, version, platform)
