"""Runs scripted drivers in threads, independently of the workers that submitted them."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from queues.session import Session, SessionSettings
from spark_runner.protocol import exit_codes
from spark_runner.runners.base import RunState
from tests.scripted.driver import ScriptedDriver
from tests.scripted.store import Store, StoredSubmission
from tests.waiting import wait_until

_LOOK_SECONDS = 0.02


class Backend:
    """The drivers of one directory, on one session with ZooKeeper; a context manager.

    `highest` is the largest number of drivers that ran user code at once, by `pool:<pool>` and `name:<name>`.
    `compares`: False takes out the check that lets only one driver of an attempt run.
    """

    def __init__(
        self, directory: Path, hosts: str, *, session_timeout: float = 4.0, compares: bool = True
    ) -> None:
        self.store = Store(directory)
        self.highest: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._compares = compares
        self._session = Session(SessionSettings(hosts, session_timeout=session_timeout))
        self._guard = threading.Lock()
        self._drivers: dict[StoredSubmission, tuple[ScriptedDriver, threading.Thread]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="scripted-backend", daemon=True)

    def __enter__(self) -> Self:
        self._session.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        living = {stored: having for stored, having in self._drivers.items() if having[1].is_alive()}
        for stored, (driver, _thread) in living.items():
            stored.ask_to_end()
            driver.wake.set()
        self._session.close()
        for _driver, thread in living.values():
            thread.join(30)
            assert not thread.is_alive()

    def running(self) -> list[str]:
        """The runs whose driver has not ended."""
        return [stored.run for stored, (_, thread) in list(self._drivers.items()) if thread.is_alive()]

    def wait_idle(self, seconds: float = 20) -> None:
        """Wait until no driver is left."""
        wait_until(lambda: not self.running(), seconds, "no driver is left")

    def _loop(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            for stored in list(self.store.noted()):
                self.store.seen(stored)  # first: a later note requires another look
                self._look(stored)

    def _look(self, stored: StoredSubmission) -> None:
        if stored.request() is None:  # its submitter has not written it yet, or died before
            if stored.path.exists():  # else it was removed
                self.store.note(stored)
        elif stored in self._drivers:
            self._drivers[stored][0].wake.set()
        elif stored.is_killed:
            stored.set_state(RunState.EXITED, exit_code=exit_codes.KILLED)
        elif self.store.is_full:
            self.store.note(stored)
        else:
            driver = ScriptedDriver(
                self._session, stored, self.store.ledger, self._in_user_code, compares=self._compares
            )
            thread = threading.Thread(target=driver.run, name=f"driver-{stored.run}", daemon=True)
            self._drivers[stored] = (driver, thread)
            thread.start()

    @contextmanager
    def _in_user_code(self, pool: str, name: str) -> Iterator[None]:
        keys = (f"pool:{pool.removesuffix('.low')}", f"name:{name}")
        with self._guard:
            for key in keys:
                self._running[key] += 1
                self.highest[key] = max(self.highest[key], self._running[key])
        try:
            yield
        finally:
            with self._guard:
                for key in keys:
                    self._running[key] -= 1
