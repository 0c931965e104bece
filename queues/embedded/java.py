"""The locations of Java, and of the jars that PySpark ships, on this machine."""

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from queues.model.errors import QueueError

MINIMUM_MAJOR = 17
"""The minimum of Spark 4; the ZooKeeper in its jars runs on older versions, the jobs do not."""

VERSION_TIMEOUT_S = 20
"""`java -version` takes 0.1 s; this is enough for a machine that swaps, and bounds a broken wrapper."""

INSTALL_HINT = "install a JDK (Debian/Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"

LONG_RUN = ("-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")
"""Few threads, both compilers. With both, a server that runs for days moves a third more items a second."""

QUICK_START = ("-XX:TieredStopAtLevel=1", *LONG_RUN)
"""The first compiler only: a server serves after 0.75 s instead of 0.95 s, for half the processor time."""


class JavaMissing(QueueError):
    """Java 17 or newer is needed; install a JDK or set JAVA_HOME."""


class JarsMissing(QueueError):
    """The ZooKeeper jar that PySpark ships was not found; install pyspark or set SPARK_HOME."""


@dataclass(frozen=True, slots=True)
class Java:
    """A working Java launcher, and the major version that it printed."""

    path: Path
    major: int


def find_java() -> Java:
    """Find Java in JAVA_HOME, else on PATH.

    Raises JavaMissing if there is none, if it does not run, or if it is older than 17.
    """
    path = _launcher()
    answer = _version_answer(path)
    # "1.8.0_392" up to Java 8, "17.0.15", "21-ea" or "25" since; other lines may surround it.
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    if match is None:
        first = answer.strip().partition("\n")[0]
        raise JavaMissing(
            f"Java {MINIMUM_MAJOR} or newer is needed, {path} printed no version ({first!r}); {INSTALL_HINT}"
        )
    major = int(match[1])
    if major < MINIMUM_MAJOR:
        raise JavaMissing(
            f"Java {MINIMUM_MAJOR} or newer is needed and version {major} was found at {path}; {INSTALL_HINT}"
        )
    return Java(path, major)


def find_jars() -> Path:
    """Find the folder of Spark's jars: below SPARK_HOME, else below the installed pyspark package.

    pyspark is located but not imported. Raises JarsMissing if there is no ZooKeeper in the folder.
    """
    if home := os.environ.get("SPARK_HOME"):
        jars, origin = Path(home) / "jars", "SPARK_HOME"
    else:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or spec.origin is None:
            raise JarsMissing("pyspark is not installed and SPARK_HOME is not set; pip install pyspark")
        jars, origin = Path(spec.origin).parent / "jars", "the installed pyspark"
    if not any(jars.glob("zookeeper-[0-9]*.jar")):
        raise JarsMissing(f"there is no zookeeper-*.jar in {jars} (from {origin}); pip install pyspark")
    return jars.absolute()


def _launcher() -> Path:
    if home := os.environ.get("JAVA_HOME"):
        path = Path(home) / "bin" / "java"
        if not os.access(path, os.X_OK):
            raise JavaMissing(
                f"Java {MINIMUM_MAJOR} or newer is needed and {path} (JAVA_HOME) does not run; {INSTALL_HINT}"
            )
        return path.absolute()
    found = shutil.which("java")
    if found is None:
        raise JavaMissing(f"Java {MINIMUM_MAJOR} or newer is needed and none was found; {INSTALL_HINT}")
    return Path(found).absolute()


def _version_answer(path: Path) -> str:
    try:
        done = subprocess.run(
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # Java prints its version on stderr
            start_new_session=True,  # a terminal's Ctrl-C must not kill Java, which would then look broken
            timeout=VERSION_TIMEOUT_S,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"{path} cannot be run ({error}); {INSTALL_HINT}") from error
    if done.returncode != 0:
        said = done.stdout.strip().partition("\n")[0]
        raise JavaMissing(
            f"{path} -version ended with exit code {done.returncode} ({said!r}); {INSTALL_HINT}"
        )
    return done.stdout
