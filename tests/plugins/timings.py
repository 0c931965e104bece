"""Timings of a run: seconds by folder and kind, the slowest tests, and a limit for each test in CI."""

import heapq
import os
import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

from tests.machine import measured_slowness, slowness
from tests.plugins.kinds import KIND, Kind
from tests.sampling import is_whole, seed

MAX_SECONDS = 60.0
"""Limit of one test on the reference machine, without the start of shared servers; none for campaigns."""

_SLOWEST = 10
_WIDTH = 14
_SERVERS = "servers"  # used as a kind: the time of fixtures of the session
_spent = pytest.StashKey[float]()
_for_all = pytest.StashKey[float]()
_ends_servers = pytest.StashKey[bool]()


class Timings:
    """The timings of all tests of a run, in the process that reports."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, str], float] = defaultdict(float)  # by id and kind
        self._cells: dict[tuple[str, str], float] = defaultdict(float)  # by folder and kind

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        given: dict[str, Any] = dict(report.user_properties)
        if "kind" not in given:  # its worker process has crashed
            return
        kind, folder = given["kind"], "/".join(report.nodeid.split("/")[:2])
        self._tests[report.nodeid.partition("@")[0], kind] += report.duration
        self._cells[folder, kind] += report.duration
        if report.when == "teardown" and (servers := given.get(_SERVERS)):
            self._tests[report.nodeid.partition("@")[0], kind] -= servers
            self._cells[folder, kind] -= servers
            self._cells[folder, _SERVERS] += servers

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders = sorted({folder for folder, _ in self._cells})
        rows = {
            str(kind): [self._cells[folder, str(kind)] for folder in folders] for kind in (*Kind, _SERVERS)
        }
        rows["all"] = [sum(cells) for cells in zip(*rows.values(), strict=True)]
        terminalreporter.section("seconds of the workers, by kind and folder")
        heads = (folder.removeprefix("tests/") for folder in folders)
        terminalreporter.write_line("".join(f"{name:>{_WIDTH}}" for name in ("", *heads, "all")))
        for name, cells in rows.items():
            seconds = "".join(f"{each:{_WIDTH}.0f}" for each in (*cells, sum(cells)))
            terminalreporter.write_line(f"{name:>{_WIDTH}}{seconds}")
        terminalreporter.section(f"the {_SLOWEST} slowest tests")
        slowest = heapq.nlargest(_SLOWEST, self._tests.items(), key=lambda test: test[1])
        for (test, kind), spent in slowest:
            terminalreporter.write_line(f"{spent:6.1f} s  {kind:13}  {test}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the timings in the process that reports."""
    os.environ["ORCHESTRATOR_SEED"] = str(seed())  # for worker processes, too
    slowness()  # likewise
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timings(), "timings")


def pytest_report_header() -> list[str]:
    """The seed of the samples of campaigns, and the speed of the machine."""
    return [
        f"campaigns: ORCHESTRATOR_SEED={seed()}",
        f"machine: work takes {slowness():.1f} times as long as on the reference machine",
    ]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Measure the time that a test spends on the start of shared servers."""
    began = time.monotonic()
    result = yield
    if fixturedef.scope == "session":
        item: pytest.Item = request._pyfuncitem  # noqa: SLF001 - no public way from a fixture of the session
        item.stash[_for_all] = item.stash.get(_for_all, 0.0) + time.monotonic() - began
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The last test of a process also stops shared servers."""
    item.stash[_ends_servers] = nextitem is None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that takes too long for CI."""
    report = yield
    if report.when != "teardown" or not item.stash[_ends_servers]:
        item.stash[_spent] = item.stash.get(_spent, 0.0) + report.duration
    if report.when == "teardown":
        servers = item.stash.get(_for_all, 0.0)
        report.user_properties.append((_SERVERS, servers))
        own, limited = item.stash[_spent] - servers, item.stash[KIND] is not Kind.CAMPAIGN and not is_whole()
        if own > MAX_SECONDS and limited and report.passed and os.environ.get("CI") == "true":
            limit = MAX_SECONDS * max(slowness(), measured_slowness())
            if own > limit:
                report.outcome = "failed"
                report.longrepr = (
                    f"it took {own:.0f} s; a test that is no campaign may take {limit:.0f} s here"
                )
    return report
