"""finish: a job is kept for the retention time, then archived, then removed."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from loguru import logger

from orchestrator.archive.base import Archive, ArchiveError, Mark, document_of
from orchestrator.handlers.actions import Action, Keep, Release, Remove
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.job_nodes import JobNodes
from spark_runner.protocol.attempt import run_name
from spark_runner.runners.base import Runner, RunState, SubmissionPlace

_IN_USE_SECONDS = 60.0
_ELSEWHERE_SECONDS = 600.0  # the host of the archive may come back within a day
_UNCONFIRMED_SECONDS = 600.0  # until an operator sets the clock
_TOLERATED_MS = 30_000  # the clock of this host may be behind by as much


def handle(job: JobContext) -> Action:
    """Archive and remove a job whose retention time is over; before that, remove a late request to stop.

    Nothing is removed before the archive has stored the job durably. When the archive is unavailable, the
    handler tries again later, without counting an error of the job.
    """
    request = job.stop_request()
    if request is not None:
        return Release(extra=(request[0],))
    clock, due = job.context.clock, job.claim.record.token.due
    if clock.confirmed_ms() + _TOLERATED_MS < due <= clock.now_ms():
        return Keep(delay=_UNCONFIRMED_SECONDS)
    archive = job.context.reporting.archive
    try:
        if archive is not None and (marking := _marking(job, archive)) is not None:
            return marking
        nodes = JobNodes.read(job.context.session, job.record_path)
        runs = _Runs.of(job, nodes)
        if reason := _reason_to_keep(job, nodes, runs):
            logger.warning("{} is not removed yet: {}", job.id, reason)
            return Keep(delay=_IN_USE_SECONDS)
        if archive is not None:
            _write(job, archive, nodes)
    except ArchiveError as error:  # the archive logs it, once for all jobs
        return Keep(delay=error.delay)
    runs.clean_up()
    return Remove(extra=nodes.known_deletes)


def _reason_to_keep(job: JobContext, nodes: JobNodes, runs: "_Runs") -> str:
    """Why the job cannot be removed yet; empty where it can."""
    if running := nodes.driver_path or runs.running():
        return f"a driver may be running, see {running}"
    job.claim.check()
    stays = nodes.clear_known(job.context.session)
    return f"a program has left nodes below {stays} that this worker cannot remove" if stays else ""


def _marking(job: JobContext, archive: Archive) -> Keep | None:
    """The action to take before the job may be written into this archive; None when it may."""
    owner, mark = archive.owner(), Mark.parse(job.state.archive)
    if owner is None or (mark is not None and mark.owner == owner):
        return None
    if mark is None:
        return _marked(Mark.now(owner, archive.position()))
    if not mark.is_stale():
        return Keep(delay=_ELSEWHERE_SECONDS)
    logger.warning("{} is archived here: {} has not archived it since {}", job.id, mark.owner, mark.since)
    return _marked(Mark.now(owner, archive.position(), taken_over_from=mark.owner))


def _marked(mark: Mark) -> Keep:
    return Keep(changes={"archive": str(mark)})


def _write(job: JobContext, archive: Archive, nodes: JobNodes) -> None:
    mark = Mark.parse(job.state.archive)
    document = document_of(
        job.claim.record,
        job.state,
        nodes.definition,
        tuple(nodes.attempt_documents.values()),
        taken_over_from=mark.taken_over_from if mark is not None else "",
    )
    job.claim.check()  # a worker without the claim must not write what another may write
    archive.write(document, since=mark.position if mark is not None else "")


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a job at the backends that this worker reaches."""

    runners: Mapping[str, Runner]  # by the name of the run

    @classmethod
    def of(cls, job: JobContext, nodes: JobNodes) -> "_Runs":
        """The runs of all attempts."""
        runners = dict[str, Runner]()
        for number, document in nodes.attempt_documents.items():
            place = SubmissionPlace.of(document.get("place"))
            runner = None if place is None else job.context.drivers.runners.at(place.of_files)
            if runner is not None:
                runners[run_name(job.run_key, number)] = runner
        return cls(runners)

    def running(self) -> str:
        """The name of a run whose backend reports that its driver runs; empty without one."""
        by_runner = defaultdict[int, list[str]](list)
        for run, runner in self.runners.items():
            by_runner[id(runner)].append(run)
        for runs in by_runner.values():
            try:
                polled = self.runners[runs[0]].poll_many(runs)
            except Exception as error:  # noqa: BLE001 - no error of a backend may block a removal forever
                logger.warning("the runs of a finished job cannot be polled, such as {}: {}", runs[0], error)
                continue
            for run, submissions in polled.items():
                if any(submission.state is RunState.RUNNING for submission in submissions):
                    return run
        return ""

    def clean_up(self) -> None:
        """Remove the files of the runs; an error is logged, and the files stay."""
        for run, runner in self.runners.items():
            try:
                runner.cleanup(run)
            except Exception as error:  # noqa: BLE001 - likewise
                logger.warning(
                    "the job is removed, but the files of its run {} at {} are not: {}",
                    run,
                    runner.backend,
                    error,
                )
