"""Applies a schedule of faults to a set of actors, and records each in the history."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, assert_never

from tests.chaos.damage import Credentials, end_session
from tests.chaos.ensemble_support import Ensemble
from tests.chaos.events import Kind
from tests.chaos.faults import (
    CloseSession,
    Corrupt,
    CutDownstream,
    CutUpstream,
    DropReply,
    Fault,
    KillLeader,
    Refuse,
    Restart,
    RestartServers,
    ShiftClock,
    SigCont,
    SigKill,
    SigStop,
)
from tests.chaos.history import History
from tests.chaos.proxy import FaultProxy
from tests.chaos.schedule import Planned

log = logging.getLogger(__name__)

CLOCK_COMMAND = "clock"
"""`clock <seconds>`: shift the actor's wall clock from the true one."""


class Actor(Protocol):
    """The interface of an actor for the nemesis."""

    @property
    def pid(self) -> int:
        """Id of the current process, or of the last one."""

    @property
    def proxy(self) -> FaultProxy:
        """The only connection of this actor to ZooKeeper."""

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process by its handle; does nothing after its end."""

    def send_command(self, line: str) -> None:
        """Write a line to the stdin of the process."""

    def restart(self) -> None:
        """Start the process again after a kill."""

    def credentials(self) -> Credentials | None:
        """The last session that the process wrote; None before the first."""


class Nemesis:
    """Applies faults in sequence. After `recover` everything runs, whatever failed before."""

    def __init__(
        self,
        actors: Mapping[str, Actor],
        history: History,
        hosts: str,
        *,
        ensemble: Ensemble | None = None,
        spoil: Callable[[int], Sequence[str]] | None = None,
    ) -> None:
        self._actors = actors
        self._history = history
        self._hosts = hosts  # servers, not proxies
        self._ensemble = ensemble
        self._spoil = spoil
        self._stopped: set[str] = set()
        self._killed: set[str] = set()
        self.applied = 0
        self.failures: list[str] = []

    def run(self, schedule: Sequence[Planned], stop: threading.Event) -> None:
        """Apply each fault at its time until all are done or `stop` is set; then recover."""
        start = time.monotonic()
        try:
            for planned in schedule:
                if stop.wait(max(0.0, start + planned.at - time.monotonic())):
                    return
                self.apply(planned.fault)
        finally:
            self.recover()

    def apply(self, fault: Fault) -> None:
        """Apply one fault now and record its result; an error is recorded and not raised."""
        try:
            result = self._apply(fault)
            self.applied += 1
        except Exception as error:  # an error of the nemesis must not end the run
            log.exception("the nemesis failed at %s", fault)
            result = f"failed: {type(error).__name__}: {error}"
            self.failures.append(f"{fault}: {result}")
        fields = {name: getattr(fault, name) for name in fault.__slots__}
        self._history.add(Kind.FAULT, extra={"fault": fault.name, **fields, "result": result})

    def recover(self) -> None:
        """Undo lasting faults: resume stopped actors, start killed actors and servers, heal connections."""
        for actor in sorted(self._stopped):
            self.apply(SigCont(actor))
        for actor in sorted(self._killed):
            self.apply(Restart(actor))
        if self._ensemble is not None:
            self.apply(RestartServers())
        for victim in self._actors.values():
            victim.proxy.heal()

    def _apply(self, fault: Fault) -> str:  # noqa: C901, PLR0912 - one line for each kind of fault
        result = "done"
        match fault:
            case SigKill(actor):
                self._killed.add(actor)
                self._actors[actor].send_signal(signal.SIGKILL)
            case Restart(actor):
                self._actors[actor].restart()
                self._killed.discard(actor)
            case SigStop(actor):
                self._stopped.add(actor)
                self._actors[actor].send_signal(signal.SIGSTOP)
            case SigCont(actor):
                self._actors[actor].send_signal(signal.SIGCONT)
                self._stopped.discard(actor)
            case CloseSession(actor):
                result = self._close_session(self._actors[actor])
            case DropReply(actor):
                self._actors[actor].proxy.drop_next_multi_reply()
            case Refuse(actor, seconds):
                self._actors[actor].proxy.refuse(seconds)
            case CutUpstream(actor, seconds):
                self._actors[actor].proxy.cut_upstream(seconds)
            case CutDownstream(actor, seconds):
                self._actors[actor].proxy.cut_downstream(seconds)
            case ShiftClock(actor, seconds):
                self._actors[actor].send_command(f"{CLOCK_COMMAND} {seconds:g}")
            case KillLeader():
                result = self._kill_leader()
            case RestartServers():
                back = [] if self._ensemble is None else self._ensemble.restart_killed()
                result = f"servers {back}"
            case Corrupt(items):
                result = "nothing to spoil" if self._spoil is None else f"items {list(self._spoil(items))}"
            case _:
                assert_never(fault)
        return result

    def _close_session(self, actor: Actor) -> str:
        credentials = actor.credentials()
        if credentials is None:
            return "it has no session yet"
        return "done" if end_session(self._hosts, credentials) else "it was gone"

    def _kill_leader(self) -> str:
        if self._ensemble is None:
            return "there is no ensemble"
        number = self._ensemble.kill_leader()
        return "there is no leader" if number is None else f"server {number}"
