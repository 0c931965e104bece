"""Errors of `spark_runner`: one tree, each message fit for a user."""


class SparkRunnerError(Exception):
    """Something about starting, watching or running a Spark driver failed."""


class SubmissionError(SparkRunnerError):
    """The driver could not be started at all; no user code ran."""


class RefusedSubmission(SubmissionError):
    """What was submitted can never be started, wherever and however often it is tried."""


class KillError(SparkRunnerError):
    """Processes of a run were still alive after the last step of the kill ladder."""
