"""A runner whose drivers only take and end their attempt."""

import queue
import socket
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from queues import Create, Delete, Operation, Session, SessionSettings, commit_many, timestamp
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.protocol.process import current_boot_id
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest

_DRIVERS_PER_SESSION = 2_000  # a session owns at most 512 KiB of paths of ephemerals
_TOGETHER = 100


class NoopRunner:
    """Drivers without processes, on separate sessions; with `ends=False` they never end."""

    backend: ClassVar[str] = "local"

    def __init__(self, hosts: str, *, ends: bool = True) -> None:
        self._settings = SessionSettings(hosts)
        self._ends = ends
        self._sessions: list[Session] = []
        self._runs: dict[str, Submission] = {}
        self._inbox: queue.SimpleQueue[SubmitRequest] = queue.SimpleQueue()
        threading.Thread(target=self._drive, name="drivers", daemon=True).start()

    def place(self) -> SubmissionPlace:
        """This host."""
        return SubmissionPlace(self.backend, socket.gethostname(), current_boot_id())

    def reaches(self, _place: SubmissionPlace) -> bool:
        """Always."""
        return True

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver."""
        submission = Submission(request.run, request.incarnation, RunState.RUNNING)
        self._runs[request.run] = submission
        self._inbox.put(request)
        return submission

    def find(self, run: str) -> list[Submission]:
        """The only submission of a run."""
        return [self._runs[run]] if run in self._runs else []

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """All at once."""
        return {run: self.find(run) for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:  # noqa: ARG002 - the protocol's
        """End a driver."""
        self._runs.pop(run, None)

    def logs(self, _run: str) -> list[LogFile]:
        """None."""
        return []

    def cleanup(self, run: str) -> None:
        """Forget a run."""
        self._runs.pop(run, None)

    # ------------------------------------------------------------------ drivers
    def _drive(self) -> None:
        taken = 0
        while True:
            requests = [self._inbox.get()]
            while len(requests) < _TOGETHER and not self._inbox.empty():
                requests.append(self._inbox.get())
            if taken // _DRIVERS_PER_SESSION == len(self._sessions):
                self._sessions.append(Session(self._settings).start())
            taken += 0 if self._ends else len(requests)
            session = self._sessions[-1]
            started = self._change(session, requests, AttemptState.STARTED)
            if self._ends:
                ended = self._change(session, started, AttemptState.SUCCEEDED)
                for request in ended:
                    self._runs[request.run] = Submission(request.run, request.incarnation, RunState.EXITED, 0)

    @staticmethod
    def _change(
        session: Session, requests: Sequence[SubmitRequest], state: AttemptState
    ) -> list[SubmitRequest]:
        """Take or end the attempts of these drivers; returns those whose attempt has changed."""
        found = session.get_many([request.plan["attempt_path"] for request in requests])
        steps: list[list[Operation]] = []
        mine = []
        for request, node in zip(requests, found, strict=True):
            if node is None:
                continue
            attempt = Attempt.of(request.plan["attempt_path"], *node)
            facts: dict[str, Any] = {"incarnation": request.incarnation, "started": timestamp()}
            alive: Operation = Create(attempt.alive, ephemeral=True)
            if state is not AttemptState.STARTED:
                facts, alive = {"ended": timestamp(), "exit_code": 0, "tables": []}, Delete(attempt.alive)
            steps.append([attempt.advance(state, **facts), alive])
            mine.append(request)
        refusals = commit_many(session, steps)
        return [request for request, refused in zip(mine, refusals, strict=True) if refused is None]
