"""Gives a driver's JVM the options to load an archive of classes; no driver depends on one."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from queues import is_ours
from spark_runner.runners.class_archive.maker import LOOK_SECONDS, ArchiveMaker, host_is_idle
from spark_runner.runners.class_archive.store import ArchiveStore, fit_of
from spark_runner.runners.run_directory import RunDirectory

log = logging.getLogger(__name__)

_CRASHES = {128 + 6, 128 + 7, 128 + 11}  # ABRT, BUS, SEGV: a crash of the JVM itself
_MAX_REMEMBERED = 200  # drivers that run with an archive
# The JVM ignores an unfit archive silently: a message does not belong in the job's output.
_QUIET = ("-Xshare:auto", "-Xlog:cds*=off", "-Xlog:class+path*=off")


class ClassArchives:
    """The archives of one cache directory, for the drivers of this host. Thread-safe.

    With `make=False` it uses existing archives and makes none.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        make: bool = True,
        is_idle: Callable[[Path], bool] = host_is_idle,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._conf_dir = cache_dir.absolute() / "spark-conf"
        self.store = ArchiveStore(cache_dir.absolute() / "class-archives")
        self.maker = ArchiveMaker(self.store, self._conf_dir, is_idle=is_idle, look_seconds=look_seconds)
        self._make = make
        self._used: deque[tuple[RunDirectory, str]] = deque(maxlen=_MAX_REMEMBERED)
        self._crashed: set[str] = set()
        self._guard = threading.Lock()

    def conf_dir(self, otherwise: Path) -> Path:
        """The empty SPARK_CONF_DIR that all drivers of this cache share; `otherwise` if it is not usable.

        It is the first part of the class path, which must be equal for all drivers with one archive.
        """
        try:
            self._conf_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._conf_dir.mkdir(mode=0o500, exist_ok=True)  # read-only against accidental writes
            is_usable = is_ours(self._conf_dir.lstat()) and not any(self._conf_dir.iterdir())
        except OSError:
            is_usable = False
        return self._conf_dir if is_usable else otherwise

    def options(
        self,
        directory: RunDirectory,
        environment: Mapping[str, str],
        conf: Mapping[str, str],
        chosen: Sequence[str] | None,
    ) -> list[str]:
        """The archive's options for a driver's JVM that has the options `chosen`; none without an archive."""
        try:
            self._look_for_crashes()
            if environment.get("SPARK_CONF_DIR") != str(self._conf_dir):
                return []
            fit = fit_of(environment, conf, chosen, self._conf_dir)
            if fit is None or fit.key in self._crashed:
                return []
            archive = self.store.find(fit.key)
            if archive is None:
                if self._make:
                    self.maker.request(fit)
                return []
        except Exception as error:  # noqa: BLE001 - no fault of the cache may prevent a driver's start
            log.info("no class archive for this driver: %s", error)
            return []
        with self._guard:
            self._used.append((directory, fit.key))
        return [f"-XX:SharedArchiveFile={archive}", *_QUIET]

    def existing(
        self, environment: Mapping[str, str], conf: Mapping[str, str], chosen: Sequence[str] | None
    ) -> list[str]:
        """The options to load an archive that exists, for a JVM that is no driver of a job; never raises."""
        try:
            fit = fit_of(environment, conf, chosen, self._conf_dir)
            archive = None if fit is None else self.store.find(fit.key)
        except Exception as error:  # noqa: BLE001 - as in `options`
            log.info("no class archive for this Spark: %s", error)
            return []
        return [] if archive is None else [f"-XX:SharedArchiveFile={archive}", *_QUIET]

    def close(self) -> None:
        """End the archive that is being made."""
        self.maker.stop()

    def _look_for_crashes(self) -> None:
        """Remove each archive with which a JVM has crashed; one crash is enough, whatever its cause."""
        with self._guard:
            used = list(self._used)
        for entry in used:
            directory, key = entry
            code = directory.exit_code()
            if code is None and directory.path.exists():
                continue
            with self._guard:
                if entry in self._used:
                    self._used.remove(entry)
            if code in _CRASHES and directory.outcome() is None and key not in self._crashed:
                self._crashed.add(key)
                log.warning(
                    "a driver with a class archive crashed (exit code %d): removing the archive", code
                )
                self.store.remove(key)
