"""Where logs go: files, names and limits, never a secret."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from orchestrator.logs.spool.limits import WhenFull

_URL = re.compile(r"https?://[^\s/@?#,]+(/[^\s@?#,]*)?")
_ALIAS = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")
_LEVELS = ("TRACE", "DEBUG", "INFO", "SUCCESS", "WARNING", "ERROR", "CRITICAL")
_MIB = 1024**2


def _path(value: Path) -> Path:
    return value.expanduser().absolute()


_Path = Annotated[Path, AfterValidator(_path)]


class LogSettings(BaseModel):
    """Logs are kept in the spool of this host, and shipped from there where `url` is given."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str = Field("", description="of Elasticsearch, several with commas; empty = the spool is the store")
    alias: str = Field("orchestrator-logs", description="daily indices are <alias>-YYYY-MM-DD")
    timezone: str = Field("UTC", description="in which days begin")
    level: str = Field("INFO", description="this and above")
    retention_days: Annotated[int, Field(ge=1, le=36_500)] = Field(30, description="of daily indices")
    key_file: _Path | None = Field(None, description="an API key in base64, where the server asks for one")
    ca_file: _Path | None = Field(None, description="who signs the server; absent = the system's list")
    dir: _Path | None = Field(None, description="of the spool; absent = `logs` in the state_dir")
    max_bytes: Annotated[int, Field(ge=64 * _MIB)] = Field(
        1024 * _MIB, description="what all spools of this host may take"
    )
    when_full: WhenFull = Field(WhenFull.DROP_OLDEST, description="what gives way then")

    @property
    def urls(self) -> list[str]:
        """The servers, each by itself."""
        return [url.strip() for url in self.url.split(",") if url.strip()]

    @field_validator("url")
    @classmethod
    def _are_urls(cls, value: str) -> str:
        if "@" in value:
            message = "a password does not belong in it; put an API key in the file that key_file names"
            raise ValueError(message)
        for url in filter(None, map(str.strip, value.split(","))):
            if not _URL.fullmatch(url):
                message = f"{url!r} is not a URL such as https://search:9200"
                raise ValueError(message)
        return value

    @field_validator("alias")
    @classmethod
    def _is_alias(cls, value: str) -> str:
        if not _ALIAS.fullmatch(value):
            message = f"{value!r} cannot name indices: small letters, digits, '.', '_' and '-'"
            raise ValueError(message)
        return value

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - slow, and seldom set

        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"{value!r} is not a time zone such as UTC or Europe/Berlin"
            raise ValueError(message) from None
        return value

    @field_validator("level")
    @classmethod
    def _is_level(cls, value: str) -> str:
        if value.upper() not in _LEVELS:
            message = f"{value!r} is not a level: {', '.join(_LEVELS)}"
            raise ValueError(message)
        return value.upper()
