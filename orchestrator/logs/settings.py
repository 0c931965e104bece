"""Settings of logs: targets, files, names and limits, never a secret."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from orchestrator.logs.spool.limits import WhenFull

_URL = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")


def _absolute(value: Path) -> Path:
    return value.expanduser().absolute()


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


def checked_url(value: str) -> str:
    """Return a valid URL of a server, or an empty value; raises ValueError."""
    if "@" in value:
        message = "a URL must not contain a login; put an API key in a file and name it in key_file"
        raise ValueError(message)
    if value and not _URL.fullmatch(value):
        message = f"{value!r} is not a URL such as https://search:9200"
        raise ValueError(message)
    return value


def checked_index(value: str, what: str) -> str:
    """Return a valid name or prefix of an index; raises ValueError, with its purpose `what`."""
    if not _INDEX.fullmatch(value):
        message = f"{value!r} cannot name {what}: expected lowercase letters, digits, '.', '_' and '-'"
        raise ValueError(message)
    return value


_TENANT = re.compile(r"[A-Za-z0-9!_.*'()-]{1,150}")
_STORE = re.compile(r"[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]")
_LEVELS = ("TRACE", "DEBUG", "INFO", "SUCCESS", "WARNING", "ERROR", "CRITICAL")
_MIB = 1024**2


class TargetKind(StrEnum):
    """The kind of server at `url`."""

    ELASTICSEARCH = "elasticsearch"
    LOKI = "loki"
    SLS = "sls"


class LogSettings(BaseModel):
    """The spool of this host and, if `url` is set, the target to which it is shipped."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str = Field(
        "", description="URL of the target, or several, separated by commas; empty = logs stay in the spool"
    )
    kind: TargetKind = Field(TargetKind.ELASTICSEARCH, description="kind of the target")
    tenant: str = Field("", description="tenant, for a Loki with several tenants")
    project: str = Field("", description="project of SLS")
    logstore: str = Field("", description="logstore of SLS, in that project")
    alias: str = Field("orchestrator-logs", description="alias of the daily indices <alias>-YYYY-MM-DD")
    timezone: str = Field("UTC", description="time zone of the daily indices")
    level: str = Field("INFO", description="lowest level that is recorded")
    retention_days: Annotated[int, Field(ge=1, le=36_500)] = Field(
        30, description="age at which daily indices are removed"
    )
    key_file: AbsolutePath | None = Field(
        None, description="file with the credentials; see docs/logs-targets.md"
    )
    ca_file: AbsolutePath | None = Field(
        None, description="CA certificates of the server; absent = those of the system"
    )
    dir: AbsolutePath | None = Field(
        None,
        description="parent directory of the spool; absent = `logs` in state_dir",
        examples=["/var/log/spark-job-orchestrator"],
    )
    max_bytes: Annotated[int, Field(ge=64 * _MIB)] = Field(
        1024 * _MIB, description="disk quota of all spools of this host"
    )
    when_full: WhenFull = Field(
        WhenFull.DROP_OLDEST, description="what to drop at this limit, or whether to wait"
    )

    @property
    def urls(self) -> list[str]:
        """The URLs of all nodes."""
        return [url.strip() for url in self.url.split(",") if url.strip()]

    @property
    def has_search(self) -> bool:
        """Whether shipped records can be searched: `orchestrator logs` supports Elasticsearch only."""
        return self.kind is TargetKind.ELASTICSEARCH and bool(self.urls)

    @field_validator("url")
    @classmethod
    def _are_urls(cls, value: str) -> str:
        for url in value.split(","):
            checked_url(url.strip())
        return value

    @field_validator("tenant")
    @classmethod
    def _is_tenant(cls, value: str) -> str:
        if value and not _TENANT.fullmatch(value):
            message = f"{value!r} is not a tenant: expected at most 150 letters, digits and !-_.*'()"
            raise ValueError(message)
        return value

    @field_validator("project", "logstore")
    @classmethod
    def _is_store(cls, value: str) -> str:
        if value and not _STORE.fullmatch(value):
            message = (
                f"{value!r} is not a name in SLS: expected 3 to 63 lowercase letters, digits, '-' and '_'"
            )
            raise ValueError(message)
        return value

    @field_validator("alias")
    @classmethod
    def _is_alias(cls, value: str) -> str:
        return checked_index(value, "indices")

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - slow to import, rarely set

        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"{value!r} is not a time zone: expected a name such as UTC or Europe/Berlin"
            raise ValueError(message) from None
        return value

    @field_validator("level")
    @classmethod
    def _is_level(cls, value: str) -> str:
        if value.upper() not in _LEVELS:
            message = f"{value!r} is not a level: expected one of {', '.join(_LEVELS)}"
            raise ValueError(message)
        return value.upper()

    @model_validator(mode="after")
    def _fits_the_kind(self) -> Self:
        message = ""
        if self.tenant and self.kind is not TargetKind.LOKI:
            message = f"tenant is for kind loki, not for {self.kind}"
        elif (self.project or self.logstore) and self.kind is not TargetKind.SLS:
            message = f"project and logstore are for kind sls, not for {self.kind}"
        elif self.kind is TargetKind.SLS:
            message = self._sls_trouble()
        if message:
            raise ValueError(message)
        return self

    def _sls_trouble(self) -> str:
        if self.url and not (self.project and self.logstore):
            return "kind sls needs a project and a logstore"
        if len(self.urls) > 1:
            return "kind sls takes one url, the endpoint of the region"
        if self.ca_file is not None:
            return "ca_file is not for kind sls: set the environment variable REQUESTS_CA_BUNDLE for its SDK"
        return ""
