"""Settings of the archive: files and names, never a secret."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from orchestrator.logs.addresses import AbsolutePath, checked_index, checked_url


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
