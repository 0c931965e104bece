"""The options of tables over HTTP, also by the keys of streaming SQL engines."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.http.address import split, statuses
from spark_runner.connectors.http.bodies import EVENTS
from spark_runner.connectors.push_options import PushOptions
from spark_runner.connectors.templates import columns_of, pieces, unknown_column
from spark_runner.protocol.text import did_you_mean

Method = Annotated[
    Literal["POST", "PUT", "PATCH", "DELETE"], BeforeValidator(lambda value: str(value).upper())
]
AnyCase = BeforeValidator(lambda value: str(value).lower())
_OURS = {"host", "content-length", "transfer-encoding", "connection", "authorization"}


class HttpOptions(PushOptions):
    """Requests to one server: a row, or a batch of rows, is a request; pages of JSON are read as rows.

    The idempotency key of a row is made from the values of the `PRIMARY KEY`.
    """

    only_adds: ClassVar[bool] = True
    upserts: ClassVar[bool] = True
    unquoted: ClassVar[frozenset[str]] = frozenset(
        {"url", "headers", "token", "password", "ssl_key", "ssl_key_password"}
    )
    aliases: ClassVar[Mapping[str, str]] = {
        **PushOptions.aliases,
        "insert-method": "method",
        "http.url": "url",
        "sink.batch.max-size": "batch_size",
        "batch.max.size": "batch_size",
        "http.sink.request.batch.size": "batch_size",
        "gid.connector.http.sink.request.batch.size": "batch_size",
        "http.sink.request.timeout": "timeout",
        "gid.connector.http.sink.request.timeout": "timeout",
        "http.timeout": "timeout",
    }
    prefixes: ClassVar[Mapping[str, str]] = {
        "header.": "headers",
        "http.sink.header.": "headers",
        "gid.connector.http.sink.header.": "headers",
    }
    without_effect: ClassVar[tuple[str, ...]] = ("format",)
    url: str = Field(
        min_length=1,
        description="`https://host/path`; to write, a text with columns: `https://host/items/{id}`",
    )
    method: Method = Field("POST", description="to write: `POST`, `PUT`, `PATCH` or `DELETE`")
    body: str = Field(
        "",
        description="the body of a row, a text with columns; by default a JSON object with all columns, and"
        " nothing for `DELETE`",
    )
    batch_format: Annotated[Literal["json", "ndjson", "cloudevents"], AnyCase] = Field(
        "json",
        description="the body for several rows: `json`, an array; `ndjson`, a line each; or `cloudevents`",
    )
    event_type: str = Field("", description="for CloudEvents: the type")
    event_source: str = Field("", description="for CloudEvents: the source, a URI")
    compression: Annotated[Literal["none", "gzip"], AnyCase] = Field(
        "none", description="the compression of requests: `none` or `gzip`"
    )
    results: str = Field(
        "",
        description="the path to an array in the answer with a result for each row of the batch, such as"
        " `items`",
    )
    result_status: str = Field("status", description="the path to the status in such a result")
    result_error: str = Field("error", description="the path to the error, if there is no status")
    headers: dict[str, str] = Field(
        {}, description="headers of each request: `header.NAME`; they may be references"
    )
    token: str = Field("", description="a bearer token, as a reference")
    username: str = Field("", description="the user of a basic login")
    password: str = Field("", description="its password, as a reference")
    ssl_ca: str = Field(
        "", description="the certificates of trusted authorities, as PEM; by default the system's"
    )
    ssl_certificate: str = Field("", description="the certificate of this client with its chain, as PEM")
    ssl_key: str = Field("", description="its private key as PEM, as a reference")
    ssl_key_password: str = Field("", description="the password of that key, as a reference")
    connect_timeout: float = Field(5.0, gt=0, le=600, description="seconds to open a connection")
    timeout: float = Field(30.0, gt=0, le=3600, description="seconds to wait for an answer")
    success_status: str = Field("200-299", description="statuses of rows that the server has accepted")
    retry_status: str = Field(
        "408,425,429,500,502,503,504,507", description="statuses after which a request is sent again"
    )
    retry_timeout: float = Field(
        60.0,
        ge=0,
        le=86_400,
        description="if the server accepts nothing for this many seconds, the write or read fails",
    )
    idempotency_header: str = Field(
        "Idempotency-Key", description="the header with the key of a request; empty: no such header"
    )
    records: str = Field(
        "", description="to read: the path to the records in an answer, such as `data.items`"
    )
    paging: Annotated[Literal["none", "page", "offset", "cursor", "link"], AnyCase] = Field(
        "none", description="to read: `none`, `page`, `offset`, `cursor` or `link`"
    )
    page_param: str = Field(
        "", description="parameter with the page, or the offset; by default `page`, `offset`"
    )
    first_page: int = Field(1, ge=0, description="number of the first page")
    page_size_param: str = Field("", description="parameter with `page_size`")
    page_size: int = Field(100, ge=1, description="records to request per page")
    cursor_param: str = Field("cursor", min_length=1, description="parameter with the cursor")
    cursor_path: str = Field(
        "", description="the path to the cursor of the next page in an answer; for `link`, to its URL"
    )
    max_pages: int = Field(100_000, ge=1, description="a read with more pages fails")

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        pieces(split(value)[1])
        return value

    @field_validator("body")
    @classmethod
    def _is_template(cls, value: str) -> str:
        pieces(value)
        return value

    @field_validator("success_status", "retry_status")
    @classmethod
    def _are_statuses(cls, value: str) -> str:
        statuses(value)
        return value

    @field_validator("headers")
    @classmethod
    def _can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name.lower() in _OURS:
                raise ValueError(f"header '{name}' cannot be set; for a login, use 'token' or 'username'")
            if not _is_token(name):
                raise ValueError(f"'{name}' is no name of a header")
        return value

    @field_validator("idempotency_header")
    @classmethod
    def _is_header(cls, value: str) -> str:
        if value and not _is_token(value):
            raise ValueError("it is no name of a header")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> "HttpOptions":
        if bool(self.username) != bool(self.password):
            raise OptionError("options 'username' and 'password' need each other")
        if bool(self.ssl_certificate) != bool(self.ssl_key):
            raise OptionError("options 'ssl_certificate' and 'ssl_key' need each other")
        if self.token and self.username:
            raise OptionError("give 'token' or 'username', not both")
        if self.paging == "cursor" and not self.cursor_path:
            raise OptionError("paging 'cursor' needs option 'cursor_path'")
        if self.batch_format == EVENTS and not (self.event_type and self.event_source):
            raise OptionError("batch_format 'cloudevents' needs options 'event_type' and 'event_source'")
        if self.batch_format == EVENTS and not self.idempotency_header:
            raise OptionError("batch_format 'cloudevents' needs option 'idempotency_header': ids are keys")
        if self.batch_size > 1 and columns_of(split(self.url)[1]):
            raise OptionError("batch_size above 1 needs a URL without columns: a batch is one request")
        if self.batch_size > 1 and self.method == "DELETE" and not self.body:
            raise OptionError("batch_size above 1 with method 'DELETE' needs option 'body'")
        return self

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that the texts and options name declared columns."""
        super().check_columns(columns)
        for option, template in (("url", split(self.url)[1]), ("body", self.body)):
            if columns and (name := unknown_column(template, columns)):
                message = (
                    f"option '{option}' names '{name}', which is not a column{did_you_mean(name, columns)}"
                )
                raise OptionError(message, option=option, fault="value", quoted=name)

    def place(self) -> str:
        """The URL."""
        return self.url


def _is_token(name: str) -> bool:
    return name.isascii() and all(each.isalnum() or each in "!#$%&'*+-.^_`|~" for each in name)
