"""The runner of scripted drivers, for any number of worker processes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from spark_runner.protocol.errors import KillError, SparkRunnerError
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from tests.scripted.store import Store, StoredSubmission

_ENDED = {RunState.EXITED, RunState.GONE}
_END_SECONDS = 10.0  # beyond the grace, which a scripted driver does not need
_LOOK_SECONDS = 0.02


class ScriptedRunner:
    """Submits to the backend of a directory that every worker can reach."""

    backend: ClassVar[str] = "local"  # the backend named by the definitions of tests

    def __init__(self, directory: Path) -> None:
        self.store = Store(directory)

    def place(self) -> SubmissionPlace:
        return SubmissionPlace(self.backend, "scripted", str(self.store.directory))

    def reaches(self, place: SubmissionPlace) -> bool:
        return place == self.place()

    def submit(self, request: SubmitRequest) -> Submission:
        return self.store.add(request).submission()

    def find(self, run: str) -> list[Submission]:
        return [stored.submission() for stored in self.store.of_run(run)]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        return {run: self.find(run) for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:
        for stored in self.store.of_run(run):
            if not _has_ended(stored):
                stored.ask_to_end()
                self.store.note(stored)
        deadline = time.monotonic() + grace_seconds + _END_SECONDS
        while left := [stored.incarnation for stored in self.store.of_run(run) if not _has_ended(stored)]:
            if time.monotonic() > deadline:
                raise KillError(f"drivers of run {run} are still there: {', '.join(left)}")
            time.sleep(_LOOK_SECONDS)

    def logs(self, run: str) -> list[LogFile]:
        stored = [each for each in self.store.of_run(run) if each.stdout.exists()]
        return [LogFile(each.incarnation, "stdout", each.stdout) for each in stored]

    def cleanup(self, run: str) -> None:
        if any(not _has_ended(stored) for stored in self.store.of_run(run)):
            raise SparkRunnerError(f"run {run} is running: kill it before its files are removed")
        self.store.remove(run)


def _has_ended(stored: StoredSubmission) -> bool:
    return stored.submission().state in _ENDED
