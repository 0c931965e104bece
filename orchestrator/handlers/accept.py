"""accept: a due job gets an attempt, which ZooKeeper stores before anything is submitted."""

from orchestrator.admission.slots import SlotReservation
from orchestrator.handlers import packages, submission
from orchestrator.handlers.actions import Action, Release, SetStatus
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.tuning import tuned_properties
from orchestrator.handlers.warnings import recordable_text
from orchestrator.model.job import CallbackState, JobError, JobState
from orchestrator.model.states import Queue, Status, check_transition
from orchestrator.model.waiting import Reason, Waiting, at_checkpoint
from orchestrator.tuning.resources import with_resources
from queues import timestamp
from spark_runner.protocol.attempt import attempt_path, intent, run_name
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError


def queued_too_long(waited_seconds: float, limit: float) -> JobError:
    """The error of a job that has waited for its start longer than `timeout.queued`."""
    message = f"it has waited in accept for {waited_seconds:.0f} s, longer than timeout.queued ({limit:g} s)"
    return JobError(error_class="timeout", type="QueuedTimeout", message=message)


def failed_in_accept(before: JobState, waited_seconds: float) -> JobState:
    """The state of a job that has waited past `timeout.queued`; raises IllegalTransition."""
    check_transition(before.status, Status.ERROR_FAIL)
    at = timestamp()
    return before.evolve(
        status=Status.ERROR_FAIL,
        error=queued_too_long(waited_seconds, before.queued_limit),
        handler_errors=0,
        ended=at,
        updated=at,
        times={**before.times, Queue.FAIL.value: at},
    )


def handle(job: JobContext) -> Action:
    """Write the intent, unless the job was stopped, has waited too long, or may not start here now."""
    context, state, record = job.context, job.state, job.claim.record
    job.reads.read(job.stop_path, job.definition_path)
    request = job.stop_request()
    if request is not None:
        # A request for an earlier job of this id is removed; this job waits until it is due.
        return SetStatus(Status.CANCEL) if request[1] else Release(extra=(request[0],))
    waited = (context.clock.confirmed_ms() - record.token.due) / 1000
    if 0 < state.queued_limit < waited:
        error = queued_too_long(waited, state.queued_limit)
        return SetStatus(Status.ERROR_FAIL, changes={"error": error, "ended": timestamp()})
    try:
        spark = job.spark
        place = context.drivers.runners.for_target(spark.target).place()
        installing = packages.installing(job, spark)
    except SubmissionError as error:
        return _unplaced(job, error)
    number = state.attempt + 1
    taken = installing or _reserved(job, number)
    if isinstance(taken, Waiting):
        return _declined(job, taken)
    tuned = tuned_properties(job, spark, number)
    spark = with_resources(spark, tuned)
    guard = context.admission.guard
    if guard is not None and (short := guard.admit(job.run_key, spark)) is not None:
        context.admission.declined.add(job.id, spark.model_dump_json(), lambda: guard.capacity(spark))
        return _declined(job, Waiting(reason=Reason.MEMORY, message=recordable_text(short)))
    announced = intent(
        attempt_path(job.record_path, job.run_key, number),
        run_key=job.run_key,
        number=number,
        place=place.to_json(),
        at=timestamp(),
        login=job.new_login(run_name(job.run_key, number)),
    )
    job.begun = number
    changes = {
        "attempt": number,
        "place": place.to_json(),
        "worker": job.claim.root.owner,
        "tuned": tuned,
        "checkpoint": _checkpoint(job, place.backend),
        "slot": taken.slot,
        "name_slot": taken.name_slot,
        "callback": CallbackState(),
        "polls": 0,
        "unknown_answers": 0,
        **dict.fromkeys(("started", "ended", "error", "warning", "application_id", "history", "last_seen")),
    }
    return SetStatus(Status.RUNNING, changes=changes, extra=(announced, *taken.operations))


def _reserved(job: JobContext, number: int) -> SlotReservation | Waiting:
    """The slots of the job, or why it cannot start on this worker, in its pool or with its name now."""
    if job.context.leaving.is_set():  # such as a job whose attempt has failed here
        return Waiting(reason=Reason.DRAINING, message="it starts no job any more")
    admission, definition, pool = job.context.admission, job.definition, job.claim.record.pool
    if (report := admission.high_water.report(pool)) is not None:
        return report.waiting(pool)
    owner: dict[str, object] = {"id": job.id, "run_key": job.run_key, "attempt": number}
    taken = admission.slots.take(pool, definition.name, definition.concurrency, owner=owner)
    if isinstance(taken, Waiting):
        if definition.concurrency:
            admission.declined.add_named(job.id, definition.name, definition.concurrency)
        if taken.reason == Reason.CONCURRENCY and definition.checkpoint is not None:
            return at_checkpoint(definition.name)
    return taken


def _checkpoint(job: JobContext, backend: str) -> str | None:
    """The folder of its checkpoints, for those who look at the job."""
    name, pool = job.definition.name, job.claim.record.pool
    if job.definition.checkpoint is None:
        return None
    return job.context.rules.checkpoints.of_job(name, pool, backend) or None


def _declined(job: JobContext, waiting: Waiting) -> Release:
    """The job stays in accept, and its record stores the reason."""
    said = {"worker": job.claim.root.owner, "at": timestamp()}
    return Release(waiting=waiting.model_copy(update=said))


def _unplaced(job: JobContext, error: SubmissionError) -> SetStatus:
    """The action for a job that no runner of this worker can submit."""
    is_refused = isinstance(error, RefusedSubmission)
    reason = JobError(
        error_class="definition" if is_refused else "submission",
        message=str(error),
        type=type(error).__name__,
    )
    # Another worker may have the missing part, or this one later.
    again = None if is_refused else submission.later(job, reason)
    failed = {"error": reason, "ended": timestamp(), "submissions": 0}
    return again or SetStatus(Status.ERROR_FAIL, changes=failed)
