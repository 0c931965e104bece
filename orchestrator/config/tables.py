"""The tables of the settings: archive, policy, warm servers and drivers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from orchestrator.logs.settings import AbsolutePath, checked_index, checked_url
from orchestrator.model.fields import Seconds, checked_memory
from queues import LOW_LANE_SUFFIX
from spark_runner.protocol.sizing import memory_bytes

if TYPE_CHECKING:
    from spark_runner.protocol.warm_files import Recycling

_Value = TypeVar("_Value")

ALL_POOLS = "*"
"""The key of what applies to each pool without its own."""


def of_pool(by_pool: Mapping[str, _Value], pool: str) -> _Value | None:
    """The value of a pool, whichever of its lanes: its own, else that of all pools; None without any."""
    return by_pool.get(pool.removesuffix(LOW_LANE_SUFFIX)) or by_pool.get(ALL_POOLS)


class ArchiveSettings(BaseModel):
    """Jobs are archived in an Elasticsearch index if `url` is set, otherwise in files."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str = Field("", description="URL of Elasticsearch; empty = JSONL files in `dir`")
    index: str = Field("orchestrator-jobs", description="name of one index, not of an alias that rolls over")
    key_file: AbsolutePath | None = Field(
        None, description="file with an API key in base64, if the server requires one"
    )
    ca_file: AbsolutePath | None = Field(
        None, description="CA certificates of the server; absent = the system's list"
    )
    dir: AbsolutePath | None = Field(
        None,
        description="directory of the JSONL files; absent = `archive` in state_dir",
        examples=["/var/lib/spark-job-orchestrator/archive"],
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        return checked_url(value)

    @field_validator("index")
    @classmethod
    def _is_index(cls, value: str) -> str:
        return checked_index(value, "an index")

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not self.url and (self.key_file or self.ca_file):
            message = "key_file and ca_file are for the server that url names"
            raise ValueError(message)
        if self.url and self.dir:
            message = "give url or dir, not both"
            raise ValueError(message)
        return self


_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Patterns = tuple[_Pattern, ...] | None


class PoolPolicy(BaseModel):
    """What definitions may use, as lists of patterns; `*` matches any characters, and [] allows nothing.

    A pool without a list has that of `*`. Without any list, all values are allowed, except for `contexts` and
    where `orchestrator.policy` documents another default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    masters: _Patterns = Field(None, description="masters of Spark, and addresses of a cluster's web pages")
    namespaces: _Patterns = Field(None, description="namespaces of Kubernetes")
    contexts: _Patterns = Field(
        None, description="contexts of the worker's kubeconfig; its current one is always allowed"
    )
    callback_hosts: _Patterns = Field(None, description="receivers of callbacks: host, or host:port")
    environment: _Patterns = Field(None, description="variables for ${env:NAME}, executors and pods")
    secrets: _Patterns = Field(
        None, description="scope/key, for ${secret:scope/key} in scripts and connections"
    )
    packages: _Patterns = Field(None, description="Maven packages: group:artifact:version")
    repositories: _Patterns = Field(
        None, description="URLs of Maven repositories, and of files on other systems"
    )
    files: _Patterns = Field(
        None,
        description="files of the worker's host, in cluster mode; with run_as, by default those that all"
        " users may read",
    )
    images: _Patterns = Field(None, description="container images on Kubernetes")
    service_accounts: _Patterns = Field(
        None, description="service accounts of drivers and executors on Kubernetes"
    )
    conf: _Patterns = Field(None, description="names of Spark properties in definitions")
    connectors: _Patterns = Field(None, description="connectors of tables in scripts")
    requirements: _Patterns = Field(
        None, description="names of Python packages in definitions, in lower case with -"
    )
    functions: _Patterns = Field(None, description="functions of the platform in scripts, in lower case")


class WarmSettings(BaseModel):
    """Limits at which a new warm server replaces the old one; 0 and empty = no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    age: Annotated[Seconds, Field(ge=0)] = Field(4 * 3600.0, description="time since the start of the server")
    jobs: Annotated[int, Field(ge=0)] = Field(500, description="number of jobs that it has run")
    memory: str = Field("3g", description="resident memory of its JVM, in Spark's notation")

    _is_memory = field_validator("memory")(checked_memory)

    @property
    def recycling(self) -> "Recycling":
        """The limits in seconds, jobs and bytes."""
        from spark_runner.protocol.warm_files import Recycling  # noqa: PLC0415 - lazy: for workers alone

        return Recycling(age=self.age, jobs=self.jobs, memory=memory_bytes(self.memory) or 0)


_Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_User = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}\$?$")]


class DriverSettings(BaseModel):
    """What the drivers of this host get from their worker, and as which user they run."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    environment: tuple[_Name, ...] = Field(
        (), description="variables of the worker that drivers get, besides PATH, JAVA_HOME and similar ones"
    )
    run_as: dict[str, _User] = Field(
        default_factory=dict,
        description="by pool, * = all: the user of the drivers on this host; the worker must be root",
        examples=[{"*": "spark"}],
    )

    @field_validator("environment", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """The names, which a variable of the environment separates by commas."""
        names = value.split(",") if isinstance(value, str) else ()
        return [name.strip() for name in names if name.strip()] if names else value
