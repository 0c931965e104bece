"""A session whose server is slow, silent, gone, or answers nonsense; and across a fork."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.protocol.states import KeeperState

from queues import EmbeddedZooKeeper, ServerConfig
from queues.model.errors import OutcomeUnknown, QueueError, SessionLost, Unreachable
from queues.model.operations import Create, Set
from queues.session import Session, SessionSettings, SessionState
from queues.store.commit import commit
from tests.waiting import wait_until

GRANTED = 3.0
"""The maximum session timeout of the test server in seconds."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    longest = (("maxSessionTimeout", str(round(GRANTED * 1000))),)
    config = ServerConfig(tmp_path_factory.mktemp("server"), tick_ms=500, settings=longest)
    with EmbeddedZooKeeper(config) as running:
        yield running


def open_session(server: EmbeddedZooKeeper, *, asked: float = 10, call_timeout: float = 20) -> Session:
    return Session(SessionSettings(server.hosts, session_timeout=asked, call_timeout=call_timeout))


@contextmanager
def silent(server: EmbeddedZooKeeper) -> Iterator[float]:
    """Suspend the server; yield the time since which it does not answer."""
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        # Its threads run until one of them has received the signal, which takes a while on a busy machine.
        wait_until(lambda: _states_of_threads(pid) == {"T"}, 10, "all threads of the server have stopped")
        yield time.monotonic()
    finally:
        os.kill(pid, signal.SIGCONT)


def _states_of_threads(pid: int) -> set[str]:
    try:
        stats = [path.read_text("utf-8") for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one has just ended
        return set()
    return {stat.rpartition(")")[2].split()[0] for stat in stats}


# ---------------------------------------------------------------------- loss
def test_the_loss_is_timed_by_what_the_server_grants(server: EmbeddedZooKeeper) -> None:
    for asked, granted in ((10.0, GRANTED), (2.0, 2.0), (0.1, 1.0)):
        with open_session(server, asked=asked) as session:
            assert session.negotiated_timeout == granted


def test_a_session_counts_as_lost_before_a_silent_server_can_have_ended_it(server: EmbeddedZooKeeper) -> None:
    changes: list[tuple[float, SessionState]] = []
    with open_session(server) as session:
        session.on_change(lambda: changes.append((time.monotonic(), session.state)))
        with silent(server) as since:
            wait_until(lambda: session.state is SessionState.LOST, 10, "it counts as lost")
            # Counted from the last answered request, which may have been a third earlier.
            assert GRANTED / 3 < time.monotonic() - since < GRANTED
            wait_until(lambda: changes and changes[-1][1] is SessionState.LOST, 2, "listeners are notified")
            assert changes[-1][0] - since < GRANTED
            assert [state for _, state in changes] == [SessionState.SUSPENDED, SessionState.LOST]
            assert 0 < session.seconds_without_contact() < GRANTED + 2
        wait_until(lambda: session.state is SessionState.CONNECTED, 10, "it is back")
        assert session.seconds_without_contact() == 0


def test_silence_is_noticed_while_requests_are_sent_all_the_time(server: EmbeddedZooKeeper) -> None:
    with open_session(server) as session:
        with silent(server) as since:
            while session.seconds_without_contact() == 0 and time.monotonic() - since < 10:
                session.post([Set("/zookeeper", b"", 99)])
                time.sleep(0.05)
            assert time.monotonic() - since < GRANTED
        wait_until(lambda: session.wait_connected(0.1), 10, "it is back")


def test_an_idle_session_is_never_taken_for_lost(server: EmbeddedZooKeeper) -> None:
    with open_session(server, asked=1) as session:
        until = time.monotonic() + 3
        states = set()
        while time.monotonic() < until:
            states.add(session.state)
            time.sleep(0.01)
        assert states == {SessionState.CONNECTED}
        assert session.generation == 0


def test_the_first_call_after_an_outage_works_soon_after_the_servers_return(
    server: EmbeddedZooKeeper,
) -> None:
    with open_session(server) as session:
        server.kill()
        gone = time.monotonic()
        answers: list[float] = []

        def call() -> None:
            session.exists("/")
            answers.append(time.monotonic())

        caller = threading.Thread(target=call)
        caller.start()
        wait_until(lambda: time.monotonic() - gone > 4, 5, "the outage lasts")
        assert not answers
        server.start()
        back = time.monotonic()
        caller.join(10)
        assert answers
        assert answers[0] - back < 5
        assert session.connections == 2


def test_no_pause_between_attempts_to_connect_is_longer_than_five_seconds(server: EmbeddedZooKeeper) -> None:
    session = open_session(server)
    retry = session._client._connection.retry_sleeper.copy()  # noqa: SLF001 - kazoo's, and not public
    pauses: list[float] = []

    def fail() -> None:
        pauses.append(0.0)
        if len(pauses) > 200:
            raise StopIteration
        raise retry.retry_exceptions[0]

    def sleep(seconds: float) -> None:
        pauses[-1] += seconds

    retry.sleep_func, retry.interrupt = sleep, None
    with pytest.raises(StopIteration):
        retry(fail)
    assert 1 < max(pauses) < 5


# ---------------------------------------------------------------------- deadlines
def test_every_call_ends_by_its_deadline_when_the_server_is_silent(server: EmbeddedZooKeeper) -> None:
    session = open_session(server, call_timeout=0.5).start()
    with silent(server):
        calls: tuple[tuple[Callable[[], object], type[QueueError]], ...] = (
            (lambda: session.get("/"), Unreachable),
            (lambda: session.get_many(["/"]), Unreachable),
            (lambda: session.ensure_path("/never"), Unreachable),
            (lambda: commit(session, [Create("/never")]), OutcomeUnknown),
        )
        for call, error in calls:
            started = time.monotonic()
            with pytest.raises(error):
                call()
            assert time.monotonic() - started < 2
        started = time.monotonic()
        session.close()
        assert time.monotonic() - started < 5


def test_a_start_without_a_server_ends_by_its_deadline(server: EmbeddedZooKeeper) -> None:
    server.kill()
    try:
        started = time.monotonic()
        with pytest.raises(Unreachable), Session(SessionSettings(server.hosts, connect_timeout=1)):
            pass
        assert time.monotonic() - started < 4
    finally:
        server.start()


def test_a_waiter_for_the_connection_is_woken_by_the_close(server: EmbeddedZooKeeper) -> None:
    session = open_session(server).start()
    server.kill()
    try:
        wait_until(lambda: session.state is not SessionState.CONNECTED, 5, "the server is gone")
        errors: list[Exception] = []

        def wait() -> None:
            try:
                session.get("/")
            except SessionLost as error:
                errors.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        session.close()
        waiter.join(5)
        assert ["closed" in str(error) for error in errors] == [True]
    finally:
        server.start()


def test_a_request_without_a_connection_is_not_sent_after_the_outage(
    server: EmbeddedZooKeeper,
) -> None:
    with open_session(server) as session:
        server.kill()
        try:
            wait_until(lambda: session.state is not SessionState.CONNECTED, 5, "the server is gone")
            posted = [session.post([Create("/late")]) for _ in range(20)]
        finally:
            server.start()
        for multi in posted:
            with pytest.raises(Exception, match="ConnectionLoss"):
                multi.results(1)
        assert session.exists("/late") is None


# ---------------------------------------------------------------------- kazoo's thread
def test_a_listener_that_raises_or_blocks_hinders_no_other(
    server: EmbeddedZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    with open_session(server) as session:
        stuck, changed = threading.Event(), threading.Semaphore(0)
        calls: list[str] = []

        def fail() -> None:
            calls.append("failed")
            raise ValueError("of a listener")

        def block() -> None:
            calls.append("stuck")
            stuck.wait(30)

        session.on_change(fail)
        session.on_change(block)
        session.on_change(changed.release)
        drop(session)
        assert changed.acquire(timeout=5)
        wait_until(lambda: session.connections == 2, 5, "the connection is back")
        assert changed.acquire(timeout=5)
        assert session.exists("/") is not None
        assert "of a listener" in caplog.text
        stuck.set()
        wait_until(lambda: calls.count("stuck") == 2, 5, "it receives the missed change")
        assert calls.count("failed") == 2


def test_a_listener_may_ask_zookeeper(server: EmbeddedZooKeeper) -> None:
    with open_session(server) as session:
        seen: list[object] = []
        session.on_change(lambda: seen.append(session.exists("/")))
        drop(session)
        wait_until(lambda: seen, 5, "it is answered")
        assert all(seen)


def drop(session: Session) -> None:
    """Break the connection; the session continues."""
    connections = session.connections
    session._client._connection._socket.shutdown(2)  # noqa: SLF001 - the wire
    wait_until(lambda: session.connections > connections, 10, "it is connected again")


def test_nonsense_on_the_wire_costs_a_connection_and_not_the_session(
    server: EmbeddedZooKeeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with open_session(server) as session:
        connection, session_id = session._client._connection, session.id  # noqa: SLF001 - where replies arrive
        read = connection._read_response  # noqa: SLF001 - likewise

        def garble(*_: Any) -> Any:
            monkeypatch.setattr(connection, "_read_response", read)
            raise RuntimeError("xids do not match")

        monkeypatch.setattr(connection, "_read_response", garble)
        with caplog.at_level(logging.CRITICAL, logger="kazoo"):
            assert session.exists("/") is not None
        assert session.connections == 2
        assert session.id == session_id
        assert session._client.client_state == KeeperState.CONNECTED  # noqa: SLF001 - likewise


# ---------------------------------------------------------------------- fork
CHILD = """
    import os, sys, time
    from queues.embedded.packets import send_four_letter_word
    from queues.model.errors import SessionLost
    from queues.model.operations import Create
    from queues.session import Session, SessionSettings, SessionState
    from queues.store.commit import commit

    session = Session(SessionSettings(sys.argv[1], session_timeout=2, call_timeout=20)).start()
    held = "/held-" + str(os.getpid())
    commit(session, [Create(held, ephemeral=True)])
    before = session.id, session.connections
    guard = session._reads._joint._guard
    guard.acquire()  # as another thread of the parent may have, at any moment
    pid = os.fork()
    if pid == 0:
        assert session.state is SessionState.LOST
        for call in (
            lambda: session.get("/"),
            lambda: session.get_many(["/"]),
            lambda: session.post([Create("/never")]),
            lambda: commit(session, [Create("/never")]),
            lambda: session.wait_connected(10),
        ):
            started = time.monotonic()
            try:
                call()
            except SessionLost as error:
                assert "open one in the child" in str(error), error
            else:
                raise AssertionError("no error")
            assert time.monotonic() - started < 1
        started = time.monotonic()
        session.close()
        with Session(SessionSettings(sys.argv[1])) as own:
            assert own.exists(held) is not None
        assert time.monotonic() - started < 5
        sys.exit(7)  # the usual way out, with all that is to be done at the exit
    guard.release()
    waited, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
    def pings():  # what the server has got from this session
        answer = send_four_letter_word(sys.argv[1], "cons")
        (mine,) = [line for line in answer.splitlines() if f"sid={session.id:#x}," in line]
        return int(mine.partition("recved=")[2].partition(",")[0])
    before_pings, deadline = pings(), time.monotonic() + 20
    while pings() < before_pings + 3:  # one in a third of its timeout: it is kept alive
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert session.exists(held).owner == session.id
    assert (session.id, session.connections, session.state) == (*before, SessionState.CONNECTED)
    session.close()
    print("unharmed")
"""


def test_a_forked_child_gets_an_error_that_says_what_to_do_and_the_parent_continues(
    server: EmbeddedZooKeeper,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), server.hosts],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("unharmed\n", "", 0)


def test_a_forgotten_watcher_is_not_called_and_the_others_are(server: EmbeddedZooKeeper) -> None:
    with open_session(server) as session:
        commit(session, [Create("/watched", b"")])
        kept, forgotten = threading.Event(), threading.Event()
        session.get("/watched", forgotten.set)
        session.get("/watched", kept.set)
        session.forget("/watched", forgotten.set)
        session.forget("/elsewhere", forgotten.set)
        commit(session, [Set("/watched", b"new", -1)])
        assert kept.wait(10)
        assert not forgotten.is_set()


def test_a_program_without_logging_sees_the_error_of_a_refused_connection_alone() -> None:
    program = (
        "import queues\n"
        "try:\n"
        "    queues.Session(queues.SessionSettings('127.0.0.1:1', connect_timeout=1)).start()\n"
        "except queues.Unreachable as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Unreachable\n", "")
