"""The state of a scripted backend in a directory: it outlives its users, as a cluster would.

<directory>/inbox/<run>~<incarnation>         a note: the backend must look at this submission
<directory>/hold                              while it exists, no driver is started: a full cluster
<directory>/ledger.jsonl                      every start of user code
<directory>/runs/<run>/<incarnation>/request.json  state.json  kill  stdout.log
"""

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_runner.protocol.errors import SubmissionError
from spark_runner.runners.base import RunState, Submission, SubmitRequest
from tests.scripted.ledger import Ledger

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")
_BETWEEN = "~"  # occurs in no name


@dataclass(frozen=True, slots=True)
class StoredSubmission:
    """One submission on disk; files are written atomically."""

    path: Path

    @property
    def run(self) -> str:
        return self.path.parent.name

    @property
    def incarnation(self) -> str:
        return self.path.name

    @property
    def stdout(self) -> Path:
        return self.path / "stdout.log"

    @property
    def is_killed(self) -> bool:
        """Whether its end was requested; then it never starts."""
        return (self.path / "kill").exists()

    def request(self) -> dict[str, Any] | None:
        return _read(self.path / "request.json")

    def ask_to_end(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # it has ended, and was removed
            _write(self.path / "kill", {})

    def set_state(self, state: RunState, **facts: Any) -> None:
        """Write its state."""
        _write(self.path / "state.json", {"state": state.value, **facts})

    def submission(self) -> Submission:
        written = _read(self.path / "state.json") or {"state": RunState.RUNNING.value}
        return Submission(
            self.run,
            self.incarnation,
            RunState(written["state"]),
            written.get("exit_code"),
            detail=written.get("detail", ""),
            outcome=written.get("outcome"),
        )


class Store:
    """The directory as a whole; used by the backend and by every worker's runner."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ledger = Ledger(directory / "ledger.jsonl")
        self._inbox, self._runs = directory / "inbox", directory / "runs"
        for folder in (self._inbox, self._runs):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def is_full(self) -> bool:
        return (self.directory / "hold").exists()

    def add(self, request: SubmitRequest) -> StoredSubmission:
        """Store a submission; raises SubmissionError for bad names and for an existing submission."""
        for name in (request.run, request.incarnation):
            if not _NAME.fullmatch(name):
                raise SubmissionError(f"{name!r} cannot name a directory")
        stored = StoredSubmission(self._runs / request.run / request.incarnation)
        try:
            stored.path.mkdir(parents=True)
            # The note first: after a death in between nothing is submitted, and a note alone is harmless.
            self.note(stored)
            conf = {**request.conf, "spark.master": request.target.master}  # as Spark has it in a driver
            facts = {"name": request.name, "plan": dict(request.plan), "conf": conf}
            _write(stored.path / "request.json", {**facts, "at": time.time_ns()})
        except (OSError, TypeError, ValueError) as error:
            raise SubmissionError(f"run {request.run} was not submitted: {error}") from error
        return stored

    def note(self, stored: StoredSubmission) -> None:
        """Request a look of the backend at a submission."""
        (self._inbox / f"{stored.run}{_BETWEEN}{stored.incarnation}").touch()

    def noted(self) -> Iterator[StoredSubmission]:
        """The submissions with a note."""
        for name in os.listdir(self._inbox):  # noqa: PTH208 - only names, fifty times per second
            run, _, incarnation = name.partition(_BETWEEN)
            yield StoredSubmission(self._runs / run / incarnation)

    def seen(self, stored: StoredSubmission) -> None:
        """Delete the note of a submission."""
        (self._inbox / f"{stored.run}{_BETWEEN}{stored.incarnation}").unlink(missing_ok=True)

    def of_run(self, run: str) -> list[StoredSubmission]:
        """The submissions of a run, oldest first."""
        folder = self._runs / run
        names = os.listdir(folder) if folder.exists() else []  # noqa: PTH208 - as above
        found = [(stored.request(), stored) for stored in (StoredSubmission(folder / name) for name in names)]
        made = [
            (request["at"], stored.incarnation, stored) for request, stored in found if request is not None
        ]
        return [stored for _, _, stored in sorted(made, key=lambda one: one[:2])]

    def runs(self) -> list[str]:
        """Every submitted run that is not removed."""
        return sorted(os.listdir(self._runs))  # noqa: PTH208 - as above

    def remove(self, run: str) -> None:
        shutil.rmtree(self._runs / run, ignore_errors=True)


def _write(path: Path, document: dict[str, Any]) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(document), "utf-8")
    part.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    return document
