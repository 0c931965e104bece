"""The options of tables of relational databases."""

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.jdbc.address import parse
from spark_runner.connectors.options import ConnectorOptions, Guarantee
from spark_runner.protocol.text import did_you_mean

_PASSWORD = re.compile(
    r"""[?&;(,]\s*[^=?&;(,]*(?:passw(?:or)?d|passphrase|passcode|pwd|secret|token)(?:_?key)?\d*\s*=
    | [?&;(,]\s*[^=?&;(,]*(?:api|access|client|private)_?key\s*=
    | //[^/@]*:[^/@]*@
    | ^jdbc:oracle:\w+:[^/@]+/[^@]+@""",  # user/password@
    re.IGNORECASE | re.VERBOSE,
)
_ENGINES = {  # keys of streaming SQL engines, of both generations
    "table-name": "table",
    "scan.partition.column": "partition_column",
    "scan.partition.num": "partitions",
    "scan.partition.lower-bound": "lower_bound",
    "scan.partition.upper-bound": "upper_bound",
    "scan.fetch-size": "fetch_size",
    "sink.buffer-flush.max-rows": "batch_rows",
    "sink.parallelism": "connections",
    "read.query": "query",
    "read.partition.column": "partition_column",
    "read.partition.num": "partitions",
    "read.partition.lower-bound": "lower_bound",
    "read.partition.upper-bound": "upper_bound",
    "read.fetch-size": "fetch_size",
    "write.flush.max-rows": "batch_rows",
}
_SPARK = {
    "dbtable": "table",
    "user": "username",
    "numPartitions": "partitions",
    "batchsize": "batch_rows",
}


class JdbcOptions(ConnectorOptions):
    """A table of a relational database.

    It writes to PostgreSQL, MySQL and MariaDB, whose drivers are included, and reads every database whose
    JDBC driver is among the jars of the job. Options may also have the names that Spark and streaming SQL
    engines use: `dbtable`, `table-name`, `scan.fetch-size`.
    """

    upserts: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    unquoted: ClassVar[frozenset[str]] = frozenset({"url", "password"})
    aliases: ClassVar[Mapping[str, str]] = {**_ENGINES, **_SPARK}
    deciding: ClassVar[frozenset[str]] = frozenset({"url", "query"})

    url: str = Field(pattern=r"^jdbc:\S+$", description="such as `jdbc:postgresql://host:5432/database`")
    table: str = Field("", description="the table, or `schema.table`; a name in quotes keeps its case")
    query: str = Field("", description="a SELECT that the database runs, instead of `table`; only to read")
    username: str = Field("", description="the user of the database")
    password: str = Field("", description="its password; write a reference, `${secret:...}`")
    driver: str = Field("", description="the class of another JDBC driver in the jars of the job")
    partitions: int = Field(
        0, ge=0, le=1000, description="parallel connections of a read; `0`: as many as Spark has tasks"
    )
    partition_column: str = Field(
        "", description="column of numbers, dates or times that divides a read; by default found if possible"
    )
    lower_bound: str = Field(
        "", description="the lowest value of that column to divide at; by default the database is asked"
    )
    upper_bound: str = Field("", description="the highest value, in the same way")
    fetch_size: int = Field(10_000, ge=1, le=1_000_000, description="rows of one answer of the database")
    cursor_column: str = Field(
        "",
        description="for a stream: a column that grows with each new or changed row; only new rows are read",
    )
    cursor_delay: int = Field(
        0,
        ge=0,
        le=86_400,
        description="seconds that a stream stays behind, for late commits; needs a column of points in time",
    )
    delete_column: str = Field(
        "", description="BOOLEAN column of the query; rows with true are deleted by their primary key"
    )
    new_columns: Literal["fail", "add", "ignore"] = Field(
        "fail", description="columns that the table does not have: `fail`, `add` them, or `ignore` them"
    )
    create: bool = Field(False, description="create the table if it is missing")
    truncate: bool = Field(
        False, description="INSERT OVERWRITE empties the table at once; readers wait (only PostgreSQL)"
    )
    connections: int = Field(8, ge=1, le=200, description="connections that write at the same time")
    batch_rows: int = Field(10_000, ge=1, le=1_000_000, description="rows of one request to MySQL or MariaDB")
    copy_rows: bool = Field(True, description="write to PostgreSQL by COPY; `false`: by INSERT")
    work_schema: str = Field(
        "", description="schema for the connector's own tables; by default that of the table"
    )

    @property
    def streaming(self) -> bool:
        """Whether a stream reads new rows alone."""
        return bool(self.cursor_column)

    @field_validator("url")
    @classmethod
    def _holds_no_password(cls, value: str) -> str:
        if _PASSWORD.search(value):
            raise ValueError("it holds a password, which would be visible; use option 'password'")
        return value

    @field_validator("query")
    @classmethod
    def _is_select(cls, value: str) -> str:
        if value and not re.match(r"\s*(select|with|\()", value, re.IGNORECASE):
            raise ValueError("it must begin with SELECT or WITH")
        return value.strip().rstrip(";")

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that there is a table or a query, and that options name only declared columns."""
        if bool(self.table) == bool(self.query):
            raise OptionError("connector 'jdbc' needs one of the options 'table' and 'query'")
        if self.cursor_column and self.query:
            raise OptionError("a stream by 'cursor_column' reads a 'table', not a 'query'")
        if bool(self.lower_bound) != bool(self.upper_bound):
            raise OptionError("'lower_bound' and 'upper_bound' are given together")
        if self.lower_bound and not self.partition_column:
            raise OptionError("'lower_bound' and 'upper_bound' need 'partition_column'")
        known = {name.lower() for name in columns}
        for option in ("partition_column", "cursor_column", "delete_column"):
            name = getattr(self, option)
            if name and columns and name.lower() not in known:
                message = f"{option} names '{name}', which is not a column{did_you_mean(name, columns)}"
                raise OptionError(message, option=option, fault="value", quoted=name)

    @classmethod
    def check_position(cls, position: str) -> None:
        """A position is a value of `cursor_column`: rows above it are read."""
        if not position.strip() or "\0" in position:
            raise OptionError("a position is a value of the column of the option 'cursor_column'")

    def place(self) -> str:
        """The database and the table; the rows of a query are at no known place."""
        return f"{parse(self.url).plain}/{self.table}" if self.table else ""

    def guarantee(self, *, has_primary_key: bool) -> Guarantee:  # noqa: ARG002 - of ConnectorOptions
        """The database keeps which writes are done, in the same transaction as their rows."""
        return Guarantee.EXACTLY_ONCE
