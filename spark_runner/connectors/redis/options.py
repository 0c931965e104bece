"""The options of tables in Redis."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import Guarantee, Names
from spark_runner.connectors.push_options import PushLimitOptions
from spark_runner.connectors.redis.kinds import REPLACING
from spark_runner.connectors.templates import columns_of, pieces, unknown_column
from spark_runner.protocol.text import did_you_mean

Mode = Annotated[Literal["single", "sentinel", "cluster"], BeforeValidator(lambda value: str(value).lower())]
Command = Annotated[
    Literal["SET", "HSET", "LPUSH", "RPUSH", "SADD", "ZADD", "XADD"],
    BeforeValidator(lambda value: str(value).upper()),
]


class RedisOptions(PushLimitOptions):
    """Keys of Redis: a row is a string, or a member of a hash, list, set, sorted set or stream."""

    only_adds: ClassVar[bool] = True
    aliases: ClassVar[Mapping[str, str]] = {
        **PushLimitOptions.aliases,
        "redis-mode": "mode",
        "cluster-nodes": "nodes",
        "cluster.nodes": "nodes",
        "sentinel-nodes": "nodes",
        "sentinel.nodes": "nodes",
        "sentinels.info": "nodes",
        "sentinel.master": "master_name",
        "db": "database",
        "db-num": "database",
        "key-template": "key",
        "value-template": "value",
        "key.ttl": "ttl",
        "connection.timeout": "connect_timeout",
        "socket.timeout": "timeout",
        "so.timeout": "timeout",
        "max-total": "connections",
        "pool.max-total": "connections",
        "pool.max-idle": "max_idle",
        "pool.min-idle": "min_idle",
        "sink.batch-size": "batch_size",
    }
    mode: Mode = Field("single", description="`single`, `sentinel` or `cluster`")
    host: str = Field("", description="the host of a single server")
    port: int = Field(
        6379, ge=1, le=65_535, description="the port of a single server, and of nodes without a port"
    )
    nodes: Names = Field((), description="`host:port` of each Sentinel, or of some nodes of a cluster")
    master_name: str = Field("", description="the name of the master that Sentinel watches")
    database: int = Field(0, ge=0, le=16_383, description="the number of the database; a cluster has only 0")
    username: str = Field("", description="an ACL user; by default the user of `requirepass`")
    password: str = Field("", description="a reference, such as `${secret:redis/password}`")
    sentinel_password: str = Field("", description="the password of the Sentinels, as a reference")
    tls: bool = Field(False, description="use TLS, and check the server's certificate")
    ca_file: str = Field(
        "", description="PEM file of trusted authorities, on each host; by default the system's"
    )
    command: Command = Field("SET", description="`SET`, `HSET`, `LPUSH`, `RPUSH`, `SADD`, `ZADD` or `XADD`")
    key: str = Field(
        min_length=1,
        description="to write, a text with columns: `clicks:{page}`; to read, that or a pattern: `clicks:*`",
    )
    value: str = Field("", description="a text with columns; by default all columns as a JSON object")
    field: str = Field(
        "", description="for `HSET`: one field per row, with `value`; by default one per column"
    )
    score: str = Field("", description="for `ZADD`: the column with the score")
    ttl: int = Field(0, ge=0, le=3_155_760_000, description="seconds until a written key expires; 0: never")
    max_length: int = Field(
        0, ge=0, description="for `XADD`: about how many entries stay in a stream; 0: all"
    )
    connect_timeout: float = Field(5.0, gt=0, le=600, description="seconds to open a connection")
    timeout: float = Field(30.0, gt=0, le=3600, description="seconds to wait for an answer")
    retry_timeout: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="seconds without success after which a task stops reconnecting and fails",
    )
    connections: int = Field(
        0, ge=0, le=10_000, description="the most tasks that write at the same time; 0: all tasks of the job"
    )
    max_idle: int = Field(8, ge=0, description="has no effect: a task keeps one connection until its end")
    min_idle: int = Field(0, ge=0, description="has no effect")
    batch_size: int = Field(1000, ge=1, le=100_000, description="rows of one round trip")

    @field_validator("key", "value", "field")
    @classmethod
    def _is_template(cls, value: str) -> str:
        pieces(value)
        return value

    def replaces_rows(self) -> bool:
        """A table may declare the columns of its `key` as PRIMARY KEY, if a row replaces an earlier one."""
        return self.command in {"SET", "HSET"}

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check what depends on several options, and that templates name declared columns."""
        if self.mode == "single" and not self.host:
            raise OptionError("connector 'redis' needs option 'host'")
        if self.mode != "single" and not self.nodes:
            raise OptionError(f"mode '{self.mode}' of connector 'redis' needs option 'nodes'")
        if self.mode == "sentinel" and not self.master_name:
            raise OptionError("mode 'sentinel' of connector 'redis' needs option 'master_name'")
        if self.mode == "cluster" and self.database:
            raise OptionError("a cluster of Redis has only database 0", option="database", fault="value")
        self._check_effects()
        if self.command == "ZADD" and not self.score:
            raise OptionError("command 'ZADD' needs option 'score', the name of a column")
        for option in ("key", "value", "field"):
            template: str = getattr(self, option)
            if columns and (name := unknown_column(template, columns)):
                raise self._unknown(option, name, columns)
        if columns and self.score and self.score.lower() not in {name.lower() for name in columns}:
            raise self._unknown("score", self.score, columns)

    def _check_effects(self) -> None:
        """Raise OptionError for an option that others leave without effect."""
        has_value = self.command not in {"HSET", "XADD"} or (self.command == "HSET" and bool(self.field))
        for option, has_effect, where in (
            ("host", self.mode == "single", "in mode 'single'"),
            ("nodes", self.mode != "single", "in the modes 'sentinel' and 'cluster'"),
            ("master_name", self.mode == "sentinel", "in mode 'sentinel'"),
            ("sentinel_password", self.mode == "sentinel", "in mode 'sentinel'"),
            ("ca_file", self.tls, "with 'tls' = 'true'"),
            ("username", bool(self.password), "with option 'password'"),
            ("field", self.command == "HSET", "with command 'HSET'"),
            ("value", has_value, "with commands of one value; HSET needs option 'field' for it"),
            ("score", self.command == "ZADD", "with command 'ZADD'"),
            ("max_length", self.command == "XADD", "with command 'XADD'"),
        ):
            if not has_effect and getattr(self, option) != type(self).model_fields[option].default:
                message = f"option '{option}' has an effect only {where}; leave it out"
                raise OptionError(message, option=option)

    def check_primary_key(self, primary_key: Sequence[str]) -> None:
        """Rows with one key replace each other, so the PRIMARY KEY is the columns of `key` and `field`."""
        named = {name.lower() for name in (*columns_of(self.key), *columns_of(self.field))}
        is_pattern = not named and any(mark in self.key for mark in "*?[")  # a table that is read
        if self.replaces_rows() and not is_pattern and {name.lower() for name in primary_key} != named:
            message = f"the PRIMARY KEY is ({', '.join(primary_key)}), and the key in Redis has "
            message += f"the columns ({', '.join(sorted(named))})" if named else "no column"
            raise OptionError(message, option="key", fault="value")

    def _unknown(self, option: str, name: str, columns: Sequence[str]) -> OptionError:
        message = f"option '{option}' names '{name}', which is not a column{did_you_mean(name, columns)}"
        return OptionError(message, option=option, fault="value", quoted=name)

    def guarantee(self, *, has_primary_key: bool) -> Guarantee:  # noqa: ARG002 - of ConnectorOptions
        """A row that arrives again replaces itself, but in lists and streams."""
        return Guarantee.EXACTLY_ONCE if self.command in REPLACING else Guarantee.AT_LEAST_ONCE

    def place(self) -> str:
        """The server, the database and the keys."""
        server = f"{self.host}:{self.port}" if self.mode == "single" else ",".join(self.nodes)
        return f"redis://{server}/{self.database}/{self.key}"
