"""Jars of users, compiled for tests."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import zipfile
import zlib
from pathlib import Path

from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable

_SOURCES = Path(__file__).with_name("java")


def spark_jars() -> Path:
    """The folder of the jars of pyspark."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def make_jar(name: str, folder: Path) -> Path:
    """A jar in this folder with one class of tests/java."""
    compiler = shutil.which("javac")
    if compiler is None:
        unavailable("no javac: a JDK is needed, not a JRE alone")
    source = (_SOURCES / f"{name}.java").read_bytes()
    makes = f"{Path(compiler).resolve()} {importlib.metadata.version('pyspark')}"  # part of the cache key
    file = f"{name.lower()}.jar"
    made = cached(
        f"{file}-{zlib.crc32(makes.encode() + source):08x}", lambda empty: _compile(name, empty / file)
    )
    return Path(shutil.copy(made / file, folder))


def _compile(name: str, jar: Path) -> None:
    classes = jar.with_suffix("")
    command = ["javac", "-cp", f"{spark_jars()}/*", "-d", str(classes), str(_SOURCES / f"{name}.java")]
    subprocess.run(command, check=True, timeout=120)
    with zipfile.ZipFile(jar, "w") as archive:
        (made,) = classes.rglob(f"{name}.class")
        archive.write(made, made.relative_to(classes))
