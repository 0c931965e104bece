"""The table `policy` of the settings: the lists of what definitions of a pool may use."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

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
