"""A request for a page of the logs of an attempt on another host, and the reply, as nodes of ZooKeeper.

The reader creates an ephemeral node with its request, and a worker of that host replaces the data by the
reply. Both sides take what the other one wrote for untrusted.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.driver_logs.run_reader import LogPage
from orchestrator.logs.reading.origin import Origin
from orchestrator.logs.reading.query import DRIVER, LEVELS, MAX_CHARACTERS, Grep, LogQuery, LogRecord
from orchestrator.model.fields import explain

MAX_REPLY_BYTES = 256 * 1024  # in ZooKeeper, which keeps all nodes in memory
MAX_REQUEST_BYTES = 128 * 1024
MAX_LOGS = 600  # in a cursor: of hundreds of executors
MAX_WAIT_SECONDS = 10.0
_MAX_TEXT_BYTES = 8 << 20  # of a reply, unpacked
_PAGE, _REFUSAL = b"p", b"r"

_Level = Literal["", *LEVELS]  # type: ignore[valid-type]  # mypy reads no tuple in a Literal
_Name = Annotated[str, Field(max_length=200)]


class PageRequest(BaseModel):
    """The page that a reader wants: see `RunReader.page`. `wait` are the seconds to wait for new output."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    job: str = Field(min_length=1, max_length=128)
    attempt: int = Field(ge=1, lt=10**9)
    executor: str = Field(DRIVER, max_length=40)
    cursor: dict[_Name, Annotated[int, Field(ge=0)]] = Field({}, max_length=2 * MAX_LOGS)
    flush: bool = False
    wait: float = Field(0.0, ge=0, le=MAX_WAIT_SECONDS)
    level: _Level = ""
    spark_level: _Level = ""
    since: str = Field("", max_length=40)
    grep: str = Field("", max_length=MAX_CHARACTERS)
    origins: list[str] = Field([], max_length=len(Origin))

    def query(self) -> LogQuery:
        """The conditions that records must meet; raises ValueError."""
        return LogQuery(
            level=self.level,
            since=self.since,
            grep=Grep(self.grep) if self.grep else None,
            origins=tuple(map(Origin, self.origins)),
            spark_level=self.spark_level,
        )

    def encode(self) -> bytes:
        """The data of the node."""
        return self.model_dump_json(exclude_defaults=True).encode()

    @classmethod
    def decode(cls, data: bytes) -> "PageRequest":
        """The request in a node; raises ValueError."""
        if len(data) > MAX_REQUEST_BYTES:
            message = f"it has {len(data):,} bytes, the limit is {MAX_REQUEST_BYTES:,}"
            raise ValueError(message)
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise ValueError(explain(error, cls, "it")) from error


def page_data(page: LogPage) -> bytes:
    """The reply with a page, which may be longer than MAX_REPLY_BYTES."""
    document = {
        "records": [record.document for record in page.records],
        "cursor": page.cursor,
        "is_full": page.is_full,
        "fields": page.fields,
    }
    return _PAGE + zlib.compress(json.dumps(document).encode(), level=6)  # ASCII: bytes that are no text stay


def refusal_data(words: str) -> bytes:
    """The reply that there is no page, with the reason for the user."""
    return _REFUSAL + words.encode("utf-8", "replace")[:2_000]


class PageRefused(Exception):
    """The worker has no such page; the message is for the user."""


_Value = str | int | float | bool | None


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore")

    records: list[dict[str, _Value]] = Field(max_length=100_000)
    cursor: dict[_Name, int] = Field(max_length=2 * MAX_LOGS)
    is_full: bool
    fields: dict[str, _Value]


def page_of(data: bytes) -> LogPage:
    """The page in a reply; raises PageRefused, and ValueError for anything else."""
    if data.startswith(_REFUSAL):
        raise PageRefused(data[1:].decode("utf-8", "replace"))
    if not data.startswith(_PAGE):
        message = "it is no reply"
        raise ValueError(message)
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data[1:], _MAX_TEXT_BYTES)
        if not unpacking.eof:
            message = "it is too long, or incomplete"
            raise ValueError(message)
        reply = _Reply.model_validate(json.loads(text))
    except ValidationError as error:
        raise ValueError(explain(error, _Reply, "it")) from error
    except (zlib.error, RecursionError) as error:
        raise ValueError(str(error)) from error
    records = [LogRecord(_identity(reply.fields, each), each) for each in reply.records]
    return LogPage(records, reply.cursor, reply.is_full, reply.fields)


def _identity(fields: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    names = ("job.run_key", "job.attempt"), ("log.stream", "event.sequence")
    run, place = (
        "-".join(str(source.get(name, "")) for name in part)
        for source, part in zip((fields, document), names, strict=True)
    )
    return f"{run}-{place}"
