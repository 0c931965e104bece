"""Errors of connectors; the caller adds the place in the script."""

from typing import Literal

from spark_runner.protocol.errors import SparkRunnerError


class ConnectorError(SparkRunnerError):
    """A connector refused to read or write; nothing was changed."""


class TargetChanged(ConnectorError):
    """Another writer changed the target at the same time; another attempt may succeed."""


class Unreachable(ConnectorError):
    """A system does not answer, or has closed a connection; another attempt may succeed."""


class OtherRows(ConnectorError):
    """A partition does not have the rows that an earlier attempt delivered."""


class NothingThere(ConnectorError):
    """The data that a table names does not exist; an INSERT of the same script may create it."""


class UnlikeColumns(ConnectorError):
    """The rows of an INSERT INTO do not have the columns of the existing rows."""


class NotInstalled(ConnectorError):
    """A package with a connector is not installed on this host."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"connector '{name}' is not installed here; install its package on every host that runs a worker"
        )
        self.name = name


class OptionError(SparkRunnerError):
    """An option of a table is unknown, missing or has an invalid value.

    `option` is the name as the user wrote it, or empty if the fault is not in a single option; `fault` is the
    wrong part, its name or its value. `quoted` is the text of the value that the message quotes; it may
    be that of a variable, and a secret. `others` are the further errors of the same table.
    """

    others: tuple["OptionError", ...] = ()

    def __init__(
        self, message: str, *, option: str = "", fault: Literal["name", "value"] = "name", quoted: str = ""
    ) -> None:
        super().__init__(message)
        self.option = option
        self.fault = fault
        self.quoted = quoted
