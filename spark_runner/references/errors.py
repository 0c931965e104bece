"""Errors of references; none of their messages has a value."""

from spark_runner.protocol.errors import SparkRunnerError


class Unavailable(SparkRunnerError):
    """A source has no value for a name; the message says why."""


class Unresolved(SparkRunnerError):
    """A reference has no value where it is used; another attempt may find one."""
