"""Hooks of other packages at the transitions of a job: to count, log, trace. A hook can never break a job."""

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points

from loguru import logger

from orchestrator.model.job import JobState
from orchestrator.model.states import Queue
from orchestrator.model.waiting import Waiting

ENTRY_POINTS = "spark_job_orchestrator.hooks"


class Hook:
    """Base of all hooks: override the methods of interest.

    They run on the threads that handle jobs, so they should be quick, or hand over to another thread. Their
    errors are logged and otherwise ignored. After a crash a method may be called again for the same event.
    """

    def before_submit(self, job_id: str, state: JobState, run: str) -> None:
        """A driver is about to be started for this run (`<run key>-<attempt>`)."""

    def after_submit(self, job_id: str, state: JobState, run: str) -> None:
        """A driver was submitted to its backend."""

    def after_outcome(self, job_id: str, state: JobState) -> None:
        """An attempt has ended; `state` has its outcome."""

    def after_transition(self, job_id: str, before: JobState, after: JobState, queue: Queue) -> None:
        """A change of the record was committed; `queue` is the queue of the job now."""

    def after_decline(self, job_id: str, waiting: Waiting) -> None:
        """The job was claimed and deferred in accept, for this reason."""

    def after_removal(self, job_id: str, state: JobState) -> None:
        """The job was removed at the end of its retention."""

    def after_error(self, job_id: str, error: Exception) -> None:
        """A handler has failed; the error is counted, and the handler runs again."""


class Hooks:
    """Several hooks as one."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self._hooks = tuple(hooks)

    def fire(self, call: Callable[[Hook], None]) -> None:
        """Call each hook; an error of one does not reach the job or the other hooks."""
        for hook in self._hooks:
            try:
                call(hook)
            # Also errors that are no Exception, as asyncio's CancelledError: they would end this thread.
            except BaseException as error:  # noqa: BLE001 - foreign code
                logger.opt(exception=error).warning("the hook {} failed", type(hook).__name__)


def installed_hooks() -> list[Hook]:
    """The hooks of other packages, by their entry points; one that fails to load is logged and left out."""
    hooks = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            hook = point.load()()
            if not isinstance(hook, Hook):
                raise TypeError(f"it is a {type(hook).__name__}, not a Hook")  # noqa: TRY301 - logged below
        except Exception as error:  # noqa: BLE001 - foreign code
            logger.warning("the hook {} of {} is left out: {}", point.name, point.value, error)
        else:
            hooks.append(hook)
    return hooks
