"""The options of tables in Elasticsearch, also by the keys of es-hadoop and of streaming SQL engines."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import Guarantee, Name
from spark_runner.connectors.push_options import PushLimitOptions
from spark_runner.connectors.templates import columns_of, pieces, unknown_column
from spark_runner.protocol.text import did_you_mean

_MIB = 1024 * 1024


def _urls(value: object) -> object:
    """URLs between commas or semicolons; one without a scheme is `http`."""
    if not isinstance(value, str):
        return value
    found = [each.strip().rstrip("/") for each in value.replace(";", ",").split(",")]
    return [each if "://" in each or not each else f"http://{each}" for each in found]


def _action(value: object) -> object:
    return "update" if str(value).lower() == "upsert" else str(value).lower()


def _bytes(value: object) -> object:
    """A number of bytes, also with a unit: `5mb`."""
    found = re.fullmatch(r"(\d+)\s*(k|m)i?b?", str(value).strip().lower())
    return int(found[1]) * (_MIB if found[2] == "m" else 1024) if found else value


class ElasticsearchOptions(PushLimitOptions):
    """An Elasticsearch index: a row is a document.

    The `PRIMARY KEY` of a table is the id of its documents, so a row that is written again replaces itself.
    """

    only_adds: ClassVar[bool] = True
    upserts: ClassVar[bool] = True
    streaming: ClassVar[bool] = False  # a stream may read all documents at its start
    metadata: ClassVar[tuple[str, ...]] = ("_id", "_index", "_version")
    unquoted: ClassVar[frozenset[str]] = frozenset({"hosts", "password", "api_key"})
    aliases: ClassVar[Mapping[str, str]] = {
        **PushLimitOptions.aliases,
        "es.nodes": "hosts",
        "es.resource": "index",
        "es.query": "query",
        "es.write.operation": "action",
        "es.net.http.auth.user": "username",
        "es.net.http.auth.pass": "password",
        "es.batch.size.bytes": "max_batch_bytes",
        "sink.bulk-flush.max-size": "max_batch_bytes",
        "socket.timeout": "request_timeout",
        "connection.request-timeout": "connect_timeout",
    }
    without_effect: ClassVar[tuple[str, ...]] = (
        *("sink.bulk-flush.max-actions", "sink.bulk-flush.interval", "es.batch.size.entries", "format"),
    )
    hosts: Annotated[tuple[Name, ...], BeforeValidator(_urls)] = Field(
        min_length=1, description="URLs of some servers of the cluster, such as `https://es-1:9200`"
    )
    index: str = Field(
        min_length=1,
        description="the index, alias or data stream; to write, a text with columns: `clicks-{day}`; to"
        " read, also a pattern: `clicks-*`",
    )
    username: str = Field("", description="the user of a login with a password")
    password: str = Field("", description="a reference, such as `${secret:elasticsearch/password}`")
    api_key: str = Field("", description="instead of both: a key, as `id:key` or encoded, in a reference")
    ca_file: str = Field(
        "", description="PEM file of trusted authorities, on each host; by default the system's"
    )
    action: Annotated[Literal["index", "create", "update", "delete"], BeforeValidator(_action)] = Field(
        "index",
        description="`index`: a row replaces the document with its id; `create`: the first one stays;"
        " `update` or `upsert`: its columns replace fields; `delete`: it removes the document",
    )
    version_column: str = Field(
        "", description="column with the version of a row: a row older than its document changes nothing"
    )
    delete_column: str = Field(
        "", description="BOOLEAN column of the query; rows with true delete the document with their key"
    )
    routing: str = Field("", description="a text with columns, whose documents share a shard")
    pipeline: str = Field("", description="the ingest pipeline for the documents")
    missing_index: Literal["fail", "create", "server"] = Field(
        "fail",
        description="of an index without columns in its name: `fail`; `create` it with the types of the"
        " columns; `server`: it creates it, by its templates",
    )
    refresh: bool = Field(
        False, description="make the rows visible to searches as soon as the INSERT has ended"
    )
    max_batch_bytes: Annotated[int, BeforeValidator(_bytes)] = Field(
        5 * _MIB,
        ge=1024,
        le=95 * _MIB,
        description="bytes of one bulk request, before compression; also `5mb`",
    )
    query: str = Field("", description="to read: the documents that match it, in Elasticsearch's JSON")
    partitions: int = Field(
        0, ge=0, le=1024, description="parallel slices of a read; `0`: as many as Spark has tasks"
    )
    keep_alive: int = Field(
        600,
        ge=1,
        le=86_400,
        description="seconds that the server keeps the point in time of a read while no task reads; a task"
        " renews it",
    )
    connect_timeout: float = Field(5.0, gt=0, le=600, description="seconds to open a connection")
    request_timeout: float = Field(
        120.0, gt=0, le=3600, description="seconds to send a request and receive the whole answer"
    )
    retry_timeout: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="seconds without success after which a task stops repeating a request",
    )

    @field_validator("hosts")
    @classmethod
    def _are_urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            url = urlsplit(each)
            if url.scheme not in {"http", "https"} or not url.hostname or url.query:
                raise ValueError("each host is a URL such as https://es-1:9200")
            if "@" in url.netloc:
                raise ValueError("it holds a password, which would be visible; use option 'password'")
        return value

    @field_validator("index", "routing")
    @classmethod
    def _is_template(cls, value: str) -> str:
        pieces(value)
        return value

    @field_validator("query")
    @classmethod
    def _is_query(cls, value: str) -> str:
        try:
            found = json.loads(value) if value else {}
        except ValueError as error:
            raise ValueError(f"it is no JSON: {error}") from error
        if not isinstance(found, dict):
            message = 'it is no JSON object, such as {"term": {"page": "home"}}'
            raise ValueError(message)  # noqa: TRY004 - pydantic reports it
        whole = found.get("query") if len(found) == 1 else None  # as in the body of a search
        return json.dumps(whole) if isinstance(whole, dict) else value

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check what depends on several options, and that they name declared columns."""
        if self.password and not self.username:
            raise OptionError("option 'password' needs option 'username'")
        if self.api_key and self.username:
            raise OptionError("give 'api_key', or 'username' and 'password', not both")
        if self.version_column and self.action in {"create", "update"}:
            raise OptionError(f"action '{self.action}' has no versions; use 'index'", option="version_column")
        if self.delete_column and self.action == "delete":
            raise OptionError("action 'delete' deletes each row already", option="delete_column")
        if self.missing_index == "create" and columns_of(self.index):
            message = "an index with columns in its name is created by the server; use templates there"
            raise OptionError(message, option="missing_index", fault="value")
        known = {name.lower() for name in columns}
        named = {option: unknown_column(getattr(self, option), columns) for option in ("index", "routing")}
        for option in ("version_column", "delete_column"):
            name = getattr(self, option)
            named[option] = name if name and name.lower() not in known else None
        for option, name in named.items():
            if columns and name:
                message = (
                    f"option '{option}' names '{name}', which is not a column{did_you_mean(name, columns)}"
                )
                raise OptionError(message, option=option, fault="value", quoted=name)

    def guarantee(self, *, has_primary_key: bool) -> Guarantee:
        """A document with an id is replaced by itself; without one, the server gives a new id."""
        return Guarantee.EXACTLY_ONCE if has_primary_key else Guarantee.AT_LEAST_ONCE

    def place(self) -> str:
        """The servers and the index."""
        return f"elasticsearch://{','.join(sorted(self.hosts))}/{self.index}"
