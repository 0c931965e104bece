"""What others may do at the turns of a job's life: count, log, trace. A hook can never break a job."""

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points

from loguru import logger

from orchestrator.models.job import JobState
from orchestrator.models.waiting import Waiting
from orchestrator.states import Queue

ENTRY_POINTS = "spark_job_orchestrator.hooks"


class Hook:
    """Base of all hooks: override what is of interest.

    Methods are called on the threads that handle jobs: be quick, or hand over to a thread of your own. What
    they raise is logged and forgotten. They may be called again for the same turn after a crash.
    """

    def before_submit(self, job_id: str, state: JobState, run: str) -> None:
        """A driver is about to be started for this run (`<run key>-<attempt>`)."""

    def after_submit(self, job_id: str, state: JobState, run: str) -> None:
        """A driver was handed to its backend."""

    def after_outcome(self, job_id: str, state: JobState) -> None:
        """An attempt has ended, and this is what became of it."""

    def after_transition(self, job_id: str, before: JobState, after: JobState, queue: Queue) -> None:
        """A change of the record was committed; `queue` is where the job stands now."""

    def after_decline(self, job_id: str, waiting: Waiting) -> None:
        """The job was claimed and left in accept, because of this."""

    def after_removal(self, job_id: str, state: JobState) -> None:
        """The job was removed at the end of its retention."""

    def after_error(self, job_id: str, error: Exception) -> None:
        """A handler has failed: counted, and tried again."""


class Hooks:
    """Several hooks as one."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self._hooks = tuple(hooks)

    def fire(self, call: Callable[[Hook], None]) -> None:
        """Call each; what one raises does not reach the job or the other hooks."""
        for hook in self._hooks:
            try:
                call(hook)
            # Also what is no Exception, as asyncio's CancelledError: it would end the thread that commits.
            except BaseException as error:  # noqa: BLE001 - a hook is not ours, whatever it raises
                logger.opt(exception=error).warning("the hook {} failed", type(hook).__name__)


def installed_hooks() -> list[Hook]:
    """The hooks of other packages, by their entry points; one that cannot be made is told and left out."""
    hooks = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            hook = point.load()()
            if not isinstance(hook, Hook):
                raise TypeError(f"it is a {type(hook).__name__}, not a Hook")  # noqa: TRY301 - told below
        except Exception as error:  # noqa: BLE001 - whatever another package does at its import
            logger.warning("the hook {} of {} is left out: {}", point.name, point.value, error)
        else:
            hooks.append(hook)
    return hooks
