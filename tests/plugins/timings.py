"""What a run took: seconds by folder and kind, the slowest tests, and a limit for each in CI."""

import os
import time
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tests.plugins.kinds import KIND, Kind
from tests.sampling import seed

MAX_SECONDS = 60.0
"""Of one test in its worker, without the servers that it starts for all; campaigns have no limit here."""

_SLOWEST = 10
_SERVERS = "servers"  # in place of a kind: what fixtures of the session took
_spent = pytest.StashKey[float]()
_for_all = pytest.StashKey[float]()


class Timings:
    """Of all tests of a run; in the process that reports."""

    def __init__(self) -> None:
        self._tests: Counter[tuple[str, str]] = Counter()  # by id and kind
        self._cells: Counter[tuple[str, str]] = Counter()  # by folder and kind

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        given: dict[str, Any] = dict(report.user_properties)
        kind, folder = given["kind"], "/".join(report.nodeid.split("/")[:2])
        self._tests[report.nodeid.partition("@")[0], kind] += report.duration
        self._cells[folder, kind] += report.duration
        if report.when == "teardown" and (servers := given.get(_SERVERS)):
            self._tests[report.nodeid.partition("@")[0], kind] -= servers
            self._cells[folder, kind] -= servers
            self._cells[folder, _SERVERS] += servers

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        columns = [*(str(kind) for kind in Kind), _SERVERS]
        folders = sorted({folder for folder, _ in self._cells})
        rows = [[folder, *(self._cells[folder, column] for column in columns)] for folder in folders]
        rows.append(["all", *(sum(self._cells[folder, column] for folder in folders) for column in columns)])
        terminalreporter.section("seconds of the workers, by folder and kind")
        terminalreporter.write_line("".join(f"{name:>15}" for name in ("", *columns, "all")))
        for name, *seconds in rows:
            cells = "".join(f"{each:15.0f}" for each in (*seconds, sum(seconds)))
            terminalreporter.write_line(f"{name:>15}{cells}")
        terminalreporter.section(f"the {_SLOWEST} slowest tests")
        for (test, kind), seconds in self._tests.most_common(_SLOWEST):
            terminalreporter.write_line(f"{seconds:6.1f} s  {kind:13}  {test}")


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that reports, be there a worker process or not."""
    os.environ["ORCHESTRATOR_SEED"] = str(seed())  # for worker processes, too
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timings(), "timings")


def pytest_report_header() -> str:
    """Which samples of the campaigns are tried."""
    return f"campaigns: ORCHESTRATOR_SEED={seed()}"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Count what a test waits for servers that it starts for all."""
    began = time.monotonic()
    result = yield
    if fixturedef.scope == "session":
        item: pytest.Item = request._pyfuncitem  # noqa: SLF001 - a fixture of the session has no public way to it
        item.stash[_for_all] = item.stash.get(_for_all, 0.0) + time.monotonic() - began
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that takes too long for CI."""
    report = yield
    item.stash[_spent] = item.stash.get(_spent, 0.0) + report.duration
    if report.when == "teardown":
        servers = item.stash.get(_for_all, 0.0)
        report.user_properties.append((_SERVERS, servers))
        own, limited = item.stash[_spent] - servers, item.stash[KIND] is not Kind.CAMPAIGN
        if own > MAX_SECONDS and limited and report.passed and os.environ.get("CI") == "true":
            report.outcome = "failed"
            report.longrepr = f"it took {own:.0f} s; a test that is no campaign may take {MAX_SECONDS:.0f} s"
    return report
