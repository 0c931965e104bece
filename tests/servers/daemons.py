"""Server programs in Java for tests: their jars from Maven Central, and their processes."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from spark_runner.shim import shim
from tests.jobs_support import ENVIRONMENT_MARK
from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable

FETCH_TIMEOUT_S = 240
END_TIMEOUT_S = 30


class JavaDaemon:
    """One daemon under a shim: it and its children end with this process, however it ends."""

    def __init__(self, folder: Path, name: str, command: Sequence[str], grace: Sequence[str] = ()) -> None:
        self._folder = folder / name
        self._folder.mkdir(parents=True)
        self._command, self._grace = command, grace
        self._owner, owned = os.pipe()
        self._owner_end = owned
        self._shim: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; deletes the files of an earlier start."""
        for name in ("shim.json", "exit.json"):
            (self._folder / name).unlink(missing_ok=True)
        script = [sys.executable, "-I", "-S", str(Path(shim.__file__).absolute()), str(self._folder)]
        self._shim = subprocess.Popen(
            [*script, "--owner-fd", str(self._owner), *self._grace, "--", *self._command],
            cwd=self._folder,
            # It outlives the first test that uses it.
            env={name: os.environ[name] for name in os.environ if name != ENVIRONMENT_MARK},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[self._owner],
        )

    def has_ended(self) -> bool:
        """Whether it has ended for any reason."""
        return self._shim is None or self._shim.poll() is not None

    def last_words(self) -> str:
        """The end of its output."""
        return "\n".join(
            path.read_text("utf-8", errors="replace")[-2000:] for path in self._folder.glob("*.log")
        )

    def stop(self) -> None:
        """Stop it in order, with its children."""
        if self._shim is not None:
            self._shim.terminate()
            self._shim.wait(END_TIMEOUT_S)

    def cut_power(self) -> None:
        """Kill it and its children at once, without messages to other daemons, as when its machine fails."""
        assert self._shim is not None
        for process in psutil.Process(self._shim.pid).children(recursive=True):  # the daemon is the first
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        self._shim.wait(END_TIMEOUT_S)

    def close(self) -> None:
        """Stop it for good."""
        self.stop()
        os.close(self._owner)
        os.close(self._owner_end)


def fetched_jars(
    name: str, artifacts: Mapping[str, str], what: str, *, as_repository: bool = False, without: str = ""
) -> Path:
    """The folder `name` of the cache with these artifacts (group:artifact -> version) and what they need.

    They are fetched once for all checkouts of this machine. `what` is missing without them. `as_repository`:
    the folder is a repository of Maven, with their descriptions. `without`: an artifact that is left out.
    """
    if shutil.which("mvn") is None:
        unavailable(f"no {what}: there is no mvn")
    return cached(name, lambda folder: _fetch(folder, artifacts, what, as_repository, without))


def _fetch(folder: Path, artifacts: Mapping[str, str], what: str, as_repository: bool, without: str) -> None:
    left_out = (
        "<exclusions><exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion></exclusions>".format(
            *without.split(":")
        )
        if without
        else ""
    )
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>".format(
            *artifact.split(":"), artifacts[artifact], left_out
        )
        for artifact in artifacts
    )
    pom = folder / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tests</groupId><artifactId>servers</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>",
        "utf-8",
    )
    command = ["mvn", "-q", "-B", "--strict-checksums", "-f", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder / 'jars' if as_repository else folder}"]
    if as_repository:
        command += [f"-Dmaven.repo.local={folder}"]
    try:
        subprocess.run(
            command, check=True, cwd=folder, timeout=FETCH_TIMEOUT_S, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        unavailable(f"no {what}: its jars were not fetched within {FETCH_TIMEOUT_S} s")
    except subprocess.CalledProcessError as error:
        unavailable(f"no {what}: its jars were not fetched: {error.stdout[-2000:]}")
