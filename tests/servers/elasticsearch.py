"""A real Elasticsearch for tests: from the environment, from Docker, else the one of Maven Central."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.logs.shipping.http import Http
from queues.embedded.guarded import GuardedProcess
from queues.embedded.ports import free_ports
from tests.servers.cache import cached
from tests.servers.zookeeper import docker_answers, unavailable
from tests.waiting import wait_until

VERSION = "9.5.0"
IMAGE = f"docker.elastic.co/elasticsearch/elasticsearch:{VERSION}"
ARTIFACT = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{VERSION}:zip"
SHA256 = "db0e275fd790f723eca7bcde96069fd6fed304ad23afdb70c8c09553dd9e8b1b"
OLDEST_JAVA = 21
START_TIMEOUT_S = 120
FETCH_TIMEOUT_S = 240
_UID = 65534  # Elasticsearch refuses to run as root
_OPTIONS = {
    "discovery.type": "single-node",
    "xpack.security.enabled": "false",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "search.keep_alive_interval": "1s",  # how soon it sees that a point in time is over; by default 1 min
}
_JVM = "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1"  # halves the processor time of the start


@pytest.fixture(scope="session")
def elasticsearch_url() -> Iterator[str]:
    """URL of a real Elasticsearch; one server per test session and xdist worker."""
    if url := os.environ.get("ELASTICSEARCH_URL"):
        yield url
        return
    with _in_docker() if docker_answers() else local_elasticsearch() as url:
        yield url


@pytest.fixture
def elasticsearch_index(elasticsearch_url: str) -> Iterator[str]:
    """Name of an index for one test: not created, removed afterwards."""
    index = f"test-{uuid.uuid4()}"
    yield index
    request = urllib.request.Request(f"{elasticsearch_url}/{index}?ignore_unavailable=true", method="DELETE")  # noqa: S310 - our own server
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - likewise


@pytest.fixture
def log_alias(elasticsearch_url: str) -> Iterator[str]:
    """An alias of daily indices for one test; removed afterwards, with its template."""
    alias = f"test-logs-{uuid.uuid4().hex[:12]}"
    yield alias
    http = Http([elasticsearch_url])
    for row in http.request("GET", f"/_cat/indices/{alias}-*?format=json&h=index").body:
        http.request("DELETE", f"/{row['index']}")
    http.request("DELETE", f"/_index_template/{alias}")
    http.close()


@contextmanager
def _in_docker() -> Iterator[str]:
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - as for ZooKeeper

    container = DockerContainer(IMAGE).with_exposed_ports(9200).with_env("ES_JAVA_OPTS", _JVM)
    for name, value in _OPTIONS.items():
        container.with_env(name, value)
    with container:
        url = f"http://{container.get_container_host_ip()}:{container.get_exposed_port(9200)}"
        wait_until(lambda: _answers(url), START_TIMEOUT_S, f"{IMAGE} serves at {url}")
        yield url


def _nothing(_config: Path) -> None:
    """No preparation."""


@contextmanager
def local_elasticsearch(
    more: Mapping[str, str] | None = None,
    *,
    scheme: str = "http",
    prepare: Callable[[Path], None] = _nothing,
    answers: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """URL of a server of our own, from Maven Central, with `more` options.

    `prepare` gets its folder of configuration before the start.
    """
    answers = answers or _answers
    java, distribution = _java_home(), _distribution()
    http_port, transport_port = free_ports("127.0.0.1", 2)
    # Not below the folder of pytest, which only root can read.
    folder = Path(tempfile.mkdtemp(prefix="elasticsearch-"))
    shutil.copytree(distribution / "config", folder / "config")
    (folder / "tmp").mkdir()
    options = {
        **_OPTIONS,
        "network.host": "127.0.0.1",
        "http.port": str(http_port),
        "transport.port": str(transport_port),
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        **(more or {}),
    }
    command = [
        str(distribution / "bin" / "elasticsearch"),
        *(f"-E{name}={options[name]}" for name in options),
    ]
    environment = {
        "HOME": str(folder),
        "ES_TMPDIR": str(folder / "tmp"),  # it must not write to its configuration
        "ES_JAVA_HOME": str(java),
        "ES_PATH_CONF": str(folder / "config"),
        "ES_JAVA_OPTS": _JVM,
    }
    prepare(folder / "config")
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        assert setpriv, "util-linux brings it"
        command = [
            setpriv,
            f"--reuid={_UID}",
            f"--regid={_UID}",
            "--clear-groups",
            *command,
        ]
        for path in (folder, *folder.rglob("*")):
            os.chown(path, _UID, _UID)
    output = folder / "output"
    with output.open("wb") as file:
        server = GuardedProcess(command, cwd=folder, output=file, environment=environment)
    try:
        url = f"{scheme}://localhost:{http_port}" if scheme == "https" else f"http://127.0.0.1:{http_port}"
        wait_until(
            lambda: server.exit_code() is not None or answers(url),
            START_TIMEOUT_S,
            f"Elasticsearch serves at {url}",
        )
        if server.exit_code() is not None:
            unavailable(f"Elasticsearch has ended: {output.read_text('utf-8', errors='replace')[-1000:]}")
        yield url
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_cluster/health", timeout=5) as answer:  # noqa: S310 - our own server
            return json.load(answer)["status"] in {"yellow", "green"}
    except (OSError, ValueError):
        return False


def _java_home() -> Path:
    """A Java that is new enough: the distribution contains none."""
    named = [Path(os.environ[name]) for name in ("ES_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)]
    homes = [*named, *sorted(Path("/usr/lib/jvm").glob("*"), reverse=True)]
    found = [home for home in homes if _java_version(home) >= OLDEST_JAVA]
    if not found:
        unavailable(
            "no Elasticsearch: ELASTICSEARCH_URL is not set, no Docker daemon answers, and there is no "
            f"Java {OLDEST_JAVA} or newer in ES_JAVA_HOME, JAVA_HOME or /usr/lib/jvm"
        )
    return found[0]


def _java_version(home: Path) -> int:
    release = home / "release"
    found = re.search(r'JAVA_VERSION="(\d+)', release.read_text("utf-8")) if release.is_file() else None
    return int(found[1]) if found else 0


def _distribution() -> Path:
    """The unpacked distribution, fetched once for all checkouts of this machine."""
    if shutil.which("mvn") is None:
        unavailable("no Elasticsearch: ELASTICSEARCH_URL is not set, no Docker daemon answers, and no mvn")
    return cached(f"elasticsearch-{VERSION}", _fetch)


def _fetch(folder: Path) -> None:
    # Some mirrors have no checksum of this file, and with --strict-checksums Maven refuses it there.
    _maven("copy", folder)
    archive = folder / f"elasticsearch-{VERSION}.zip"
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    archive.unlink()
    if digest != SHA256:
        unavailable(f"no Elasticsearch: {ARTIFACT} has the SHA-256 {digest}, not {SHA256}")
    _maven("unpack", folder.parent)


def _maven(goal: str, folder: Path) -> None:
    """Let the dependency plugin put the artifact, or what is in it, into a folder."""
    command = [
        "mvn",
        "-q",
        "-B",
        f"dependency:{goal}",
        f"-Dartifact={ARTIFACT}",
        f"-DoutputDirectory={folder}",
    ]
    try:
        subprocess.run(
            command, check=True, cwd=folder, timeout=FETCH_TIMEOUT_S, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        unavailable(f"no Elasticsearch: {ARTIFACT} was not fetched within {FETCH_TIMEOUT_S} s")
    except subprocess.CalledProcessError as error:
        unavailable(f"no Elasticsearch: {ARTIFACT} was not fetched: {error.stdout[-2000:]}")
