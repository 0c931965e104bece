"""The table `references` of the settings: where drivers find the values of references in scripts."""

import re
from collections.abc import Collection
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from orchestrator.logs.settings import AbsolutePath
from spark_runner.references.reference import SCOPE
from spark_runner.references.sources import Sources

_MOUNTS = "/etc/orchestrator/secrets"  # in pods
_MAX_OPTIONS = 50
_Pattern = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_*][A-Za-z0-9_*]*$", max_length=255)]
_Prefix = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")]
_SecretName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
_Provider = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class SecretScope(BaseModel):
    """One scope of secrets, with exactly one kind of source; `kubernetes` may also have a `folder`."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    folder: AbsolutePath | None = Field(
        None,
        description="folder on the host of the driver, with a file for each key",
        examples=["/run/secrets/database"],
    )
    kubernetes: _SecretName | None = Field(
        None,
        description="secret in the namespace of the driver, which its pod mounts at `folder`",
        examples=["orchestrator-secrets"],
    )
    environment_prefix: _Prefix | None = Field(
        None,
        description="prefix of variables of the driver; the key follows it",
        examples=["SECRET_"],
    )
    provider: _Provider | None = Field(
        None, description="entry point of a package in the driver's Python", examples=["vault"]
    )
    options: dict[str, str] = Field(
        default_factory=dict,
        max_length=_MAX_OPTIONS,
        description="options of the provider, without secrets",
        examples=[{"url": "https://vault:8200"}],
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        files = self.folder is not None or self.kubernetes is not None
        if [files, self.environment_prefix is not None, self.provider is not None].count(True) != 1:
            message = "give one of folder, kubernetes, environment_prefix and provider"
            raise ValueError(message)
        if self.options and self.provider is None:
            message = "options are those of a provider"
            raise ValueError(message)
        return self

    def source(self, name: str) -> dict[str, Any]:
        """The source of this scope as a driver reads it."""
        if self.environment_prefix is not None:
            return {"prefix": self.environment_prefix}
        if self.provider is not None:
            return {"provider": self.provider, "options": dict(self.options)}
        return {"folder": str(self.folder or f"{_MOUNTS}/{name}")}


class ReferenceSettings(BaseModel):
    """The sources of the values of references; without this table, references have no values."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    environment: tuple[_Pattern, ...] = Field(
        (), description="variables of the driver for ${env:NAME}; * matches any characters"
    )
    secrets: dict[str, SecretScope] = Field(
        default_factory=dict, description="by scope, for ${secret:scope/key}"
    )

    @field_validator("environment", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """The patterns, which a variable of the environment separates by commas."""
        names = value.split(",") if isinstance(value, str) else ()
        return [name.strip() for name in names if name.strip()] if names else value

    @field_validator("secrets")
    @classmethod
    def _are_scopes(cls, value: dict[str, SecretScope]) -> dict[str, SecretScope]:
        for name in value:
            if not re.fullmatch(SCOPE, name):
                message = f"{name!r} cannot name a scope: use letters, digits, '.', '_' and '-'"
                raise ValueError(message)
        return value

    def sources(self, scopes: Collection[str] | None = None) -> Sources:
        """The sources for a process; of the scopes only these, if given."""
        kept = self.secrets if scopes is None else {n: s for n, s in self.secrets.items() if n in scopes}
        return Sources(self.environment, {name: scope.source(name) for name, scope in kept.items()})

    def mounts(self, scopes: Collection[str]) -> dict[str, str]:
        """The secrets that the pod of a driver with these scopes mounts, each with its folder."""
        return {
            scope.kubernetes: scope.source(name)["folder"]
            for name, scope in self.secrets.items()
            if name in scopes and scope.kubernetes
        }
