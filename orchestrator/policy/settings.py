"""What definitions of a pool may use: the table `policy` of the settings."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Patterns = tuple[_Pattern, ...] | None


class PoolPolicy(BaseModel):
    """Lists of patterns, in which `*` stands for any characters; None = as for all pools, [] = nothing.

    What no table lists is open, but for `contexts`, and for what `orchestrator.policy` says to be closed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    masters: _Patterns = Field(None, description="of Spark, and addresses of a cluster's pages")
    namespaces: _Patterns = Field(None, description="of Kubernetes")
    contexts: _Patterns = Field(None, description="of the worker's kubeconfig; its current one needs no list")
    callback_hosts: _Patterns = Field(None, description="host, or host:port")
    environment: _Patterns = Field(None, description="variables, as ${env:NAME} and for executors and pods")
    packages: _Patterns = Field(None, description="group:artifact:version")
    repositories: _Patterns = Field(None, description="URLs of repositories, and of files from elsewhere")
    files: _Patterns = Field(
        None,
        description="of the worker's host in cluster mode; with run_as, None = what all may read",
    )
    images: _Patterns = Field(None, description="of containers on Kubernetes")
    service_accounts: _Patterns = Field(None, description="of drivers and executors on Kubernetes")
    conf: _Patterns = Field(None, description="names of Spark properties that definitions set")
    connectors: _Patterns = Field(None, description="of tables in scripts")
