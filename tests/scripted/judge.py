"""Invariants of jobs at the end of a run, whatever happened meanwhile."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from orchestrator.admin.views import JobDetail
from orchestrator.client.client import Client
from orchestrator.model.states import Queue, Status
from queues.admin.scrubber import Scrubber
from queues.model.errors import CorruptRecord, ItemNotFound
from queues.session import Session
from spark_runner.protocol.attempt import AttemptState, run_name
from tests.scripted.ledger import Ledger

_FOLDERS_OF_FOLDERS = ("locks", "stops", "slots", "named", "holds")
_OPEN = {AttemptState.INTENT, AttemptState.STARTED}
_SAID_BY_DRIVER = {AttemptState.SUCCEEDED, AttemptState.FAILED}


def violations(client: Client, ledger: Ledger, expected: Mapping[str, Collection[Status]]) -> list[str]:
    """Violations of these jobs: lost, with an unexpected end, or run twice in an attempt."""
    found: list[str] = []
    starts: defaultdict[str, list[str]] = defaultdict(list)
    for line in ledger.lines():
        starts[line["run"]].append(line["incarnation"])
    for job_id, statuses in expected.items():
        try:
            detail = client.detail(job_id)
        except (ItemNotFound, CorruptRecord) as error:
            found.append(f"{job_id} is lost: {error}")
            continue
        view = detail.job
        if view.queue is not Queue.FINISH or view.status not in statuses:
            said = "" if view.error is None else f": {view.error.message}"
            found.append(f"{job_id} is in {view.queue} as {view.status}, not as {sorted(statuses)}{said}")
        found += (f"{job_id}: {words}" for words in _wrong_attempts(detail, starts))
    return found


def _wrong_attempts(detail: JobDetail, starts: Mapping[str, list[str]]) -> Iterator[str]:
    if len(detail.attempts) != detail.job.attempt:
        yield f"it counts {detail.job.attempt} attempts and has {len(detail.attempts)}"
    known = set[str]()
    for number, attempt in enumerate(detail.attempts, 1):
        run = run_name(detail.run_key, number)
        if number <= detail.job.attempt:  # a node alone is no announcement: the record must count it
            known.add(run)
        yield from _wrong_attempt(number, attempt, starts.get(run, []))
    strangers = [run for run in starts if run.startswith(f"{detail.run_key}-") and run not in known]
    if strangers:
        yield f"user code ran in attempts that were not announced: {strangers}"


def _wrong_attempt(number: int, attempt: Mapping[str, Any], started: list[str]) -> Iterator[str]:
    state, incarnation = AttemptState(attempt["state"]), attempt.get("incarnation")
    if len(started) > 1:
        yield f"the user code of attempt {number} was started {len(started)} times"
    if state in _OPEN:
        yield f"attempt {number} is still {state}"
    if state in _SAID_BY_DRIVER and not started:
        yield f"attempt {number} is {state} and no user code ran"
    if started and incarnation not in started:
        yield f"attempt {number} is {state}, of {incarnation}, and user code ran in {started}"


def overshot(highest: Mapping[str, int], limits: Mapping[str, int]) -> list[str]:
    """The limits of running jobs that were exceeded."""
    return [
        f"{key}: {highest.get(key, 0)} ran at once, {limit} may"
        for key, limit in limits.items()
        if highest.get(key, 0) > limit
    ]


def left_over(client: Client, session: Session, root: str, *, removed: Collection[str] = ()) -> list[str]:
    """Nodes without an owner; of `removed` jobs no node may be left."""
    found = []
    for kind in _FOLDERS_OF_FOLDERS:
        for folder in session.children(f"{root}/{kind}") or ():
            found += [f"{kind}/{folder}/{name}" for name in session.children(f"{root}/{kind}/{folder}") or ()]
    for bucket in session.children(f"{root}/jobs") or ():
        for job_id in session.children(f"{root}/jobs/{bucket}") or ():
            path = f"{root}/jobs/{bucket}/{job_id}"
            if job_id in removed:
                found.append(path)
            for name in session.children(path) or ():
                found += [f"{path}/{name}/{child}" for child in session.children(f"{path}/{name}") or ()]
    queue_set = client._set  # noqa: SLF001 - the scrubber needs it
    report = Scrubber(queue_set.root, queue_set.claimer, dry_run=True).scrub()
    found += [
        f"{kind}: {names}" for kinds in (report.repaired, report.unrepaired) for kind, names in kinds.items()
    ]
    return found
