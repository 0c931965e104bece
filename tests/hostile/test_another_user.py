"""Another user of the host against `run`, `up`, a worker with login and ACL, and a warm server."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from queues import login_of, running_server
from spark_runner.protocol.process import processes_of
from tests.acceptance.support import SPARK_TIMEOUT_S, Running, Shell, has_started, program_that_waits
from tests.another_user import STRANGER
from tests.hostile import attacks
from tests.hostile.attacks import booty
from tests.hostile.targets import Target, contents, family, listening
from tests.hostile.thief import loot
from tests.hostile_server import stranger
from tests.jar_support import spark_jars
from tests.servers.secured import ADA, BOB, OTHER_SECRET, SECRET, Secured
from tests.servers.zookeeper import tree
from tests.waiting import wait_until
from tests.warm_support import WarmHouse

ROW = "row-that-is-for-its-job-alone"
KEEPS_ROWS = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(3).selectExpr("concat('{ROW}', id) AS row").coalesce(1).cache().count()
"""
PLANTED = "word-of-the-conf"
WAIT_S = 60


def nodes(
    hosts: str, root: str = "/", digest: str = "", sasl: dict[str, str] | None = None
) -> tuple[str, ...]:
    """The nodes from `root` down, read with all rights.

    On a shared server `root` is that of the test: this login cannot read the nodes of others.
    """
    client = KazooClient(hosts, auth_data=[("digest", digest)] if digest else None, sasl_options=sasl)
    client.start(timeout=30)
    try:
        return tuple(tree(client, root))
    finally:
        client.stop()
        client.close()


def started(shell: Shell, command: str, program: str = "", then: str = "") -> tuple[Running, Path]:
    """`run` or `up` with one job, whose program waits for the file and then runs `then`."""
    has_begun, go_on = shell.directory / "started", shell.directory / "go on"
    conf = {"spark.planted.password": PLANTED}
    job = shell.python_job("ours", program + program_that_waits(has_begun, go_on) + then, conf)
    if command == "run":
        running = shell.start("run", str(job), "--id", "ours")
    else:
        running = shell.start(command)
        running.wait_for_words("Ctrl-C ends them" if command == "up" else "worker")
        assert shell.type("job", "submit", str(job), "--id", "ours").code == 0
    wait_until(lambda: has_started(has_begun) or running.has_ended, SPARK_TIMEOUT_S, "our job runs")
    assert has_started(has_begun), running.stderr
    return running, go_on


def with_its_own_server(shell: Shell, running: Running) -> Target:
    data = shell.state_dir / "zookeeper"
    server, login = running_server(data), login_of(data)
    assert server is not None
    assert login is not None
    pids = family(running.pid)
    assert {server.pid} < {*pids}
    return Target(
        pids=pids,
        ports=listening(pids),
        folders=(shell.state_dir,),
        files=contents((shell.state_dir,)),
        secrets=(login.secret(), PLANTED),
        zookeeper=server.address,
        nodes=nodes(server.address, digest=f"{login.user}:{login.secret()}"),
    )


# ---------------------------------------------------------------------- what is prevented
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_another_user_gets_nothing_of_run_and_its_spark(shell: Shell, shelf: Path) -> None:
    running, go_on = started(shell, "run", KEEPS_ROWS)
    target = with_its_own_server(shell, running)
    assert len(target.ports) > 2, "ZooKeeper, the gateway of Python, RPC and blocks of Spark"
    assert booty(attacks.ALL, target) == {}
    assert booty(attacks.ON_ZOOKEEPER, replace(target, digest="orchestrator:guessed")) == {}
    said = loot(target.ports, shelf)
    assert "Expected SaslMessage" in said
    assert " gave " not in said
    go_on.touch()
    assert running.wait(SPARK_TIMEOUT_S).code == 0


def test_another_user_gets_nothing_of_up(shell: Shell) -> None:
    shell.use_stand_ins()
    shell.environment["ORCHESTRATOR_CACHE_DIR"] = str(shell.directory / "cache")
    running, go_on = started(shell, "up")
    target = with_its_own_server(shell, running)
    assert booty(attacks.ALL, target) == {}
    go_on.touch()
    assert shell.type("job", "wait", "ours").code == 0
    assert [job["id"] for job in shell.jobs()] == ["ours"]


@contextmanager
def guarded_worker(shell: Shell, secured: Secured) -> Iterator[Target]:
    """A worker with a login and private nodes, and a running job."""
    shell.use_stand_ins()
    password = shell.write("password", SECRET)
    password.chmod(0o600)
    root = f"/{shell.directory.name}/orchestrator"
    shell.environment |= {
        "ZOOKEEPER_HOSTS": secured.plain,
        "ORCHESTRATOR_ROOT": root,
        "ORCHESTRATOR_ZOOKEEPER_ACL": "creator",
        "ORCHESTRATOR_ZOOKEEPER_LOGIN__USER": ADA.user,
        "ORCHESTRATOR_ZOOKEEPER_LOGIN__PASSWORD_FILE": str(password),
    }
    running, go_on = started(shell, "worker")
    sasl = {"mechanism": "DIGEST-MD5", "username": ADA.user, "password": SECRET}
    pids = family(running.pid)
    try:
        yield Target(
            pids=pids,
            ports=listening(pids),
            folders=(shell.state_dir,),
            files=(*contents((shell.state_dir,)), password),
            secrets=(SECRET, PLANTED),
            zookeeper=secured.plain,
            nodes=nodes(secured.plain, root, sasl=sasl),
        )
    finally:
        go_on.touch()  # else the program of a failed test waits forever
    assert shell.type("job", "wait", "ours").code == 0
    assert [job["id"] for job in shell.jobs()] == ["ours"]


def test_neither_another_user_nor_another_login_gets_anything_of_a_worker_with_login_and_acl(
    shell: Shell, secured: Secured
) -> None:
    with guarded_worker(shell, secured) as target:
        assert target.ports == (), "a worker does not listen"
        assert len(target.nodes) > 10
        assert booty((*attacks.ON_FILES, *attacks.ON_PROCESSES, *attacks.ON_ZOOKEEPER), target) == {}
        for mallory in (
            replace(target, sasl=(BOB.user, OTHER_SECRET)),
            replace(target, digest=f"{ADA.user}:{SECRET}"),  # the right password in the wrong scheme
        ):
            assert booty(attacks.ON_ZOOKEEPER, mallory) == {}


@pytest.mark.spark
def test_another_user_gets_nothing_by_the_ports_of_a_warm_server(warm: WarmHouse) -> None:
    server = warm.wait_open()
    pids = tuple(processes_of(server.run))
    gateway = server.gateway()
    assert gateway is not None
    target = Target(pids=pids, ports=listening(pids), secrets=(gateway.secret,))
    assert gateway.port in target.ports
    assert booty((*attacks.ON_PROCESSES, *attacks.ON_PORTS), target) == {}


# ---------------------------------------------------------------------- the attacks themselves
def test_each_attack_succeeds_where_the_protections_are_out(
    zookeeper_hosts: str, zookeeper_root: str, shell: Shell
) -> None:
    """An open ZooKeeper, readable directories, processes of that user, ports without a secret."""
    shell.use_stand_ins()
    shell.environment |= {"ZOOKEEPER_HOSTS": zookeeper_hosts, "ORCHESTRATOR_ROOT": zookeeper_root}
    _, go_on = started(shell, "worker")
    subprocess.run(["chmod", "-R", "a+rwX", str(shell.state_dir)], check=True)
    own = subprocess.Popen(
        [PLANTED, "600"], executable="/bin/sleep", user=STRANGER, group=STRANGER, extra_groups=[]
    )
    java = subprocess.Popen(
        ["java", "-cp", f"{spark_jars()}/*", "py4j.GatewayServer", "--die-on-broken-pipe", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert java.stdout is not None
        gateway = int(java.stdout.readline())
        with stranger() as pages:
            target = Target(
                pids=(own.pid,),
                ports=(gateway, int(pages.url.rpartition(":")[2])),
                folders=(shell.state_dir,),
                files=contents((shell.state_dir,)),
                secrets=(PLANTED,),
                zookeeper=zookeeper_hosts,
                nodes=nodes(zookeeper_hosts, zookeeper_root),
            )
            got = booty(attacks.ALL, target)
    finally:
        own.kill()
        own.wait()
        java.kill()
        java.communicate()
    assert [attack.__name__ for attack in attacks.ALL if attack.__name__ not in got] == []
    kinds = {name: {line.partition(" ")[0] for line in lines} for name, lines in got.items()}
    assert kinds["looks_into_processes"] >= {"environ", "mem", "secrets"}
    assert kinds["commands_processes"] == {"signal", "slow", "bind", "trace"}
    assert kinds["reads_and_writes_files"] == {"list", "write", "read"}
    subprocess.run(["chmod", "-R", "go-rwx", str(shell.state_dir)], check=True)  # else no driver starts there
    go_on.touch()
    theirs = next(job["id"] for job in shell.jobs() if job["name"] == "theirs")
    assert shell.type("job", "wait", theirs, "--timeout", "60s").code == 0, "it ran as our user"
