"""The undelivered events in a record: their size is bounded, and each is delivered as it was stored."""

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.callbacks.body import callback_body, kept, restored
from orchestrator.callbacks.callback import CallbackDelivery, CallbackError, CallbackReply
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.notices import undelivered, with_running, with_warning
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.model.definition import build_definition
from orchestrator.model.job import CallbackState, JobError, JobState
from orchestrator.model.states import Queue, Status
from queues.claims.claim import Claim
from queues.model.codec import timestamp
from queues.model.names import Token
from queues.model.record import Record

WIDE = "\N{GRINNING FACE}"  # four bytes
RECORD = Record("j" * 128, "k" * 36, "running", "p" * 128, Token(due=1, seq=1, id="j" * 128), "nonce")


class Job(JobContext):
    """A running job without a ZooKeeper, whose driver and backend write texts of any size."""

    def __init__(self, text: str = "x") -> None:
        claim = SimpleNamespace(record=RECORD, id=RECORD.id, version=0)
        super().__init__(cast("Claim", claim), cast("WorkerContext", SimpleNamespace(session=None)))
        self.now = JobState.enqueued("n" * 128).evolve(status=Status.RUNNING, attempt=1)
        self.text = text
        callback = {"url": "http://there", "on": ["running", "warn", "end"]}
        labels = {"team": "x" * 100_000, "fire_time": "then"}
        definition = {"name": "n" * 128, "python": "pass", "callback": callback, "labels": labels}
        self._definition = build_definition(definition, "test")

    @property
    def state(self) -> JobState:
        return self.now

    def attempt_document(self) -> dict[str, Any]:
        clusters = {"master": self.text, "ui": self.text, "namespace": self.text}
        place = {"backend": "standalone", "host": self.text, "cluster": clusters}
        return {"started": "2026-01-31T06:00:00.000Z", "application_id": self.text, "place": place}

    def alive(self) -> dict[str, Any]:
        return {"ui": self.text}

    def warn(self) -> None:
        changes = with_warning(self, {"warning": self.text[:1_000]})
        self.now = self.now.evolve(**changes, status=Status.RUNNING_WARN)

    def calm(self) -> None:
        self.now = self.now.evolve(status=Status.RUNNING)


def test_a_record_with_all_pending_events_still_holds_the_longest_error() -> None:
    job = Job(WIDE * 10_000)
    for _ in range(20):
        job.warn()
        job.calm()
    state = job.now.evolve(
        status=Status.KILL,
        error=JobError(error_class="user", type="T" * 100, message=job.text, traceback=job.text),
        warning=WIDE * 1_000,
        callback=CallbackState(attempts=99, error="e" * 1_000),
        application_id="a" * 200,
        times=dict.fromkeys(Queue, timestamp()),
        polls=10**9,
    )
    for number in range(10):
        state = state.evolve(**undelivered(state, "end", number, 100, WIDE * 1_000))
    assert len(state.outbox) >= 2
    payload = state.to_payload()
    replace(RECORD, payload=payload).encode()


def test_where_too_many_wait_the_oldest_behind_the_first_goes_and_is_on_record() -> None:
    job = Job("http://spark:8080")
    job.claim.record = replace(RECORD, pool="default")
    for _ in range(9):  # the first one also adds the event that it runs
        job.warn()
        job.calm()
    assert [notice.number for notice in job.now.outbox] == [1, 4, 5, 6, 7, 8, 9, 10]
    lost = [(each.event, each.number, each.error) for each in job.now.undelivered]
    assert lost == [("warn", number, "too many events wait for their delivery") for number in (2, 3)]


def test_a_stored_event_is_delivered_whole() -> None:
    job = Job()
    body = callback_body(
        RECORD, job.now, job.definition, job.attempt_document(), event="warn", number=3, status=Status.RUNNING
    )
    facts = kept(body)
    assert "labels" not in facts
    later = job.now.evolve(status=Status.SUCCESS, attempt=2, ended="later")
    assert list(restored(facts, RECORD, later, job.definition).items()) == list(body.items())


def test_an_attempt_is_noted_once() -> None:
    job = Job()
    job.now = job.now.evolve(**with_running(job, {}))
    assert with_running(job, {}) == {}
    assert (len(job.now.outbox), job.now.notices, job.now.first_started) == (1, 1, job.now.started)


def test_a_call_is_made_where_there_are_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    ends: list[int] = []
    delivery = CallbackDelivery(1, lambda: CallbackReply(code="SUCCESS"), on_end=lambda: ends.append(1))
    delivery.start()
    assert (delivery.outcome, ends) == (CallbackReply(code="SUCCESS"), [1])


def test_a_call_that_fails_in_any_way_has_an_outcome() -> None:
    def fail() -> CallbackReply:
        raise ValueError("a bug")

    done = threading.Event()
    delivery = CallbackDelivery(1, fail, on_end=done.set)
    delivery.start()
    assert done.wait(30)
    assert isinstance(delivery.outcome, CallbackError)
