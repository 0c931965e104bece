"""The loss and the return of a connection to ZooKeeper are logged, each once and with their durations."""

import logging
import re

import pytest

from queues import EmbeddedZooKeeper
from queues.session import Session, SessionState
from tests.integration.test_session import open_session, server, silent
from tests.queues_support import expire
from tests.waiting import wait_until

__all__ = ["server"]  # the fixture

_SOON_S = 10
_NAME = "queues.session.connection_log"


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """The level and the text of each line, without addresses and sessions."""
    return [
        (
            record.levelname,
            re.sub(r"0x[0-9a-f]+", "X", re.sub(r"127\.0\.0\.1:\d+", "HOST", record.getMessage())),
        )
        for record in caplog.records
        if record.name == _NAME
    ]


def wait_for_state(session: Session, state: SessionState) -> None:
    wait_until(lambda: session.state is state, _SOON_S, f"it is {state}")


def test_an_outage_within_the_session_is_logged_with_its_length(
    server: EmbeddedZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with open_session(server) as session:
        with silent(server):
            wait_for_state(session, SessionState.SUSPENDED)
        wait_for_state(session, SessionState.CONNECTED)
    first, suspended, back = lines(caplog)
    assert first == ("INFO", "connected to ZooKeeper at HOST, session X")
    assert suspended == ("INFO", "the connection to ZooKeeper is suspended, session X")
    assert back[0] == "INFO"
    assert re.fullmatch(
        r"the connection to ZooKeeper is back after \d\.\d s, at HOST: session X is kept", back[1]
    )


def test_a_session_that_counts_as_lost_is_a_warning_and_only_one(
    server: EmbeddedZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with open_session(server) as session:
        with silent(server):
            wait_until(lambda: any("is lost" in words for _, words in lines(caplog)), _SOON_S, "it is logged")
        wait_for_state(session, SessionState.CONNECTED)
    (level, words), *others = [line for line in lines(caplog) if "is lost" in line[1]]
    assert (level, others) == ("WARNING", [])
    assert re.fullmatch(r"session X is lost: it had no contact with ZooKeeper for \d\.\d s", words)
    assert " is back after " in lines(caplog)[-1][1]


def test_a_session_that_zookeeper_has_ended_is_replaced(
    server: EmbeddedZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with open_session(server) as session:
        expire(session)
    assert ("WARNING", "session X is lost: ZooKeeper has ended it") in lines(caplog)
    assert lines(caplog)[-1][1].endswith("session X replaces X, which has ended")
