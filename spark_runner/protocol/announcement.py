"""Identity and exit code of a driver in cluster mode on a standalone cluster, in its run directory.

The master reports neither the name nor the exit code of a driver, and the reply to a submission may be lost.
So the driver writes both itself, to a folder that all nodes share. Elsewhere a shim or the cluster does that.
"""

import os
import re
import socket
import sys
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.logs.files import write_json
from spark_runner.protocol import exit_codes
from spark_runner.protocol.proc import pid_namespace, stat
from spark_runner.protocol.process import KILL_REQUEST, RUN_DIR_VARIABLE, current_boot_id

DRIVER_FILE = "driver.json"
EXIT_FILE = "exit.json"
_PAGE_VARIABLE = "SPARK_DRIVER_LOG_URL_STDERR"  # Spark's worker on the node sets it to its own page
_DRIVER = re.compile(r"driver-\d{14}-\d+")  # the name that a master gives a driver, and a worker its folder


def announce() -> None:
    """Write the identity of this driver, then end it if a kill request is there already."""
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
    # A killer writes its request first and looks for the driver second, so the driver looks after it wrote.
    if (directory / KILL_REQUEST).exists():
        record_exit_code(exit_codes.KILLED)
        sys.exit(exit_codes.KILLED)


def record_exit_code(code: int) -> None:
    """Write the exit code with which this driver is about to end."""
    directory = _directory()
    if directory is not None:
        write_json(directory / EXIT_FILE, {"exit_code": code}, durable=True)


@cache
def _directory() -> Path | None:
    """The run directory; None in other places. Called before user code can change the working directory."""
    directory = os.environ.get(RUN_DIR_VARIABLE)
    return Path(directory) if directory and _DRIVER.fullmatch(Path.cwd().name) else None
