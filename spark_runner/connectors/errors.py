"""Errors of connectors; the script that caused one is named by who catches it."""

from typing import Literal

from spark_runner.errors import SparkRunnerError


class ConnectorError(SparkRunnerError):
    """A connector refused to read or write, and says why; nothing was changed."""


class TargetChanged(ConnectorError):
    """What was there was changed by somebody else in this moment; another attempt may have more luck."""


class UnlikeColumns(ConnectorError):
    """The rows of an INSERT INTO have other columns than those that they would be added to."""


class OptionError(SparkRunnerError):
    """An option of a table is unknown, missing or has a value that cannot be used.

    `option` is the name as the user wrote it, or empty where the fault is not in one option; `fault` tells
    whether its name or its value is wrong.
    """

    def __init__(self, message: str, *, option: str = "", fault: Literal["name", "value"] = "name") -> None:
        super().__init__(message)
        self.option = option
        self.fault = fault
