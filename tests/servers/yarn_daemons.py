"""The real daemons of Hadoop for tests: ResourceManagers and a NodeManager, from Maven Central."""

import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from queues.embedded.ports import free_ports
from tests.servers.daemons import END_TIMEOUT_S, JavaDaemon, fetched_jars
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

VERSION = "3.5.0"
_ARTIFACTS = {  # the shaded jars of Hadoop, and their missing dependencies
    "org.apache.hadoop:hadoop-client-minicluster": VERSION,
    "org.bouncycastle:bcpkix-jdk18on": "1.82",
    "ch.qos.reload4j:reload4j": "1.2.26",
    "org.slf4j:slf4j-reload4j": "1.7.36",
}
NODE_MEMORY_MB = 6144
_SERVER = "org.apache.hadoop.yarn.server"
RESOURCE_MANAGER = f"{_SERVER}.resourcemanager.ResourceManager"
NODE_MANAGER = f"{_SERVER}.nodemanager.NodeManager"
# Daemons that run for minutes: only the quick compiler, and little memory.
_JVM = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
_GRACE = ("--grace", "2")  # a NodeManager takes ten seconds for an orderly end
_LOG4J = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""

QUEUES = {
    "root.queues": "default,full",
    "root.default.capacity": "100",
    "root.full.capacity": "0",
    "root.full.maximum-applications": "0",
    "maximum-am-resource-percent": "1.0",
}
"""Queues of the capacity scheduler; the last one accepts no applications."""


class Daemon(JavaDaemon):
    """One daemon of Hadoop."""

    def __init__(self, folder: Path, main_class: str, conf_dir: Path, name: str, *arguments: str) -> None:
        command = [
            "java",
            *_JVM,
            f"-Dhadoop.log.dir={folder / name}",
            f"-Dyarn.log.dir={folder / name}",
            "-cp",
            f"{conf_dir}:{hadoop_jars()}/*",
            main_class,
            *arguments,
        ]
        super().__init__(folder, name, command, _GRACE)


def write_site(path: Path, properties: Mapping[str, str]) -> None:
    """Write a configuration file for Hadoop."""
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(properties[name])}</value></property>"
        for name in properties
    ]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>"]), "utf-8")


def write_configuration(conf_dir: Path, folder: Path, properties: Mapping[str, str]) -> None:
    """Write all files that the daemons and spark-submit read; `properties` go into yarn-site.xml."""
    conf_dir.mkdir()
    write_site(
        conf_dir / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "hadoop")}
    )
    write_site(conf_dir / "yarn-site.xml", {**_common(folder), **properties})
    prefix = "yarn.scheduler.capacity"
    write_site(conf_dir / "capacity-scheduler.xml", {f"{prefix}.{name}": QUEUES[name] for name in QUEUES})
    (conf_dir / "log4j.properties").write_text(_LOG4J, "utf-8")


def _common(folder: Path) -> dict[str, str]:
    scheduler = f"{_SERVER}.resourcemanager.scheduler.capacity.CapacityScheduler"
    return {
        "yarn.resourcemanager.scheduler.class": scheduler,
        "yarn.nm.liveness-monitor.expiry-interval-ms": "8000",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.maximum-allocation-mb": str(NODE_MEMORY_MB),
        "yarn.nodemanager.bind-host": "127.0.0.1",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "containers"),
        "yarn.nodemanager.resource.memory-mb": str(NODE_MEMORY_MB),
        "yarn.nodemanager.resource.cpu-vcores": "16",
        "yarn.nodemanager.vmem-check-enabled": "false",
        # True by default, which relies on cgroups alone, even where they are not used.
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "500",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
    }


def resource_manager_properties(suffix: str = "") -> dict[str, str]:
    """The addresses of one ResourceManager on free ports; `suffix` is "" or a dot and its id."""
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    ports = free_ports("127.0.0.1", len(names))
    addresses = {
        f"yarn.resourcemanager.{name}{suffix}": f"127.0.0.1:{port}"
        for name, port in zip(names, ports, strict=True)
    }
    return {f"yarn.resourcemanager.hostname{suffix}": "127.0.0.1", **addresses}


def pair_properties(folder: Path, ids: Sequence[str]) -> dict[str, str]:
    """Two ResourceManagers with their state in one folder; `make_active` selects the active one.

    Election through ZooKeeper is not available: the shaded jars lack a class of its client.
    """
    prefix, ha = "yarn.resourcemanager", "yarn.resourcemanager.ha"
    addresses = [resource_manager_properties(f".{name}") for name in ids]
    return {
        **{name: text for each in addresses for name, text in each.items()},
        f"{ha}.enabled": "true",
        f"{ha}.rm-ids": ",".join(ids),
        f"{ha}.automatic-failover.enabled": "false",
        f"{prefix}.cluster-id": "pair",
        f"{prefix}.recovery.enabled": "true",
        f"{prefix}.store.class": f"{_SERVER}.resourcemanager.recovery.FileSystemRMStateStore",
        f"{prefix}.fs.state-store.uri": (folder / "store").as_uri(),
    }


def make_active(conf_dir: Path, name: str) -> None:
    """Make one of a pair active."""
    admin = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
    order = ["-transitionToActive", "--forceactive", name]  # whether or not the other one answers
    command = ["java", *_JVM, "-cp", f"{conf_dir}:{hadoop_jars()}/*", admin, *order]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=END_TIMEOUT_S * 2, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def node_properties() -> dict[str, str]:
    """The addresses of the NodeManager on free ports."""
    names = ("address", "localizer.address", "webapp.address")
    ports = free_ports("127.0.0.1", len(names))
    return {
        "yarn.nodemanager.hostname": "127.0.0.1",
        **{f"yarn.nodemanager.{name}": f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)},
    }


def fetch_text(url: str) -> str:
    """The answer of a daemon; empty when there is none."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own server
            return str(answer.read(), "utf-8", "replace")
    except OSError:
        return ""


def wait_for_daemons(daemons: Sequence[Daemon], url: str, words: str, timeout: float) -> None:
    """Wait until `url` answers with `words`; if a daemon has ended, the server is unavailable."""

    def settled() -> bool:
        return any(daemon.has_ended() for daemon in daemons) or words in fetch_text(url)

    wait_until(settled, timeout, f"{url} says {words}")
    for daemon in daemons:
        if daemon.has_ended():
            unavailable(f"no YARN: a daemon has ended: {daemon.last_words()}")


def hadoop_jars() -> Path:
    """The folder of Hadoop's jars, fetched once for all checkouts of this machine."""
    if shutil.which("java") is None:
        unavailable("no YARN: YARN_CONF_DIR is not set, and there is no java")
    return fetched_jars(f"hadoop-{VERSION}", _ARTIFACTS, f"Hadoop {VERSION}")
