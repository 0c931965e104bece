"""A job in the hands of a worker: what its handlers may look at."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.models.definition import Definition
from orchestrator.models.job import JobState
from queues.claim import Claim
from queues.errors import CorruptRecord
from queues.names import Layout
from queues.operations import Delete
from queues.session import Session
from spark_runner.attempt import Attempt, AttemptState, attempt_path
from spark_runner.runners.base import Place, Runner


@dataclass(frozen=True, slots=True)
class Context:
    """What all handlers of one worker share."""

    session: Session
    layout: Layout
    runners: Mapping[str, Runner]  # by backend
    kill_grace: float  # seconds between TERM and KILL
    draining: threading.Event = field(default_factory=threading.Event)

    def runner_for(self, definition: Definition) -> Runner:
        """The runner that serves the master of this definition."""
        return self.runners[definition.spark.backend]

    def runner_at(self, place: Place) -> Runner | None:
        """The runner that can see and stop what was submitted at `place`; None when this worker cannot."""
        runner = self.runners.get(place.backend)
        return runner if runner is not None and runner.reaches(place) else None


class HeldJob:
    """A claimed job with its state, its definition and its attempts."""

    def __init__(self, claim: Claim, context: Context) -> None:
        self.claim = claim
        self.context = context
        self.wake = threading.Event()  # set when the driver ends or the worker's own state changes
        self._definition: Definition | None = None

    @property
    def id(self) -> str:
        """The job's id."""
        return self.claim.id

    @property
    def state(self) -> JobState:
        """The payload of the record; raises ValidationError when it is no job's."""
        return JobState.model_validate(self.claim.record.payload)

    @property
    def record_path(self) -> str:
        """The node of the record."""
        return self.context.layout.record(self.id)

    @property
    def stop_path(self) -> str:
        """The node that a request to stop makes."""
        return self.context.layout.stop(self.claim.record.pool, self.id)

    @property
    def definition(self) -> Definition:
        """The definition, read once; raises CorruptRecord when it cannot be read."""
        if self._definition is None:
            found = self.context.session.get(f"{self.record_path}/definition")
            if found is None:
                raise CorruptRecord(self.id, "it has no definition")
            self._definition = Definition.model_validate(json.loads(found[0]))
        return self._definition

    def attempt(self) -> Attempt | None:
        """The last attempt as it is now, None before the first; `wake` is set when its driver ends."""
        number = self.state.attempt
        if number == 0:
            return None
        path = attempt_path(self.record_path, number)
        # No watch on the attempt: set in the moment of its end, it would stay until the removal. `alive` goes
        # in the multi that ends the attempt, and a watch on it is left only while it is there.
        attempt = Attempt.read(self.context.session, path)
        if attempt is None:
            raise CorruptRecord(self.id, f"its attempt {number} is missing")
        if attempt.state is AttemptState.STARTED:
            self.context.session.get(attempt.alive, self.wake.set, await_creation=False)
        return attempt

    def place(self, attempt: Attempt) -> Place:
        """Where an attempt was submitted."""
        return Place(**attempt.document["place"])

    def stop_request(self) -> tuple[Delete, bool] | None:
        """The removal of the stop node, and whether it is meant for this very job; None without a node."""
        found = self.context.session.get(self.stop_path)  # no watch: it would stay for ever
        if found is None:
            return None
        # A node of an earlier job of the same id carries another run key.
        meant = self.claim.record.run_key.encode() in found[0]
        return Delete(self.stop_path, found[1].version), meant

    def is_stopped(self) -> bool:
        """Whether somebody asked to stop this job."""
        request = self.stop_request()
        return request is not None and request[1]

    def wait(self, seconds: float) -> None:
        """Wait until something may have changed, or so many seconds."""
        self.wake.wait(seconds)
        self.wake.clear()
