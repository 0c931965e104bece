"""Jars of users, compiled for tests."""

import importlib.util
import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.servers.zookeeper import unavailable

_SOURCES = Path(__file__).with_name("java")


def spark_jars() -> Path:
    """The folder of the jars that pyspark brings."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def make_jar(name: str, folder: Path) -> Path:
    """Compile the class of tests/java with this name into a jar of its own."""
    if shutil.which("javac") is None:
        unavailable("no javac: a JDK is needed, not a JRE alone")
    source = _SOURCES / f"{name}.java"
    command = ["javac", "-cp", f"{spark_jars()}/*", "-d", str(folder), str(source)]
    subprocess.run(command, check=True, timeout=120)
    made = folder / f"{name.lower()}.jar"
    with zipfile.ZipFile(made, "w") as archive:
        archive.write(folder / f"{name}.class", f"{name}.class")
    return made
