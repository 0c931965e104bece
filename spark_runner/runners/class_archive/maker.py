"""Makes class archives in the background, on an idle host, one at a time."""

import logging
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from spark_runner.protocol.control_groups import usable_processors, waited_percent
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.proc import host_memory
from spark_runner.runners.base import RunState, SubmitRequest
from spark_runner.runners.class_archive.store import ArchiveStore, Fit
from spark_runner.runners.installation import SparkInstallation
from spark_runner.runners.launch import launch_driver
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.sql.sample import compiled_sample

_MAX_WAITED_PERCENT = 10.0  # of the last ten seconds in which some process waited for a processor
_MAX_LOAD = 0.5  # per processor; for kernels that do not report the above
LEAST_MEMORY = 2 << 30  # bytes; the driver itself takes about 1 GiB
LEAST_DISK = 1 << 30  # bytes; for the archive and the files of the sample job


def host_is_idle(directory: Path) -> bool:
    """Whether processors, memory and the disk of `directory` have spare capacity; raises OSError."""
    try:
        available, _ = host_memory()
    except ValueError:  # a kernel that does not report it
        return False
    if available < LEAST_MEMORY or shutil.disk_usage(directory).free < LEAST_DISK:
        return False
    waited = waited_percent("cpu")
    if waited is not None:
        return waited <= _MAX_WAITED_PERCENT
    return os.getloadavg()[0] <= _MAX_LOAD * usable_processors()


log = logging.getLogger(__name__)

_SAMPLE = (
    Path(__file__).parents[2] / "driver" / "class_sample.py"
)  # never imported here: a worker loads no pyspark
LOOK_SECONDS = 15.0  # between two checks whether the host is idle
_POLL_SECONDS = 0.2
_RUN_SECONDS = 600.0  # a minute on an idle host with two processors; a run that takes so much longer hangs
# The dump itself needs no second compiler, independent of the drivers that will use the archive.
_DUMP_FLAGS = ("-XX:TieredStopAtLevel=1",)
# The flags hold the options that `fit_of` counts; additions at the end of the class path must not be dumped.
_NEUTRAL = dict.fromkeys(
    (
        "SPARK_SUBMIT_OPTS",
        "JDK_JAVA_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "HADOOP_CONF_DIR",
        "YARN_CONF_DIR",
        "SPARK_DIST_CLASSPATH",
    ),
    "",
)


class ArchiveMaker:
    """Tries once to make each requested archive, and only logs a failure."""

    def __init__(
        self,
        store: ArchiveStore,
        conf_dir: Path,
        *,
        is_idle: Callable[[Path], bool] = host_is_idle,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._store, self._conf_dir = store, conf_dir
        self._is_idle, self._look_seconds = is_idle, look_seconds
        self._wanted: dict[str, Fit] = {}
        self._tried: set[str] = set()
        self._guard = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def request(self, fit: Fit) -> None:
        """Request this archive, to be made when the host is idle."""
        with self._guard:
            if fit.key in self._tried or self._stopping.is_set():
                return
            self._wanted[fit.key] = fit
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="class-archives", daemon=True)
                self._thread.start()

    def is_busy(self) -> bool:
        """Whether a requested archive is still to be made."""
        with self._guard:
            return bool(self._wanted)

    def stop(self, timeout: float | None = None) -> None:
        """Make no further archive, and end the one that is being made."""
        self._stopping.set()
        with self._guard:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def make(self, fit: Fit) -> None:
        """Make an archive now; the caller holds the lock of the store.

        Raises OSError, ValueError, SparkRunnerError.
        """
        # Owned: when this process ends for any reason, the shim ends the driver and all its children.
        submits = SparkSubmits(self._store.making, owned=True, spark_submit=_niced(fit))
        try:
            self._store.making.mkdir(mode=0o700, exist_ok=True)
            made = self._store.making / f"{fit.key}.jsa"
            self._run(submits, fit, [*_DUMP_FLAGS, f"-XX:ArchiveClassesAtExit={made}"])
            # The test: a driver runs the whole sample with the new archive, or does not start.
            self._run(submits, fit, [*_DUMP_FLAGS, f"-XX:SharedArchiveFile={made}", "-Xshare:on"])
            self._store.publish(fit.key, made, fit.spark_home)
        finally:
            submits.close()
            self._store.tidy()

    def try_to_make(self, fit: Fit) -> bool:
        """Make an archive if the host is idle and the lock is free; False otherwise. Never raises."""
        try:
            with self._store.locked() as is_mine:
                if not is_mine or not self._is_idle(self._store.directory):
                    return False
                if self._store.find(fit.key) is None:
                    began = time.monotonic()
                    self.make(fit)
                    log.info(
                        "made a class archive in %.0f s: drivers start sooner from now on",
                        time.monotonic() - began,
                    )
        except Exception as error:  # noqa: BLE001 - a full disk, a failed driver: it must not affect jobs
            if not self._stopping.is_set():
                log.info("no class archive, drivers start as before: %s", error)
        return True

    def _work(self) -> None:
        while not self._stopping.wait(self._look_seconds):
            with self._guard:
                if not self._wanted:
                    self._thread = None
                    return
                fit = next(iter(self._wanted.values()))
            if self.try_to_make(fit):
                with self._guard:
                    self._tried.add(fit.key)
                    del self._wanted[fit.key]

    def _run(self, submits: SparkSubmits, fit: Fit, options: Sequence[str]) -> None:
        request = SubmitRequest(
            f"class-archive-{fit.key}",
            uuid.uuid4().hex,
            "class archive",
            {"sample": compiled_sample()},
            environment={"JAVA_HOME": fit.java_home, **_NEUTRAL},
            spark=SparkInstallation(fit.spark_home, "", fit.python),
        )
        submits.start(
            request,
            lambda directory: launch_driver(
                request,
                directory,
                driver_main=_SAMPLE,
                conf_dir=self._conf_dir,
                java_options=[*fit.flags, *options],
            ),
        )
        deadline = time.monotonic() + _RUN_SECONDS
        try:
            while (found := submits.find(request.run)[-1]).state is RunState.RUNNING:
                if self._stopping.wait(_POLL_SECONDS) or time.monotonic() > deadline:
                    raise SparkRunnerError(f"{request.run} was ended early")
            if found.exit_code != 0:
                raise SparkRunnerError(f"{request.run} ended with exit code {found.exit_code} {found.detail}")
        finally:
            submits.kill(request.run, grace_seconds=0)


def _niced(fit: Fit) -> list[str]:
    return ["nice", "-n", "19", str(Path(fit.spark_home, "bin", "spark-submit"))]
