"""One scripted driver: a script, under the attempt protocol of `spark_runner.driver.attempt_holder`."""

import contextlib
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from queues.model.codec import timestamp
from queues.model.errors import Conflict, QueueError, SessionLost
from queues.model.operations import Check, Create, Delete, Operation, Set
from queues.session import Session
from queues.store.commit import commit
from spark_runner.protocol import exit_codes
from spark_runner.protocol.attempt import VERSION_STARTED, Attempt, AttemptState
from spark_runner.runners.base import RunState
from tests.scripted.ledger import Ledger
from tests.scripted.store import StoredSubmission

_BEAT_SECONDS = 2.0  # as in the real one: interval of the check for orders without a watch event
_FILE_LOOK_SECONDS = 0.02


class _Ended(BaseException):
    """Ends the driver with this exit code (None: without one); no `except Exception` catches it."""

    def __init__(self, code: int | None, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


class _OutOfMemory(Exception):
    """An error of class `memory`; its argument is what was short."""


@dataclass(slots=True)
class ScriptedDriver:
    """Runs in its own thread, on a shared session.

    `in_user_code` is entered while the script runs. `compares`: False runs without checking the attempt.
    """

    session: Session
    stored: StoredSubmission
    ledger: Ledger
    in_user_code: Callable[[str, str], AbstractContextManager[None]]  # pool, name
    compares: bool = True
    wake: threading.Event = field(default_factory=threading.Event)
    _generation: int = 0
    _request: dict[str, Any] = field(default_factory=dict)
    _metrics: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """Run from start to end, and record the end."""
        self._request = self.stored.request() or {}
        self._generation = self.session.generation
        outcome: dict[str, Any] | None = None
        try:
            self._obey_backend()
            self._take()
            outcome = self._run_script()
            self.stored.set_state(RunState.RUNNING, outcome=outcome)  # beside its logs
            self._end(outcome)
            ended = _Ended(outcome["exit_code"])
        except _Ended as end:
            ended = end
        state = RunState.GONE if ended.code is None else RunState.EXITED
        self.stored.set_state(state, exit_code=ended.code, detail=ended.detail, outcome=outcome)
        self._leave_zookeeper()

    # ------------------------------------------------------------------ take and end
    def _take(self) -> None:
        try:
            attempt = self._read()
            if not self.compares:
                commit(self.session, [Set(self._path, self._started(attempt).data, -1)])
                return
            if attempt.state is AttemptState.INTENT:
                with contextlib.suppress(Conflict):
                    commit(self.session, [self._started(attempt), Create(attempt.alive, ephemeral=True)])
                attempt = self._read()
        except QueueError as error:
            raise _Ended(exit_codes.NO_CONTACT, str(error)) from error
        self._check_mine(attempt)

    def _started(self, attempt: Attempt) -> Set:
        facts = {"incarnation": self.stored.incarnation, "started": timestamp(), "application_id": "scripted"}
        return attempt.advance(AttemptState.STARTED, **facts)

    def _end(self, outcome: dict[str, Any]) -> None:
        state, deadline = AttemptState(outcome["state"]), time.monotonic() + self._lease
        facts = {key: value for key, value in outcome.items() if key != "state"}
        while time.monotonic() < deadline:
            self._obey_backend()
            try:
                attempt = self._read()
                if attempt.state is state and attempt.incarnation == self.stored.incarnation:
                    return  # applied before; its reply was lost
                self._check_mine(attempt)
                self._close(attempt.advance(state, ended=timestamp(), **facts))
            except Conflict:
                continue
            except QueueError:
                self._wait(_BEAT_SECONDS / 4)
            else:
                return

    def _close(self, change: Set) -> None:
        alive: list[Operation] = []
        if self.session.exists(self._alive) is not None:
            alive.append(Delete(self._alive))
        commit(self.session, [change, *alive])

    def _leave_zookeeper(self) -> None:
        """Delete the ephemeral, as the end of a real driver's session does; this session is shared."""
        while True:
            try:
                stat = self.session.exists(self._alive)
                if stat is not None and stat.owner == self.session.id:
                    commit(self.session, [Delete(self._alive)])
            except Conflict:
                continue
            except SessionLost:
                return  # the backend closes
            except QueueError:
                time.sleep(_BEAT_SECONDS / 4)
                continue
            return

    # ------------------------------------------------------------------ orders
    def _obey_backend(self) -> None:
        if self.stored.is_killed:
            raise _Ended(exit_codes.KILLED)

    def _obey(self) -> None:
        """Check all orders, as the guard of the real driver does."""
        self._obey_backend()
        away = self.session.seconds_without_contact()
        if away > self._lease:
            raise _Ended(exit_codes.NO_CONTACT, "no contact with ZooKeeper for its lease")
        if away or not self.compares:
            return
        try:
            self._obey_zookeeper()
        except QueueError:
            return  # unreachable, or a concurrent change: checked again at the next beat

    def _obey_zookeeper(self) -> None:
        attempt = self._read()
        self._check_mine(attempt)
        stop = self.session.get(self._request["plan"]["stop_path"], self.wake.set)
        if stop is not None and attempt.run_key.encode() in stop[0]:
            self._close(attempt.advance(AttemptState.KILLED, ended=timestamp()))
            raise _Ended(exit_codes.KILLED, "asked to stop")
        if self._generation != self.session.generation:
            generation = self.session.generation
            if self.session.exists(self._alive) is None:
                commit(
                    self.session, [Check(self._path, VERSION_STARTED), Create(self._alive, ephemeral=True)]
                )
            self._generation = generation

    def _check_mine(self, attempt: Attempt) -> None:
        if attempt.state is not AttemptState.STARTED or attempt.incarnation != self.stored.incarnation:
            raise _Ended(exit_codes.SUPERSEDED, f"the attempt {attempt.run} is {attempt.state}")

    def _read(self) -> Attempt:
        attempt = Attempt.read(self.session, self._path, self.wake.set)
        if attempt is None or attempt.run_key != self._request["plan"]["run_key"]:
            raise _Ended(exit_codes.SUPERSEDED, f"{self._path} is gone")
        return attempt

    @property
    def _path(self) -> str:
        return str(self._request["plan"]["attempt_path"])

    @property
    def _alive(self) -> str:
        return f"{self._path}/alive"

    @property
    def _lease(self) -> float:
        return float(self._request["plan"]["lease_seconds"])

    # ------------------------------------------------------------------ the script
    def _run_script(self) -> dict[str, Any]:
        plan, name = self._request["plan"], str(self._request["name"])
        pool = plan["stop_path"].split("/")[-2]
        try:
            with self.in_user_code(pool, name):
                self.ledger.add("start", self.stored.run, self.stored.incarnation, pool=pool, name=name)
                exec(_program(plan), self._functions())  # noqa: S102 - the script of a test
        except _OutOfMemory as error:
            said = {"class": "memory", "message": "OutOfMemoryError", "short_of": error.args[0]}
            return {"state": "failed", "exit_code": 1, "error": said, **self._measured()}
        except Exception as error:  # noqa: BLE001 - any exception is the outcome of user code
            said = {"class": "user", "type": type(error).__name__, "message": str(error)}
            return {"state": "failed", "exit_code": 1, "error": said, **self._measured()}
        return {"state": "succeeded", "exit_code": 0, "tables": [], **self._measured()}

    def _measured(self) -> dict[str, Any]:
        """What a driver reports of itself, with the settings in effect; nothing without `measure`."""
        if not self._metrics:
            return {}
        return {"metrics": {"settings": self._request["conf"], **self._metrics}}

    def _functions(self) -> dict[str, Any]:
        return {
            "attempt": int(self.stored.run.rpartition("-")[2]),
            "sleep": self._wait,
            "until": lambda path: self._wait(3600, Path(path).exists),
            "fail": _fail,
            "leave": _leave,
            "vanish": lambda: _leave(None),
            "hang": lambda: self._wait(3600),
            "say": self._say,
            "measure": self._metrics.update,
            "run_out": _run_out,
        }

    def _wait(self, seconds: float, is_over: Callable[[], bool] | None = None) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.wake.clear()
            self._obey()
            beat = time.monotonic() + min(left, _BEAT_SECONDS)
            while (rest := beat - time.monotonic()) > 0:
                if is_over is not None and is_over():
                    return
                if self.wake.wait(rest if is_over is None else min(rest, _FILE_LOOK_SECONDS)):
                    break

    def _say(self, words: str) -> None:
        with self.stored.stdout.open("a", encoding="utf-8") as log:
            log.write(f"{words}\n")


def _program(plan: dict[str, Any]) -> str:
    """The Python text of the job; that of a SQL script is its first line, a comment."""
    if "python" in plan:
        return str(plan["python"]["text"])
    return str(plan["sql"]["source"]).partition("\n")[0].removeprefix("-- ")


def _fail(message: str) -> NoReturn:
    raise RuntimeError(message)


def _run_out(short_of: object) -> NoReturn:
    raise _OutOfMemory(short_of)


def _leave(code: int | None) -> NoReturn:
    raise _Ended(code)
