"""Programs with a Spark session of their own, such as drivers that kill themselves."""

import os

from spark_runner.runners.spark_settings import LAUNCHER_FLAGS
from tests.class_archive import session_environment


def program_environment() -> dict[str, str]:
    """The environment of such a program: its JVMs start quickly, with the class archive if there is one."""
    return {**os.environ, "SPARK_LAUNCHER_OPTS": " ".join(LAUNCHER_FLAGS), **session_environment()}
