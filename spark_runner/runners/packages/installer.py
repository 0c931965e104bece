"""Installs environments in the background, so that no handler of jobs waits for pip."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from loguru import logger

from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.packages.environment import Environment, Wanted
from spark_runner.runners.packages.store import EnvironmentStore, note_use

_FAILED_SECONDS = 10.0  # an error is that of all jobs that ask within this time; then pip tries again
_PARALLEL = 2  # installations at once: they use the disk and the network of the drivers
_MOST_ASKED = 1_000  # environments that are remembered: a worker runs for months


@dataclass(slots=True)
class _Asked:
    """What is known of one environment."""

    ready: Environment | None = None
    error: SubmissionError | None = None
    failed_at: float = 0.0
    is_running: bool = False


class Installer:
    """Answers at once whether an environment is installed; installs it if not. Thread-safe."""

    def __init__(self, store: EnvironmentStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._guard = threading.Lock()
        self._queue = deque[Wanted]()
        self._threads = 0
        self._asked: dict[Wanted, _Asked] = {}  # the one asked for last is the last
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each installation, also a failed one."""
        self._listeners.append(listener)

    def ready(self, wanted: Wanted) -> Environment | None:
        """The environment; None while it is being installed, which this call may start.

        Raises RefusedSubmission where no try can succeed, SubmissionError where a later one may.
        """
        with self._guard:
            asked = self._asked.pop(wanted) if wanted in self._asked else _Asked()
            self._asked[wanted] = asked
            if (found := asked.ready) is not None:
                if _is_usable(found, wanted):
                    return found
                asked.ready = None  # it was removed: unused for a long time, or by an operator
            if asked.error is not None:
                if self._clock() - asked.failed_at < _FAILED_SECONDS:
                    raise type(asked.error)(str(asked.error)) from asked.error
                asked.error = None
            if not asked.is_running:
                asked.is_running = True
                self._queue.append(wanted)
                if self._threads < _PARALLEL:
                    self._threads += 1
                    threading.Thread(target=self._install_queued, name="packages", daemon=True).start()
            return None

    def is_settled(self, wanted: Wanted) -> bool:
        """Whether `ready` would return an environment or raise."""
        with self._guard:
            asked = self._asked.get(wanted)
            return asked is None or not asked.is_running

    def _install_queued(self) -> None:
        while True:
            with self._guard:
                if not self._queue:
                    self._threads -= 1
                    return
                wanted = self._queue.popleft()
            self._install(wanted)

    def _install(self, wanted: Wanted) -> None:
        ready, error = None, None
        try:
            ready = self._store.environment(wanted)
        except SubmissionError as failed:
            error = failed
        except Exception as failed:  # noqa: BLE001 - a thread that ends silently would leave its jobs waiting
            logger.exception("packages could not be installed")
            error = SubmissionError(f"its packages could not be installed: {type(failed).__name__}: {failed}")
        with self._guard:
            asked = self._asked[wanted]
            asked.ready, asked.error, asked.is_running = ready, _plain(error), False
            asked.failed_at = self._clock()
            self._forget_one()
        with logger.catch(message="a listener of installations has failed"):
            for listener in self._listeners:
                listener()

    def _forget_one(self) -> None:
        """Beyond the limit, forget what no job has asked for longest: the store still has it."""
        if len(self._asked) > _MOST_ASKED:
            settled = (wanted for wanted, asked in self._asked.items() if not asked.is_running)
            del self._asked[next(settled)]


def _plain(error: SubmissionError | None) -> SubmissionError | None:
    """The error without the classes of single tools."""
    if error is None:
        return None
    kind = RefusedSubmission if isinstance(error, RefusedSubmission) else SubmissionError
    return kind(str(error))


def _is_usable(found: Environment, wanted: Wanted) -> bool:
    try:
        if not found.folder.is_dir() or (wanted.packed and not found.archive.is_file()):
            return False
        note_use(found)
    except OSError:
        return False
    return True
