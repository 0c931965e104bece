"""Where the archive is: files and names, never a secret."""

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

_URL = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")


def _path(value: Path) -> Path:
    return value.expanduser().absolute()


_Path = Annotated[Path, AfterValidator(_path)]


class ArchiveSettings(BaseModel):
    """Jobs are archived in an Elasticsearch index where `url` is given, else in files."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str = Field("", description="of Elasticsearch; empty = JSONL files in `dir`")
    index: str = Field("orchestrator-jobs", description="one index, no alias that rolls over")
    key_file: _Path | None = Field(None, description="an API key in base64, where the server asks for one")
    ca_file: _Path | None = Field(None, description="who signs the server; absent = the system's list")
    dir: _Path | None = Field(None, description="of the JSONL files; absent = `archive` in the state_dir")

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        if "@" in value:
            message = "a password does not belong in it; put an API key in the file that key_file names"
            raise ValueError(message)
        if value and not _URL.fullmatch(value):
            message = f"{value!r} is not a URL such as https://search:9200"
            raise ValueError(message)
        return value

    @field_validator("index")
    @classmethod
    def _is_index(cls, value: str) -> str:
        if not _INDEX.fullmatch(value):
            message = f"{value!r} cannot name an index: small letters, digits, '.', '_' and '-'"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not self.url and (self.key_file or self.ca_file):
            message = "key_file and ca_file are for the server that url names"
            raise ValueError(message)
        if self.url and self.dir:
            message = "give url or dir, not both"
            raise ValueError(message)
        return self
