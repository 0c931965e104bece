"""What is there of a job that has ended: nodes below its record, and what its runs left at their backends."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loguru import logger

from orchestrator.handlers.driver_nodes import clear, shows_life
from orchestrator.handlers.job import HeldJob
from queues.operations import Delete
from queues.session import Session
from spark_runner.attempt import attempt_number, run_name
from spark_runner.runners.base import Runner, RunState, SubmissionPlace

_DEFINITION = "definition"
_OURS = (_DEFINITION, "plan")


@dataclass(frozen=True, slots=True)
class Remains:
    """All that is to be archived or removed with a job, but for its record."""

    definition: Mapping[str, Any] | None
    attempts: tuple[Mapping[str, Any], ...]
    deletes: tuple[Delete, ...]
    runs: Mapping[str, Runner]  # the runs that this worker reaches
    in_use: str = ""  # the attempt of a driver whose session still keeps `alive`
    littered: tuple[str, ...] = ()  # attempts below which a driver has left nodes

    @classmethod
    def of(cls, job: HeldJob) -> "Remains":
        """Read in two requests, however many attempts there were."""
        session, path = job.context.session, job.record_path
        names = sorted(session.children(path) or (), key=_in_order)
        documents, deletes = dict[str, Mapping[str, Any]](), list[Delete]()
        littered, in_use = list[str](), ""
        for name, found in zip(names, session.get_many([f"{path}/{name}" for name in names]), strict=True):
            # What is not ours stays: then the record cannot be removed, and an operator has to look.
            if found is not None and (name in _OURS or attempt_number(name) is not None):
                documents[name] = _document(found[0])
                deletes.append(Delete(f"{path}/{name}"))
                if found[1].children:
                    littered.append(f"{path}/{name}")
                    in_use = littered[-1] if shows_life(session, littered[-1]) else in_use
        attempts = {
            number: document
            for name, document in documents.items()
            if (number := attempt_number(name)) is not None
        }
        return cls(
            definition=documents.get(_DEFINITION),
            attempts=tuple(attempts.values()),
            deletes=tuple(deletes),
            runs=_reached(job, attempts),
            in_use=in_use,
            littered=tuple(littered),
        )

    def running(self) -> str:
        """The run that has a driver, or the node that one keeps; empty when there is none."""
        if self.in_use:
            return self.in_use
        by_runner = defaultdict[int, list[str]](list)
        for run, runner in self.runs.items():
            by_runner[id(runner)].append(run)
        for runs in by_runner.values():
            try:
                polled = self.runs[runs[0]].poll_many(runs)
            except Exception as error:  # noqa: BLE001 - whatever a backend raises: not for ever in the way
                logger.warning("what {} left cannot be looked at: {}", runs[0], error)
                continue
            for run, submissions in polled.items():
                if any(submission.state is RunState.RUNNING for submission in submissions):
                    return run
        return ""

    def clear(self, session: Session) -> str:
        """Remove what drivers have left below their attempts; the first one that cannot be cleared."""
        return next((path for path in self.littered if not clear(session, path)), "")

    def clean_up(self) -> None:
        """Remove what the runs left; what cannot be removed is told and stays."""
        for run, runner in self.runs.items():
            try:
                runner.cleanup(run)
            except Exception as error:  # noqa: BLE001 - likewise
                logger.warning(
                    "{} is removed, but what its run {} left is not: {}", runner.backend, run, error
                )


def _reached(job: HeldJob, attempts: Mapping[int, Mapping[str, Any]]) -> dict[str, Runner]:
    runs = dict[str, Runner]()
    for number, document in attempts.items():
        place = SubmissionPlace.of(document.get("place"))
        runner = None if place is None else job.context.runners.at(place.of_files)
        if runner is not None:
            runs[run_name(job.run_key, number)] = runner
    return runs


def _in_order(name: str) -> tuple[int, str]:
    return (attempt_number(name) or 0, name)


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        # NaN and Infinity as text: they are no JSON, and not every archive takes them.
        document = json.loads(data, parse_constant=str)
    except (ValueError, RecursionError):
        document = None
    return document if isinstance(document, dict) else {"unreadable": data.decode(errors="replace")}
