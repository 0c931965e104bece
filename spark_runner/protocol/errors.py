"""Errors of `spark_runner`: one tree, whose messages are written for users."""

from queues.model.errors import Error


class SparkRunnerError(Error):
    """Starting, watching or running a Spark driver failed."""


class SubmissionError(SparkRunnerError):
    """The driver could not be started; no user code ran."""


class RefusedSubmission(SubmissionError):
    """The submission can never start, on any worker and after any number of retries."""


class NotConfigured(SubmissionError):
    """The configuration of a cluster on this host is missing or wrong; an operator can fix it."""


class PlanError(SparkRunnerError):
    """The plan of a run is damaged, or was written by another version."""


class StoppedAtStart(SparkRunnerError):
    """Spark lost its cluster before any user code ran."""


class RefusedAtStart(SparkRunnerError):
    """A cluster refused the application of a running driver before any user code ran."""


class PackagesUnusable(SparkRunnerError):
    """The packages of a job were installed for another Python or platform; no user code ran."""


class KillError(SparkRunnerError):
    """Processes of a run survived the last step of the kill ladder."""


class BackendUnreachable(SparkRunnerError):
    """A cluster gave no valid answer; the state of the applications there is unknown.

    `sent`: the request may have reached the cluster, so it may have taken effect.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


EXCEPTION_LINE = "the driver reports the exception that ended the program:"
"""The line before its traceback in the log of a driver; `run` leaves both out: its end shows the error."""
