"""The images of the test kubelet: the programs of Spark's own images, as processes of this host."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_runner.runners.installation import installed_spark_home
from tests.class_archive import node_environment
from tests.servers.kubernetes.api import Document
from tests.servers.kubernetes.volumes import PodFiles

POD_MARK = "TEST_POD_UID"
"""A variable of all processes of a pod: it identifies them when the container ends."""

JAVA_IMAGE = "spark-java"
"""An image with this prefix has no Python, as Spark's own for Java and Scala."""

_JAVA_COMMANDS = ("bash", "dirname", "env", "id", "java", "ls", "rm", "uname")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Program:
    """The process of a container."""

    command: list[str]
    environment: dict[str, str]


def program(pod: Document, files: PodFiles, pod_ip: str, api_url: str, home: Path) -> Program:
    """The program of the only container of a pod; raises NotThereYet for a missing source of a variable."""
    (container,) = pod["spec"]["containers"]
    arguments = [files.here(argument) for argument in container.get("args", [])]
    host, _, port = api_url.removeprefix("https://").partition(":")
    environment = {
        "PATH": _path(container["image"], home),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "SPARK_HOME": str(installed_spark_home()),
        "SPARK_CONF_DIR": str(files.mounts.get("/opt/spark/conf", home)),
        **_python(container["image"]),
        "SPARK_LOCAL_IP": pod_ip,
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
        # The compiler takes half of the time of a short JVM: see tests/conftest.py.
        "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        **node_environment(),
        **files.variables(pod, pod_ip),
        POD_MARK: pod["metadata"]["uid"],
    }
    if command := container.get("command"):
        return Program([*map(files.here, command), *arguments], environment)
    match arguments:
        case ["driver", *rest]:
            return Program(_driver(rest, files, pod_ip, api_url), environment)
        case ["executor", *_]:
            return Program(_executor(environment), environment)
        case _:
            return Program(arguments, environment)


def _path(image: str, home: Path) -> str:
    if not image.startswith(JAVA_IMAGE):
        return os.environ["PATH"]
    commands = home / "commands"
    commands.mkdir(exist_ok=True)
    for name in _JAVA_COMMANDS:
        found, link = shutil.which(name), commands / name
        if found and not link.is_symlink():
            link.symlink_to(found)
    return str(commands)


def _python(image: str) -> dict[str, str]:
    if image.startswith(JAVA_IMAGE):
        return {}
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def _driver(arguments: list[str], files: PodFiles, pod_ip: str, api_url: str) -> list[str]:
    """The command of the image's entrypoint, with the addresses that a network of pods would resolve."""
    account = files.mounts.get(_ACCOUNT)
    mounted = "spark.kubernetes.authenticate.driver.mounted"
    settings = {
        "spark.driver.bindAddress": pod_ip,
        "spark.executorEnv.SPARK_DRIVER_POD_IP": pod_ip,
        "spark.driver.host": pod_ip,
        "spark.kubernetes.driver.master": api_url,
    }
    if account:
        settings |= {f"{mounted}.oauthTokenFile": str(account / "token")}
        settings |= {f"{mounted}.caCertFile": str(account / "ca.crt")}
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = str(Path(str(installed_spark_home()), "bin", "spark-submit"))
    return [submit, *given, "--deploy-mode", "client", *arguments]


def _executor(environment: Mapping[str, str]) -> list[str]:
    java_home = environment.get("JAVA_HOME")
    java = str(Path(java_home, "bin", "java")) if java_home else shutil.which("java") or "java"
    options = {
        int(name.rpartition("_")[2]): value
        for name, value in environment.items()
        if name.startswith("SPARK_JAVA_OPT_")
    }
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    jars = Path(environment["SPARK_HOME"], "jars")
    # First as in Spark's own launcher: an archive fits one order.
    first = next(jars.glob("slf4j-api-*.jar"))
    return [
        java,
        *(options[number] for number in sorted(options)),
        "-XX:TieredStopAtLevel=1",
        f"-Xmx{memory}",
        "-cp",
        f"{environment['SPARK_CONF_DIR']}/:{first}:{jars}/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", environment["SPARK_DRIVER_URL"]),
        *("--executor-id", environment["SPARK_EXECUTOR_ID"]),
        *("--cores", environment["SPARK_EXECUTOR_CORES"]),
        *("--app-id", environment["SPARK_APPLICATION_ID"]),
        *("--hostname", environment["SPARK_EXECUTOR_POD_IP"]),
        *("--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"]),
        *("--podName", environment["SPARK_EXECUTOR_POD_NAME"]),
    ]
