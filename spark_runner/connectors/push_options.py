"""The options of connectors that deliver by requests, also by the keys of streaming SQL engines."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import ConnectorOptions, Names
from spark_runner.protocol.text import did_you_mean

_AnyCase = BeforeValidator(lambda value: str(value).lower().removeprefix("by").strip(" -_"))


class PushLimitOptions(ConnectorOptions):
    """Limits hold for all tasks of a write together, and `job adjust` changes them while it runs."""

    aliases: ClassVar[Mapping[str, str]] = {
        "sink.requests.max-inflight": "concurrency",
        "sink.requests.max-buffered": "buffer_records",
    }
    concurrency: int = Field(
        1000, ge=1, le=10_000, description="requests in flight, of all writing tasks together"
    )
    rate_limit: float = Field(0, ge=0, le=1_000_000, description="requests per second; 0: no limit")
    buffer_records: int = Field(
        1_000_000,
        ge=1,
        description="rows that are read but not yet delivered; at this limit, no more are read",
    )
    buffer_bytes: int = Field(64 * 1024 * 1024, ge=1, description="the same limit in bytes")


class PushOptions(PushLimitOptions):
    """Likewise, where a request has single rows."""

    aliases: ClassVar[Mapping[str, str]] = {
        **PushLimitOptions.aliases,
        "sink.parallelism": "parallelism",
        "sink.flush-buffer.size": "batch_bytes",
        "sink.flush-buffer.timeout": "linger",
    }
    batch_size: int = Field(1, ge=1, le=100_000, description="rows of one request")
    batch_bytes: int = Field(5 * 1024 * 1024, ge=1, description="the most bytes of rows in one request")
    linger: float = Field(
        0,
        ge=0,
        le=3600,
        description="seconds after which a batch is sent even if it is not full; 0: only at the end of the"
        " rows",
    )
    concurrency: int = Field(16, ge=1, le=10_000, description="requests in flight")
    parallelism: int = Field(
        0, ge=0, le=10_000, description="tasks that write at the same time; 0: as many as Spark has cores"
    )
    buffer_records: int = Field(
        100_000, ge=1, description="rows that are read but not yet delivered; at this limit, no more are read"
    )
    order: Annotated[Literal["", "none", "key", "strict"], _AnyCase] = Field(
        "",
        description="what is delivered in order: `none`; `key`, rows with an equal PRIMARY KEY; `strict`, all"
        " rows of a lane. By default `key` with a PRIMARY KEY, else `none`",
    )
    order_by: Names = Field((), description="the columns that define that order")
    lane: str = Field(
        "", description="the column with the lane of a row, such as its topic; a slow lane delays no other"
    )
    time_limit: float = Field(
        0,
        ge=0,
        le=86_400,
        description="a batch that has waited for more seconds is served after the others; 0: never",
    )
    retry_attempts: int = Field(
        10,
        ge=1,
        le=1000,
        description="attempts after which a row is rejected, while the target accepts other rows",
    )

    @model_validator(mode="after")
    def _has_an_order(self) -> "PushOptions":
        if self.order == "strict" and not self.order_by:
            raise OptionError("order 'strict' needs option 'order_by'")
        if self.order_by and self.order == "none":
            raise OptionError("order 'none' and option 'order_by' exclude each other")
        return self

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that the options name declared columns."""
        known = {name.lower() for name in columns}
        for option, names in (("order_by", self.order_by), ("lane", (self.lane,) if self.lane else ())):
            for name in names:
                if known and name.lower() not in known:
                    words = f"option '{option}' names '{name}', which is not a column"
                    words += did_you_mean(name, columns)
                    raise OptionError(words, option=option, fault="value", quoted=name)
