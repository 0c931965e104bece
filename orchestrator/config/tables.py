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

    url: str = Field("", description="of Elasticsearch; empty = JSONL files in `dir`")
    index: str = Field("orchestrator-jobs", description="one index, no alias that rolls over")
    key_file: AbsolutePath | None = Field(
        None, description="an API key in base64, where the server asks for one"
    )
    ca_file: AbsolutePath | None = Field(
        None, description="CA certificates of the server; absent = the system's list"
    )
    dir: AbsolutePath | None = Field(
        None, description="of the JSONL files; absent = `archive` in the state_dir"
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
    """Lists of patterns, in which `*` matches any characters; None = as for all pools, [] = nothing.

    Without a list all values are allowed, except for `contexts` and where `orchestrator.policy` documents
    another default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    masters: _Patterns = Field(None, description="of Spark, and addresses of a cluster's pages")
    namespaces: _Patterns = Field(None, description="of Kubernetes")
    contexts: _Patterns = Field(
        None, description="of the worker's kubeconfig; its current one is always allowed"
    )
    callback_hosts: _Patterns = Field(None, description="host, or host:port")
    environment: _Patterns = Field(None, description="variables, as ${env:NAME} and for executors and pods")
    secrets: _Patterns = Field(
        None, description="scope/key, as ${secret:scope/key} in scripts and connections"
    )
    packages: _Patterns = Field(None, description="group:artifact:version")
    repositories: _Patterns = Field(None, description="URLs of repositories, and of files from elsewhere")
    files: _Patterns = Field(
        None,
        description="of the worker's host in cluster mode; with run_as, None = files that all users may read",
    )
    images: _Patterns = Field(None, description="of containers on Kubernetes")
    service_accounts: _Patterns = Field(None, description="of drivers and executors on Kubernetes")
    conf: _Patterns = Field(None, description="names of Spark properties that definitions set")
    connectors: _Patterns = Field(None, description="of tables in scripts")
    functions: _Patterns = Field(None, description="of the platform, in scripts; in lower case")


class WarmSettings(BaseModel):
    """The limits at which a new warm server replaces an old one; 0 and empty = no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    age: Annotated[Seconds, Field(ge=0)] = 4 * 3600.0
    jobs: Annotated[int, Field(ge=0)] = Field(500, description="jobs that it has run")
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
    """The table `drivers` of the settings; a driver inherits nothing else from its worker."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    environment: tuple[_Name, ...] = Field(
        (), description="variables of the worker that drivers get besides PATH, JAVA_HOME and similar ones"
    )
    run_as: dict[str, _User] = Field(
        default_factory=dict, description="by pool, * = all: the user of the drivers of this host; needs root"
    )

    @field_validator("environment", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """The names, which a variable of the environment separates by commas."""
        names = value.split(",") if isinstance(value, str) else ()
        return [name.strip() for name in names if name.strip()] if names else value
