"""Where and how Spark runs: the part `spark` of a definition."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from orchestrator.model.fields import DefinitionPart, checked_memory, texts
from spark_runner.runners.base import SparkTarget, backend_of
from spark_runner.runners.registry import is_installed

DEFAULT_MASTER = "local[*]"
_HOSTS = r"[A-Za-z0-9._-]+:[0-9]{1,5}(,[A-Za-z0-9._-]+:[0-9]{1,5})*"
_FORMS = {
    "local": (re.compile(r"local(\[(\*|[1-9][0-9]{0,5})(, *[0-9]{1,9})?\])?"), "local, local[N] or local[*]"),
    "standalone": (re.compile(rf"spark://{_HOSTS}"), "spark://host:7077, or spark://host1:7077,host2:7077"),
    "yarn": (re.compile(r"yarn"), "yarn: the worker finds the cluster by HADOOP_CONF_DIR"),
    "kubernetes": (re.compile(r"k8s://https?://[^\s/]+(/\S*)?"), "k8s://https://host:port"),
}
"""By backend: the pattern of its masters, and the hint for users."""

_PACKAGE = re.compile(r"[^\s:,]+:[^\s:,]+:[^\s:,]+")
_LABEL = r"^$|^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"  # a name in Kubernetes: RFC 1123


def _filled(own: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    filled = dict(defaults)
    for name, value in own.items():
        default = defaults.get(name)
        if isinstance(value, dict):
            filled[name] = _filled(value, default or {})
        elif value or not default:
            filled[name] = value
    return filled


class Driver(DefinitionPart):
    """The resources of the driver process; 0 and empty = Spark's default."""

    cores: Annotated[int, Field(ge=0, le=1024)] = Field(
        default=0, description="processor cores of a driver on a cluster"
    )
    memory: str = Field(
        default="", description="heap in Spark's notation, for example 1g; empty = Spark's default"
    )
    overhead: str = Field(
        default="",
        description="memory beside the heap, for Python, threads and buffers; in the same notation",
    )

    _is_memory = field_validator("memory", "overhead")(checked_memory)


class Executor(DefinitionPart):
    """The resources of the executors, except with a local master; 0 and empty = Spark's default."""

    instances: Annotated[int, Field(ge=0, le=100_000)] = Field(default=0, description="number of executors")
    cores: Annotated[int, Field(ge=0, le=1024)] = Field(
        default=0, description="tasks that each executor runs at once"
    )
    memory: str = Field(default="", description="heap of each executor, in the same notation")
    overhead: str = Field(
        default="", description="memory beside the heap of each executor, on YARN and Kubernetes"
    )

    _is_memory = field_validator("memory", "overhead")(checked_memory)


class Standalone(DefinitionPart):
    """Options of standalone clusters."""

    rest: str = Field(
        default="",
        description="host:port,host:port of the masters' REST servers; empty = port 6066 of their hosts",
    )
    ui: str = Field(
        default="",
        description="host:port,host:port of the masters' web pages; empty = port 8080 of their hosts",
    )
    staging: str = Field(
        default="", description="a folder that all nodes share, for cluster mode; empty = state_dir"
    )


class Yarn(DefinitionPart):
    """Options of YARN."""

    queue: str = Field(default="", description="queue of the application; empty = YARN's default")
    resource_manager: str = Field(
        default="", description="http(s)://host:port,... of its web pages; empty = from yarn-site.xml"
    )


class Kubernetes(DefinitionPart):
    """Options of Kubernetes."""

    namespace: str = Field(default="", pattern=_LABEL, description="namespace of the pods; empty = default")
    service_account: str = Field(default="", pattern=_LABEL, description="service account of the driver")
    image: str = Field(
        default="",
        description="container image with Java, Spark and (not needed for a jar) Python and PySpark",
    )
    driver: Literal["", "jvm", "python"] = Field(
        default="", description="for a jar: jvm = Java only; python = measured like other jobs; empty = jvm"
    )
    pod_template: str = Field(
        default="", description="pod template for driver and executors: a file on the worker's host"
    )
    context: str = Field(
        default="", description="context of the worker's kubeconfig; empty = its current one"
    )


class Spark(DefinitionPart):
    """Where and how Spark runs; empty = the worker's setting for the pool, or Spark's default."""

    master: str = Field(
        default="",
        description="local[*], spark://host:7077, yarn, k8s://https://host:port, or a plug-in's; "
        "empty = local[*]",
    )
    deploy_mode: Literal["", "client", "cluster"] = Field(
        default="",
        description="client = the driver runs on the worker's host; empty = cluster on k8s, otherwise client",
    )
    conf: dict[str, str] = Field(default_factory=dict, description="Spark properties")
    start: Literal["", "auto", "fast", "full", "warm"] = Field(
        default="",
        description="fast = a JVM for short jobs, full = one for long jobs; empty, auto = by the last runs; "
        "warm = SQL in a JVM that the pool keeps running, if possible, otherwise fast",
    )
    driver: Driver = Driver.model_construct()
    executor: Executor = Executor.model_construct()
    packages: tuple[str, ...] = Field(
        default=(), description="Maven packages, group:artifact:version, which Spark fetches"
    )
    jars: tuple[str, ...] = Field(default=(), description="jars on the class path of driver and executors")
    py_files: tuple[str, ...] = Field(
        default=(), description=".py, .zip and .egg files that the program imports"
    )
    files: tuple[str, ...] = Field(
        default=(), description="files that are copied into the working directory of each executor"
    )
    standalone: Standalone = Standalone.model_construct()
    yarn: Yarn = Yarn.model_construct()
    kubernetes: Kubernetes = Kubernetes.model_construct()
    options: dict[str, str] = Field(default_factory=dict, description="options for the runner of a plug-in")

    def filled(self, defaults: "Spark") -> "Spark":
        """A copy whose empty fields are those of `defaults`; it has the properties of both, its own win.

        Raises ValueError where the two contradict each other.
        """
        return Spark.model_validate(_filled(self.model_dump(), defaults.model_dump()))

    @property
    def target(self) -> SparkTarget:
        """The target for the runners: master, deploy mode and options of the backend."""
        master = self.master or DEFAULT_MASTER
        backend = backend_of(master)
        mode = self.deploy_mode or ("cluster" if backend == "kubernetes" else "client")
        parts: dict[str, DefinitionPart] = {
            "standalone": self.standalone,
            "yarn": self.yarn,
            "kubernetes": self.kubernetes,
        }
        known = parts[backend].model_dump() if backend in parts else self.options
        return SparkTarget(master, mode, {name: str(value) for name, value in known.items() if value})

    @property
    def properties(self) -> dict[str, str]:
        """All fields as Spark properties; a named field wins over `conf`."""
        named = {
            "spark.driver.cores": self.driver.cores,
            "spark.driver.memory": self.driver.memory,
            "spark.driver.memoryOverhead": self.driver.overhead,
            "spark.executor.instances": self.executor.instances,
            "spark.executor.cores": self.executor.cores,
            "spark.executor.memory": self.executor.memory,
            "spark.executor.memoryOverhead": self.executor.overhead,
        }
        lists = {
            "spark.jars.packages": self.packages,
            "spark.jars": self.jars,
            "spark.submit.pyFiles": self.py_files,
            "spark.files": self.files,
        }
        joined = {
            name: ",".join(filter(None, (self.conf.get(name, ""), *items))) for name, items in lists.items()
        }
        given = {name: str(value) for name, value in (named | joined).items() if value}
        return {**self.conf, **given}

    _conf_as_text = field_validator("conf", "options", mode="before")(texts)

    @field_validator("master")
    @classmethod
    def _is_master(cls, value: str) -> str:
        backend = backend_of(value)
        if not value:
            return value
        if backend in _FORMS:
            form, words = _FORMS[backend]
            if not form.fullmatch(value):
                message = f"invalid master {value!r}: write {words}"
                raise ValueError(message)
        elif not is_installed(backend):
            words = "; ".join(words for _, words in _FORMS.values())
            message = f"unknown master {value!r}: expected {words}"
            raise ValueError(message)
        return value

    @field_validator("conf")
    @classmethod
    def _is_conf(cls, value: dict[str, str]) -> dict[str, str]:
        for key in value:
            if not key.startswith("spark."):
                message = f"{key!r} does not start with 'spark.': Spark would ignore it"
                raise ValueError(message)
        return value

    @field_validator("packages")
    @classmethod
    def _are_packages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for package in value:
            if not _PACKAGE.fullmatch(package):
                message = f"{package!r} is not group:artifact:version"
                raise ValueError(message)
        return value

    @field_validator("jars", "py_files", "files")
    @classmethod
    def _are_files(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name or "," in name:
                message = f"{name!r} cannot name a file: Spark separates files by commas"
                raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        backend = backend_of(self.master)
        if backend == "local" and self.deploy_mode == "cluster":
            message = "deploy_mode 'cluster' needs a cluster: master is " + repr(self.master)
            raise ValueError(message)
        if backend == "kubernetes" and self.deploy_mode == "client":
            message = "on Kubernetes each driver is a separate pod: omit deploy_mode, or set it to cluster"
            raise ValueError(message)
        return self
