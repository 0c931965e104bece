"""A worker with `--metrics-address`, as its operator sees it."""

import re
import urllib.request

import psutil
import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND_TIMEOUT_S, Running, Shell
from tests.waiting import wait_until

_URL = re.compile(r"served at (http://127\.0\.0\.1:\d+)")


def listens(running: Running) -> list[str]:
    """The hosts of the addresses on which a process listens."""
    found = psutil.Process(running.pid).net_connections("inet")
    return [each.laddr[0] for each in found if each.status == psutil.CONN_LISTEN]


def test_a_worker_serves_metrics_and_probes_at_the_given_address(shared_shell: Shell) -> None:
    quiet = shared_shell.start("worker", "--slots", "1")
    worker = shared_shell.start("worker", "--slots", "3", "--metrics-address", "0")
    worker.wait_for_words("3 slots", COMMAND_TIMEOUT_S)
    found = _URL.search(worker.stderr)
    assert found is not None

    def read(path: str) -> str:
        with urllib.request.urlopen(found[1] + path, timeout=30) as answer:  # noqa: S310 - http, by the pattern above
            return str(answer.read().decode())

    def is_ready() -> bool:
        try:
            return read("/readyz") == "ok\n"
        except OSError:
            return False

    wait_until(is_ready, COMMAND_TIMEOUT_S, "it is ready")
    live = read("/livez?verbose")
    assert "[+]consumer ok\n" in live
    assert "[+]driver-logs ok\n" in live
    lines = read("/metrics").splitlines()
    assert "orchestrator_slots 3.0" in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert listens(worker) == ["127.0.0.1"]
    quiet.wait_for_words("1 slot", COMMAND_TIMEOUT_S)
    assert listens(quiet) == [], "nothing listens by default"
    port = found[1].rpartition(":")[2]
    # On this port another worker of the host listens.
    third = shared_shell.type("worker", "--metrics-address", port)
    assert_error(third, 2, f"metrics.address {port} cannot be listened on: Address already in use")
    assert read("/readyz") == "ok\n"
    worker.terminate()
    assert worker.wait().code == 0


@pytest.mark.parametrize(
    ("address", "words"),
    [("0.0.0.0:9187", "other hosts can reach"), (":9187", "is not [host:]port")],
)
def test_an_address_that_is_open_to_other_hosts_or_invalid_is_refused(
    shell: Shell, address: str, words: str
) -> None:
    assert_error(shell.type("worker", "--metrics-address", address), 2, words)
