"""A worker that starts before ZooKeeper waits for it, says so, and gives up at the end of its time."""

from pathlib import Path

import pytest

from queues import EmbeddedZooKeeper, ServerConfig
from queues.embedded.ports import free_ports
from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND_TIMEOUT_S, Shell


@pytest.fixture
def port(shell: Shell) -> int:
    """The port of a ZooKeeper that does not run, in the settings file of the shell."""
    (port,) = free_ports("127.0.0.1", 1)
    file = shell.write("config.toml", f"zookeeper_hosts = '127.0.0.1:{port}'\nconnect_timeout = '1s'\n")
    shell.environment["ORCHESTRATOR_CONFIG"] = str(file)
    return port


def test_a_worker_waits_for_an_ensemble_that_starts_later(shell: Shell, port: int, tmp_path: Path) -> None:
    worker = shell.start("worker", "--slots", "1")
    origin = f"zookeeper_hosts in {shell.directory / 'config.toml'}"
    worker.wait_for_words(f"waiting for ZooKeeper at 127.0.0.1:{port} ({origin}): no answer for 1 s; ")
    worker.wait_for_words("no answer for 2 s; this worker gives up after 120 s")
    with EmbeddedZooKeeper(ServerConfig(tmp_path / "late", port=port)):
        worker.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
        worker.terminate()
        assert worker.wait().code == 0


def test_a_worker_gives_up_at_the_end_of_its_time(shell: Shell, port: int) -> None:
    ended = shell.type("worker", ORCHESTRATOR_WORKER_CONNECT_TIMEOUT="2s")
    words = ended.stderr.splitlines()
    assert [line.partition(" ")[0] for line in words] == ["waiting", "error:"], ended.stderr
    hint = f"which comes from zookeeper_hosts in {shell.directory / 'config.toml'}"
    assert_error(ended, 3, f"ZooKeeper at 127.0.0.1:{port} did not answer within 2 s", hint)
    quiet = shell.type("worker", "--quiet", ORCHESTRATOR_WORKER_CONNECT_TIMEOUT="2s")
    assert (quiet.code, quiet.stderr) == (3, words[-1] + "\n")


@pytest.mark.usefixtures("port")
@pytest.mark.parametrize(("stop", "code"), [("press_ctrl_c", 130), ("terminate", 143)])
def test_a_signal_ends_the_wait(shell: Shell, stop: str, code: int) -> None:
    worker = shell.start("worker", ORCHESTRATOR_WORKER_CONNECT_TIMEOUT="1h")
    worker.wait_for_words("waiting for ZooKeeper")
    getattr(worker, stop)()
    ended = worker.wait(timeout=30)
    assert ended.code == code, ended.stderr
    assert "Traceback" not in ended.stderr
