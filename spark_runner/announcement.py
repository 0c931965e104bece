"""What a driver in cluster mode on a standalone cluster leaves in its run directory: who it is, how it ended.

The master tells neither the name nor the exit code of a driver, and the reply to a submission may be lost. So
the driver writes both down itself, where all nodes see it. In other places a shim or the cluster does that.
"""

import os
import re
import socket
import sys
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.logs.files import write_json
from spark_runner import exit_codes
from spark_runner.proc import pid_namespace, stat
from spark_runner.process import RUN_DIR_VARIABLE, current_boot_id
from spark_runner.shim import KILL_REQUEST

DRIVER_FILE = "driver.json"
EXIT_FILE = "exit.json"
_PAGE_VARIABLE = "SPARK_DRIVER_LOG_URL_STDERR"  # a page of the node's worker, set by it
_DRIVER = re.compile(r"driver-\d{14}-\d+")  # how masters name drivers, and workers their folders


def announce() -> None:
    """Write down who this driver is; then end it when somebody has asked for its end before."""
    directory = _directory()
    if directory is None:
        return
    page = urlsplit(os.environ.get(_PAGE_VARIABLE, ""))
    facts = {
        "driver": Path.cwd().name,
        "host": socket.gethostname(),
        "page": f"{page.scheme}://{page.netloc}" if page.netloc else "",
        "pid": os.getpid(),
        "start": stat(os.getpid()).start,
        "boot": current_boot_id(),
        "pid_namespace": pid_namespace(),
    }
    write_json(directory / DRIVER_FILE, facts, durable=True)
    # Looked for after the announcement: who wants it gone writes first and looks second.
    if (directory / KILL_REQUEST).exists():
        leave_exit_code(exit_codes.KILLED)
        sys.exit(exit_codes.KILLED)


def leave_exit_code(code: int) -> None:
    """Write down how this driver is going to end."""
    directory = _directory()
    if directory is not None:
        write_json(directory / EXIT_FILE, {"exit_code": code}, durable=True)


@cache
def _directory() -> Path | None:
    """The run directory, None where nobody needs to be told; asked before user code can change folders."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    return Path(directory) if directory and _DRIVER.fullmatch(Path.cwd().name) else None
