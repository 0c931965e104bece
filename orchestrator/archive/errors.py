"""Why a job could not be archived; nothing of it is removed then."""

from orchestrator.errors import OrchestratorError


class ArchiveError(OrchestratorError):
    """The archive takes nothing at present; `delay` is the seconds after which to try again."""

    def __init__(self, message: str, delay: float = 60.0) -> None:
        super().__init__(message)
        self.delay = delay


class DocumentRefused(ArchiveError):
    """The archive works, but it does not take this one document."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delay=600.0)  # only a change of the archive's settings helps
