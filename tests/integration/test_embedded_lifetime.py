import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from queues import EmbeddedZooKeeper, ServerConfig, running_server
from queues.embedded.guarded import GRACE_S
from tests.owner_process import owner_process
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until

TICK_MS = 500

GONE_S = 20
"""Time for the guard's grace, its kill, and a slow machine."""

OWNER_PROGRAM = """
import signal, sys
from pathlib import Path
from queues import EmbeddedZooKeeper, ServerConfig
from queues.embedded import guarded
guarded.GRACE_S = 1.0
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
with EmbeddedZooKeeper(ServerConfig(Path(sys.argv[1]), tick_ms=500, owner="child")) as server:
    print(server.hosts, server.pid, server.guard_pid, flush=True)
    sys.stdin.read()
"""


def config(data_dir: Path) -> ServerConfig:
    return ServerConfig(data_dir, tick_ms=TICK_MS)


def ended(process: psutil.Process) -> bool:
    """Whether a process has ended; one without a parent stays a zombie until init reaps it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Owner:
    """Another Python process that owns a server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line, "the owner did not start its server"
        self.hosts = line[0]
        self.server, self.guard = psutil.Process(int(line[1])), psutil.Process(int(line[2]))

    def gone(self) -> bool:
        return ended(self.server) and ended(self.guard)


@contextmanager
def owner_of(data_dir: Path) -> Iterator[Owner]:
    with owner_process(OWNER_PROGRAM, data_dir) as process:
        yield Owner(process)


def test_a_new_server_can_start_at_once_when_the_owner_is_killed(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        owner.process.kill()
        owner.process.wait()
        with EmbeddedZooKeeper(config(tmp_path)) as server:
            assert server.mode() == "standalone"
            assert owner.gone()


def test_a_stuck_server_is_killed_when_the_owner_is_killed(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        owner.server.suspend()  # ignores TERM
        owner.process.kill()
        wait_until(owner.gone, GONE_S, "server and guard are gone")


def test_no_process_is_left_when_the_guard_is_killed(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path)).start()
    assert server.pid is not None
    assert server.guard_pid is not None
    process = psutil.Process(server.pid)
    os.kill(server.guard_pid, signal.SIGKILL)
    wait_until(lambda: ended(process), GONE_S, "the server is gone")
    wait_until(lambda: not server.is_running(), GONE_S, "the owner sees it")
    # The threads of a killed JVM end, with all they hold, a moment after its first one.
    wait_until(lambda: running_server(tmp_path) is None, GONE_S, "it is not reported any more")
    server.stop()


def test_the_owner_sees_that_the_server_died(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(config(tmp_path)) as server:
        assert server.pid is not None
        psutil.Process(server.pid).kill()
        wait_until(lambda: not server.is_running(), GONE_S, "the owner sees it")
        assert server.mode() is None
        assert server.start().mode() == "standalone"


def test_an_interrupt_from_the_terminal_reaches_the_owner_and_not_the_server(tmp_path: Path) -> None:
    with owner_of(tmp_path) as owner:
        assert owner.process.stdout is not None
        assert owner.process.stdin is not None
        os.killpg(owner.process.pid, signal.SIGINT)
        assert owner.process.stdout.readline() == "interrupted\n"
        with zookeeper_client(owner.hosts) as client:
            assert client.get_children("/") == ["zookeeper"]
        owner.process.stdin.close()  # a normal end of the program
        assert owner.process.wait(GONE_S) == 0
        assert owner.gone()


def test_a_forked_child_does_not_hold_up_the_end(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(config(tmp_path)).start()
    assert server.pid is not None
    process = psutil.Process(server.pid)
    held, hold = os.pipe()
    child = os.fork()
    if not child:  # has a copy of the pipe by which the guard learns of our end
        os.close(hold)
        os.read(held, 1)
        os._exit(0)
    os.close(held)
    try:
        started = time.monotonic()
        server.stop()
        assert ended(process)
        assert time.monotonic() - started < GRACE_S
    finally:
        os.close(hold)
        os.waitpid(child, 0)
