"""Errors of an archive; a job that was not archived is not removed."""

from orchestrator.errors import OrchestratorError


class ArchiveError(OrchestratorError):
    """The archive cannot store documents at present; `delay` is the seconds until the next attempt."""

    def __init__(self, message: str, delay: float = 60.0) -> None:
        super().__init__(message)
        self.delay = delay


class DocumentRefused(ArchiveError):
    """The archive works, but rejects this document."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delay=600.0)  # only a change of the archive's settings can help
