"""A store that speaks the protocol of S3, for tests: moto, in an environment of its own. Hadoop's client."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import urllib3
from pyspark.sql import SparkSession

from queues.embedded.guarded import GuardedProcess
from queues.embedded.ports import free_ports
from tests.servers.cache import cached
from tests.servers.daemons import fetched_jars
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

_MOTO = "5.2.1"
_SERVER = (f"moto[s3]=={_MOTO}", "flask>=3,<4", "flask-cors>=6,<7")
_SDK = "2.29.52"  # of AWS: that of Hadoop 3.4.2, in parts, as its bundle has 640 MB
_PARTS = ("s3", "s3-transfer-manager", "sts")
_OF_SPARK = ("slf4j-", "commons-", "netty-")
_INSTALL_TIMEOUT_S = 300
_START_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class S3Store:
    """The address of a store."""

    url: str

    def create(self, bucket: str) -> None:
        """Make a bucket."""
        assert urllib3.request("PUT", f"{self.url}/{bucket}").status == 200

    def keys(self, bucket: str) -> list[str]:
        """All objects of a bucket but the marks of folders."""
        page = urllib3.request("GET", f"{self.url}/{bucket}?list-type=2").data
        found = ET.fromstring(page).iter("{http://s3.amazonaws.com/doc/2006-03-01/}Key")  # noqa: S314 - of our server
        return sorted(each.text for each in found if each.text and not each.text.endswith("/"))


@contextmanager
def local_s3() -> Iterator[S3Store]:
    """A store of our own, on loopback."""
    program = cached(f"moto-{_MOTO}", _install) / "bin" / "moto_server"
    (port,) = free_ports("127.0.0.1", 1)
    store = S3Store(f"http://127.0.0.1:{port}")
    with tempfile.TemporaryDirectory(prefix="s3-") as folder:
        command = [str(program.parent / "python"), str(program), "-H", "127.0.0.1", "-p", str(port)]
        with Path(folder, "log").open("ab") as log:
            server = GuardedProcess(command, Path(folder), log)
        try:
            wait_until(lambda: _answers(store), _START_TIMEOUT_S, "the store answers")
            yield store
        finally:
            server.kill()


def add_s3(spark: SparkSession) -> None:
    """Make Hadoop's client known to the JVM of a session."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the class loader
    hadoop = str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    artifacts = {
        "org.apache.hadoop:hadoop-aws": hadoop,
        **{f"software.amazon.awssdk:{part}": _SDK for part in _PARTS},
    }
    folder = fetched_jars(
        f"hadoop-aws-{hadoop}", artifacts, "client of Hadoop for S3", without="software.amazon.awssdk:bundle"
    )
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in sorted(folder.glob("*.jar")):
        if not jar.name.startswith(_OF_SPARK) or "netty-nio-client" in jar.name:
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def _install(folder: Path) -> None:
    # The folder is moved when it is complete: programs are started by the interpreter beside them.
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_INSTALL_TIMEOUT_S)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *_SERVER]
    try:
        subprocess.run(command, check=True, timeout=_INSTALL_TIMEOUT_S, capture_output=True, text=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        unavailable(f"no store of S3: moto was not installed: {error}")


def _answers(store: S3Store) -> bool:
    try:
        return urllib3.request("GET", store.url, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False
