"""The table `event_logs` of the settings: where Spark's event logs of a pool are kept, and who shows them."""

import re
import urllib.parse
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from orchestrator.model.fields import Seconds, checked_memory
from spark_runner.protocol.sizing import memory_bytes

_VISIBLE = re.compile(r"[!-+\--~]{1,500}")  # no blank, no control character, no comma
_FOLDER = re.compile(r"(?:file:(?://)?/(?!/)|(?!file:)[a-z][a-z0-9+.-]*://[^/?#]).*")
_SERVER = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(?:/[A-Za-z0-9._~/-]*)?")
_MAX_SERVER_CHARACTERS = 200
_LEAST_FILE_BYTES = 10 << 20
"""Spark refuses a smaller `spark.eventLog.rolling.maxFileSize`."""


class EventLogSettings(BaseModel):
    """The event logs of a pool; without `url`, Spark writes none."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str = Field(
        "", description="URL of a folder: file:///..., s3a://..., hdfs://...; empty = no event logs"
    )
    compress: bool = Field(True, description="whether Spark compresses the event logs")
    file_size: str = Field(
        "128m", description="size at which a new file begins; empty = one file per application"
    )
    retention: Annotated[Seconds, Field(ge=0)] = Field(
        7 * 86400.0,
        description="time after the end of an application, in folders with file: URLs; 0 = keep all",
    )
    history_server: str = Field(
        "", description="URL of the history server, for links: http://history:18080; empty = none"
    )

    _is_memory = field_validator("file_size")(checked_memory)

    @field_validator("url")
    @classmethod
    def _is_folder(cls, value: str) -> str:
        if not value:
            return value
        authority = urllib.parse.urlsplit(value).netloc if _VISIBLE.fullmatch(value) else ""
        if ":" in authority.rpartition("@")[0]:
            message = "a URL of event logs must not contain a password: every job that uses it could read it"
            raise ValueError(message)
        is_plain = _VISIBLE.fullmatch(value) and not {"?", "#", "$", "%"} & set(value)
        if not (is_plain and _FOLDER.fullmatch(value)) or "/../" in f"{value}/":
            message = f"{value!r} is not the URL of a folder; write file:///folder, s3a://bucket/folder, ..."
            raise ValueError(message)
        return value.rstrip("/")

    @field_validator("file_size")
    @classmethod
    def _is_accepted(cls, value: str) -> str:
        if value and (memory_bytes(value) or 0) < _LEAST_FILE_BYTES:
            message = f"{value!r} is too small: Spark accepts 10m and more"
            raise ValueError(message)
        return value

    @field_validator("history_server")
    @classmethod
    def _is_server(cls, value: str) -> str:
        if value and not (len(value) <= _MAX_SERVER_CHARACTERS and _SERVER.fullmatch(value)):
            message = f"{value!r} is not the URL of a history server, such as http://history:18080"
            raise ValueError(message)
        return value.rstrip("/")

    @property
    def local_folder(self) -> str:
        """The path of the folder of a file: URL; empty for others."""
        return urllib.parse.urlsplit(self.url).path if self.url.startswith("file:") else ""
