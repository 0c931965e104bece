"""A real history server of Spark on loopback, from the jars of the pip package."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queues.embedded.guarded import GuardedProcess
from queues.embedded.java import JarsMissing, JavaMissing, find_jars, find_java
from queues.embedded.ports import free_ports
from tests.servers.standalone import HOST, QUICK_START
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

_CLASS = "org.apache.spark.deploy.history.HistoryServer"
_START_S = 90
_MODULES = (  # as Spark's own scripts open them
    *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.io", "java.base/java.net"),
    *("java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent", "java.base/sun.nio.ch"),
)


@dataclass(frozen=True)
class HistoryServer:
    """A server whose pages show the applications of one folder of event logs."""

    url: str

    def applications(self) -> dict[str, dict[str, Any]]:
        """The ended applications that it has read, by id, with their last attempt."""
        page = f"{self.url}/api/v1/applications?status=completed"
        try:
            with urllib.request.urlopen(page, timeout=10) as answer:  # noqa: S310 - our own server
                found = json.load(answer)
        except (OSError, ValueError):
            return {}
        return {each["id"]: each["attempts"][0] for each in found}

    def page(self, url: str) -> str:
        """The text of one of its pages; raises OSError where there is none."""
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server
            return str(answer.read(), "utf-8")


@contextmanager
def history_server(logs: Path, folder: Path) -> Iterator[HistoryServer]:
    """A server that looks at a folder of logs each second, from when it answers."""
    try:
        java, jars = find_java(), find_jars()
    except (JavaMissing, JarsMissing) as error:
        unavailable(f"no history server of Spark: {error}")
    (port,) = free_ports(HOST, 1)
    properties = {
        "spark.history.fs.logDirectory": logs.as_uri(),
        "spark.history.fs.update.interval": "1s",
        "spark.history.ui.port": port,
        "spark.port.maxRetries": 0,
    }
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *(str(java.path), "-Xmx512m", *QUICK_START.split()),
        *(f"--add-opens={module}=ALL-UNNAMED" for module in _MODULES),
        *(f"-D{name}={value}" for name, value in properties.items()),
        *("-cp", f"{jars}/*", _CLASS),
    ]
    output = folder / "history.log"
    with output.open("wb") as file:
        process = GuardedProcess(command, folder, file, environment={"SPARK_LOCAL_IP": HOST})
    try:
        url = f"http://{HOST}:{port}"
        wait_until(
            lambda: process.exit_code() is not None or _answers(url), _START_S, "the history server answers"
        )
        if process.exit_code() is not None:
            unavailable(
                f"the history server has ended: {output.read_text('utf-8', errors='replace')[-1000:]}"
            )
        yield HistoryServer(url)
    finally:
        process.stop()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
            return True
    except OSError:
        return False
