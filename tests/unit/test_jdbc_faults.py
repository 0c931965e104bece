"""Faults of a database server, of which a further attempt may be free, in the driver and in tasks."""

import re

import pytest
from pyspark.errors import PySparkException

from spark_runner.connectors.arrow_tasks import error_of_task
from spark_runner.connectors.errors import ConnectorError, TargetChanged, Unreachable
from spark_runner.connectors.jdbc.address import parse
from spark_runner.connectors.jdbc.failures import DatabaseFailed, failure
from spark_runner.driver.outcome import is_permanent

MYSQL_FAULTS = [
    ("HY000", 1205, TargetChanged, "another transaction"),
    ("40001", 1213, TargetChanged, "another transaction"),
    ("HY000", 1290, Unreachable, "takes no writes.*primary"),
    ("HY000", 1836, Unreachable, "takes no writes.*primary"),
    ("HY000", 1021, Unreachable, "is full"),
    ("S1000", 1114, Unreachable, "is full"),
    ("70100", 1317, Unreachable, "ended the statement"),
    ("70100", 1927, Unreachable, "ended the statement"),
    ("70100", 1969, Unreachable, "max_statement_time"),
    ("HY000", 3024, Unreachable, "max_execution_time"),
    ("HY000", 1364, None, "no"),  # a column without a default
    ("42000", 1064, None, "no"),
]


@pytest.mark.parametrize(("state", "code", "kind", "words"), MYSQL_FAULTS)
def test_faults_of_a_server_of_mysql_allow_a_further_attempt(
    state: str, code: int, kind: type[ConnectorError] | None, words: str
) -> None:
    found = failure(parse("jdbc:mysql://h/shop"), "no", state, code)
    assert isinstance(found, kind or DatabaseFailed)
    assert re.search(words, str(found))
    assert is_permanent(found) == (kind is None)


class JavaClass:
    """What an error asks of a class of Java."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def getName(self) -> str:  # noqa: N802 - of Java
        return self.names[0]

    def getSuperclass(self) -> "JavaClass | None":  # noqa: N802 - of Java
        return JavaClass(*self.names[1:]) if self.names[1:] else None


class JavaError:
    """What a failed task of Spark has as its cause, an SQLException."""

    def __init__(self, state: str, code: int) -> None:
        self.state, self.code = state, code

    def getClass(self) -> JavaClass:  # noqa: N802 - of Java
        return JavaClass("java.sql.SQLTransientException", "java.sql.SQLException", "java.lang.Exception")

    def getSQLState(self) -> str:  # noqa: N802 - of Java
        return self.state

    def getErrorCode(self) -> int:  # noqa: N802 - of Java
        return self.code

    def getMessage(self) -> str:  # noqa: N802 - of Java
        return "no"

    def getCause(self) -> None:  # noqa: N802 - of Java
        return None


@pytest.mark.parametrize(
    ("state", "code", "kind", "words"),
    [
        *MYSQL_FAULTS,
        ("25006", 0, Unreachable, "takes no writes"),
        ("25P03", 0, Unreachable, "suspended"),
        ("57014", 0, Unreachable, "statement_timeout"),
        ("08006", 0, Unreachable, "does not answer"),
        ("53100", 0, Unreachable, "refused: no; its disk"),
        ("22008", 1836, None, "no"),  # of another vendor, who has other numbers
        ("42601", 0, None, "no"),
    ],
)
def test_an_error_of_java_in_a_task_is_the_same_as_in_the_driver(
    state: str, code: int, kind: type[ConnectorError] | None, words: str
) -> None:
    raised = PySparkException("a task failed")
    raised._origin = JavaError(state, code)  # type: ignore[attr-defined]  # noqa: SLF001 - where PySpark keeps it
    found = error_of_task(raised)
    if kind is None:
        assert found is raised
    else:
        assert type(found) is kind
        assert re.search(words, str(found))


@pytest.mark.parametrize(
    ("state", "code", "words", "may_pass"),
    [
        ("08S01", 1153, "Got a packet bigger than 'max_allowed_packet' bytes", False),
        ("HZ000", 0, "Packet too big for current server max_allowed_packet value", False),
        ("08000", 0, "Connection is closed", True),
        ("08000", 0, "Socket error", True),
    ],
)
def test_a_packet_that_is_too_large_names_the_setting_of_the_server(
    state: str, code: int, words: str, *, may_pass: bool
) -> None:
    found = failure(parse("jdbc:mariadb://h/shop"), words, state, code)
    assert isinstance(found, Unreachable) == may_pass
    assert "set max_allowed_packet of the server to more than twice" in str(found)
