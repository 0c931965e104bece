import subprocess

from queues.embedded.ports import free_ports
from queues.embedded.zkcli import zkcli_command
from tests.servers.zookeeper import zookeeper_client


def test_zkcli_prints_the_answer_and_nothing_else(zookeeper_hosts: str, zookeeper_root: str) -> None:
    with zookeeper_client(zookeeper_hosts) as client:
        client.create(zookeeper_root, b"\nWATCHER::\nConnecting to the data")

    def zkcli(*args: str) -> subprocess.CompletedProcess[str]:
        command = zkcli_command(zookeeper_hosts, args)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    got = zkcli("get", zookeeper_root)
    assert (got.returncode, got.stdout, got.stderr) == (0, "\nWATCHER::\nConnecting to the data\n", "")
    missing = zkcli("get", f"{zookeeper_root}/none")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == f"Node does not exist: {zookeeper_root}/none\n"


def test_zkcli_finds_the_member_that_answers(zookeeper_hosts: str) -> None:
    down = ",".join(f"127.0.0.1:{port}" for port in free_ports("127.0.0.1", 5))
    command = zkcli_command(f"{down},{zookeeper_hosts}", ["ls", "/zookeeper"])
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[config, quota]\n")


def test_zkcli_without_arguments_asks_for_commands(zookeeper_hosts: str) -> None:
    command = zkcli_command(zookeeper_hosts, [])
    done = subprocess.run(
        command, input="ls /zookeeper\n", capture_output=True, text=True, check=False, timeout=60
    )
    assert "[config, quota]" in done.stdout
