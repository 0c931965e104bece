"""Errors of `spark_runner`: one tree, each message fit for a user."""


class SparkRunnerError(Exception):
    """Something about starting, watching or running a Spark driver failed."""


class SubmissionError(SparkRunnerError):
    """The driver could not be started at all; no user code ran."""


class RefusedSubmission(SubmissionError):
    """What was submitted can never be started, wherever and however often it is tried."""


class NotConfigured(SubmissionError):
    """What this host knows of a cluster is missing or wrong: its operator can mend that."""


class PlanError(SparkRunnerError):
    """The plan of a run is damaged, or was written by another version."""


class StoppedAtStart(SparkRunnerError):
    """Spark gave up its cluster before any user code ran."""


class RefusedAtStart(SparkRunnerError):
    """A cluster refused the application of a driver that was running already, before any user code ran."""


class KillError(SparkRunnerError):
    """Processes of a run were still alive after the last step of the kill ladder."""


class BackendUnreachable(SparkRunnerError):
    """A cluster did not answer as it should; nothing follows from that for what runs there.

    `sent`: the request may have reached it, so that what was asked for may have been done.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
