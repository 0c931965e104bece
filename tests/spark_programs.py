"""Programs with a Spark session of their own, such as drivers that kill themselves."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_runner.runners.spark_settings import LAUNCHER_FLAGS
from tests.class_archive import session_environment

_NEVER = "1000000"  # the number of the micro-batch in which the driver would end by itself


def program_environment() -> dict[str, str]:
    """The environment of such a program: its JVMs start quickly, with the class archive if there is one."""
    return {**os.environ, "SPARK_LAUNCHER_OPTS": " ".join(LAUNCHER_FLAGS), **session_environment()}


def start_stream_driver(
    script: str,
    folder: Path,
    jars: Sequence[Path] = (),
    log: Path | None = None,
    *,
    master: str = "local[2]",
    conf: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """A driver in a process group of its own that runs a script to its end, unless someone kills it."""
    environment = {**program_environment(), "PYSPARK_PYTHON": sys.executable, "MASTER": master}
    given = ["--jars", ",".join(map(str, jars))] if jars else []
    for name, value in (conf or {}).items():
        given += ["--conf", f"{name}={value}"]
    if given:
        environment["PYSPARK_SUBMIT_ARGS"] = shlex.join([*given, "pyspark-shell"])
    with (log or Path(os.devnull)).open("ab") as output:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.stream_driver", str(folder), _NEVER, "never"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output if log else None,
            stderr=output if log else None,
            start_new_session=True,
        )
    assert driver.stdin is not None
    driver.stdin.write(script.encode())
    driver.stdin.close()
    return driver
